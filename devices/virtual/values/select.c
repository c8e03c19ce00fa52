/* Selecting slices by index: vectorized_gather_kernel (aten/src/ATen/native/cuda/IndexKernelUtils.cu, PyTorch from 2.7
 * on), indexSelect*Index and indexFuncSmallIndex (Indexing.cu):
 *
 *     vectorized_gather_kernel<bytes, I>(char *out, char *in, I *indices, int count, long slice, long size,
 *         long in stride, long out stride, bool)
 *     indexSelectSmallIndex<T, I, index, ...>(TensorInfo<T> out, TensorInfo<const T> in,
 *         TensorInfo<const I> indices, int out dimension, int in dimension, index inner, long size)
 *     indexSelectLargeIndex<...>(the same, ..., index total, index inner, long size)
 *     indexFuncSmallIndex<..., ReduceAdd>(the same as small, ..., alpha) */
#include "devices/virtual/memory/heap.h"
#include "plan.h"
#include <string.h>

enum { INDEX_BYTES }; /* index of plan->numbers */

/* --- vectorized_gather_kernel ----------------------------------------------------------------- */

static bool read_gather(const char *list, struct plim_plan *plan)
{
    plan->types[0] = plim_name_type(plim_name_argument(list, 1));
    return plan->types[0] == PLIM_INT64 || plan->types[0] == PLIM_INT32;
}

struct row_gathering {
    uintptr_t to, from;
    int64_t count, slice, size; /* rows written; bytes of a row; rows of the input */
    int64_t in_stride, out_stride;
    struct plim_view indices;
    enum plim_type index_type;
};

/* Returns the input row of output row i, or -1 if it is not known for certain. */
static int64_t row_of(const struct row_gathering *g, int64_t i)
{
    struct plim_number index;
    size_t place = (size_t)i * plim_type_bytes(g->index_type);
    unsigned char known = plim_view_get(&g->indices, place, g->index_type, &index);
    if (index.i < 0) index.i += g->size;
    bool is_certain = known == PLIM_KNOWN; /* an index that depends on an assumption is not used */
    return is_certain && index.i >= 0 && index.i < g->size ? index.i : -1;
}

static size_t bytes_read(const struct row_gathering *g)
{
    return (size_t)((g->size - 1) * g->in_stride + g->slice);
}

static size_t bytes_written(const struct row_gathering *g)
{
    return (size_t)((g->count - 1) * g->out_stride + g->slice);
}

/* Copies all rows through one view: the shadow stores ranges, and a range for each of many rows would take quadratic
 * time. Returns false if the views are too large. */
static bool gather_whole(const struct row_gathering *g, const char *writer)
{
    struct plim_view to, from, unknown = {0};
    if (!plim_view_open(&to, g->to, bytes_written(g))) return false;
    bool works = plim_view_open(&from, g->from, bytes_read(g));
    for (int64_t i = 0; works && i < g->count; i++) {
        int64_t row = row_of(g, i);
        plim_view_move(&to, (size_t)(i * g->out_stride), row < 0 ? &unknown : &from,
                       row < 0 ? 0 : (size_t)(row * g->in_stride), (size_t)g->slice);
    }
    if (works) plim_view_store(&to, writer);
    if (works) plim_view_close(&from);
    plim_view_close(&to);
    return works;
}

static bool gather_rows(const struct row_gathering *g, const struct plim_launch *launch)
{
    enum { MOST_ROWS = 1 << 12 };
    if (g->count > MOST_ROWS) return false;
    for (int64_t i = 0; i < g->count; i++) {
        int64_t row = row_of(g, i);
        uintptr_t to = g->to + (uintptr_t)(i * g->out_stride);
        if (row >= 0)
            plim_shadow_copy(to, g->from + (uintptr_t)(row * g->in_stride), (size_t)g->slice);
        else
            plim_launch_spoil(launch, to, (size_t)g->slice);
    }
    return true;
}

static bool run_gather(const struct plim_plan *plan, const struct plim_launch *launch)
{
    struct row_gathering g = {.to = plim_launch_address(launch, 0),
                              .from = plim_launch_address(launch, 1),
                              .count = plim_launch_int(launch, 3),
                              .slice = plim_launch_long(launch, 4),
                              .size = plim_launch_long(launch, 5),
                              .in_stride = plim_launch_long(launch, 6),
                              .out_stride = plim_launch_long(launch, 7),
                              .index_type = plan->types[0]};
    if (g.count <= 0 || g.slice <= 0 || g.size <= 0 || g.in_stride < 0 || g.out_stride < g.slice ||
        !plim_heap_is_device(g.to) ||
        !plim_view_open(&g.indices, plim_launch_address(launch, 2),
                        (size_t)g.count * plim_type_bytes(g.index_type)))
        return false;
    bool works = g.count <= PLIM_MOST_ELEMENTS &&
                 plim_shadow_survey(g.from, bytes_read(&g)) & PLIM_KNOWN &&
                 (gather_whole(&g, launch->kernel) || gather_rows(&g, launch));
    if (!works) plim_launch_spoil(launch, g.to, bytes_written(&g));
    plim_view_close(&g.indices);
    return true;
}

/* --- slices of a tensor ----------------------------------------------------------------------- */

/* index_select copies the slices of `in` that the indices name to consecutive slices of `out`; index_add adds the
 * slices of `in` to the slices of `out` that the indices name. */
struct slices {
    size_t width, place_bytes;
    enum plim_type type, place_type;
    struct plim_tensor out, in, places;
    struct plim_view to, from, indices;
    int64_t count, size, inner; /* number of indices; number of slices they select from; elements of a slice */
    int64_t out_stride, in_stride;
    size_t out_bytes, in_bytes;
};

static bool read_select(const char *list, struct plim_plan *plan)
{
    plan->types[0] = plim_name_type(plim_name_argument(list, 0));
    plan->types[1] = plim_name_type(plim_name_argument(list, 1));
    struct plim_name index = plim_name_argument(list, 2);
    plan->numbers[INDEX_BYTES] = plim_name_begins(index, "unsigned int")    ? 4
                                 : plim_name_begins(index, "unsigned long") ? 8
                                                                            : 0;
    return plan->types[0] != PLIM_NO_TYPE && plan->numbers[INDEX_BYTES] &&
           (plan->types[1] == PLIM_INT64 || plan->types[1] == PLIM_INT32);
}

static size_t bytes_of(const struct plim_tensor *tensor, int64_t slices, int64_t stride, size_t width)
{
    return (plim_tensor_span(tensor) + (size_t)((slices - 1) * stride)) * width;
}

/* Reads the arguments. Returns false if the launch is not supported. */
static bool find_slices(const struct plim_plan *plan, const struct plim_launch *launch, int64_t inner,
                        int64_t size, bool adds, struct slices *s)
{
    size_t index_bytes = (size_t)plan->numbers[INDEX_BYTES];
    int out_dimension = plim_launch_int(launch, 3), in_dimension = plim_launch_int(launch, 4);
    *s = (struct slices){.width = plim_type_bytes(plan->types[0]),
                         .place_bytes = plim_type_bytes(plan->types[1]),
                         .type = plan->types[0],
                         .place_type = plan->types[1],
                         .size = size,
                         .inner = inner};
    if (!plim_tensor_read(launch->arguments[0], index_bytes, &s->out) ||
        !plim_tensor_read(launch->arguments[1], index_bytes, &s->in) ||
        !plim_tensor_read(launch->arguments[2], index_bytes, &s->places) || inner <= 0 || size <= 0 ||
        s->places.dimensions != 1 || out_dimension < 0 || out_dimension >= s->out.dimensions ||
        in_dimension < 0 || in_dimension >= s->in.dimensions)
        return false;
    s->count = s->places.sizes[0];
    s->out_stride = s->out.strides[out_dimension];
    s->in_stride = s->in.strides[in_dimension];
    s->out_bytes = bytes_of(&s->out, adds ? size : s->count, s->out_stride, s->width);
    s->in_bytes = bytes_of(&s->in, adds ? s->count : size, s->in_stride, s->width);
    return true;
}

/* Opens the views. Returns false if they are too large; close_slices() must be called in any case. */
static bool open_slices(struct slices *s)
{
    return s->count * s->inner <= PLIM_MOST_ELEMENTS &&
           plim_view_open(&s->to, s->out.at, s->out_bytes) &&
           plim_view_open(&s->from, s->in.at, s->in_bytes) &&
           plim_view_open(&s->indices, s->places.at, plim_tensor_span(&s->places) * s->place_bytes);
}

/* Stores the result, or marks the output as unknown if `works` is false, and closes the views. */
static void close_slices(struct slices *s, bool works, const struct plim_launch *launch)
{
    if (works)
        plim_view_store(&s->to, launch->kernel);
    else
        plim_launch_spoil(launch, s->out.at, s->out_bytes);
    plim_view_close(&s->to);
    plim_view_close(&s->from);
    plim_view_close(&s->indices);
}

/* Stores the i-th index. Returns PLIM_UNKNOWN if it is out of range. */
static unsigned char index_at(const struct slices *s, int64_t i, int64_t *index)
{
    struct plim_number number;
    size_t place = plim_tensor_offset(&s->places, (size_t)i) * s->place_bytes;
    unsigned char known = plim_view_get(&s->indices, place, s->place_type, &number);
    bool is_one = number.i >= 0 && number.i < s->size;
    *index = is_one ? number.i : 0;
    return is_one ? known : PLIM_UNKNOWN;
}

/* The offset in bytes of element k of a slice, in `out` and in `in`. */
static size_t in_out(const struct slices *s, int64_t slice, int64_t k)
{
    return (plim_tensor_offset(&s->out, (size_t)k) + (size_t)(slice * s->out_stride)) * s->width;
}

static size_t in_in(const struct slices *s, int64_t slice, int64_t k)
{
    return (plim_tensor_offset(&s->in, (size_t)k) + (size_t)(slice * s->in_stride)) * s->width;
}

/* --- index_select ----------------------------------------------------------------------------- */

static bool select(const struct plim_plan *plan, const struct plim_launch *launch, int64_t inner,
                   int64_t size)
{
    struct slices s;
    if (!find_slices(plan, launch, inner, size, false, &s)) return false;
    bool works = plim_shadow_survey(s.in.at, s.in_bytes) & PLIM_KNOWN && open_slices(&s);
    for (int64_t i = 0; works && i < s.count; i++) {
        int64_t index;
        unsigned char known = index_at(&s, i, &index);
        for (int64_t k = 0; k < inner; k++)
            plim_view_move_by(&s.to, in_out(&s, i, k), &s.from, in_in(&s, index, k), s.width, known);
    }
    close_slices(&s, works, launch);
    return true;
}

static int64_t number_at(const struct plim_plan *plan, const struct plim_launch *launch, int i)
{
    return plan->numbers[INDEX_BYTES] == 8 ? plim_launch_long(launch, i)
                                           : (uint32_t)plim_launch_int(launch, i);
}

static bool run_small(const struct plim_plan *plan, const struct plim_launch *launch)
{
    return select(plan, launch, number_at(plan, launch, 5), plim_launch_long(launch, 6));
}

static bool run_large(const struct plim_plan *plan, const struct plim_launch *launch)
{
    int64_t total = number_at(plan, launch, 5);
    struct plim_tensor places;
    if (!plim_tensor_read(launch->arguments[2], (size_t)plan->numbers[INDEX_BYTES], &places) ||
        places.dimensions != 1)
        return false;
    return select(plan, launch, total / places.sizes[0], plim_launch_long(launch, 7));
}

/* --- index_add -------------------------------------------------------------------------------- */

static bool read_add(const char *list, struct plim_plan *plan)
{
    return read_select(list, plan) && plim_name_begins(plim_name_argument(list, 6), "ReduceAdd");
}

/* Adds each slice of the source, times alpha, to the slice that its index names. */
static bool add(const struct plim_plan *plan, const struct plim_launch *launch, int64_t inner,
                int64_t size, struct plim_number alpha)
{
    struct slices s;
    if (!find_slices(plan, launch, inner, size, true, &s)) return false;
    bool works = open_slices(&s);
    for (int64_t i = 0; works && i < s.count; i++) {
        int64_t index;
        unsigned char known = index_at(&s, i, &index);
        works = known & PLIM_KNOWN;
        for (int64_t k = 0; works && k < inner; k++) {
            struct plim_number a, b;
            size_t at = in_out(&s, index, k);
            unsigned char all = plim_known_both(known, plim_view_get(&s.to, at, s.type, &a));
            all = plim_known_both(all, plim_view_get(&s.from, in_in(&s, i, k), s.type, &b));
            a.i = (int64_t)((uint64_t)a.i + (uint64_t)alpha.i * (uint64_t)b.i);
            a.f += alpha.f * b.f;
            plim_view_set(&s.to, at, s.type, a, all);
        }
    }
    close_slices(&s, works, launch);
    return true;
}

static bool run_add_small(const struct plim_plan *plan, const struct plim_launch *launch)
{
    return add(plan, launch, number_at(plan, launch, 5), plim_launch_long(launch, 6),
               plim_number_load(launch->arguments[9], plan->types[0]));
}

const struct plim_row plim_rows_select[] = {{"vectorized_gather_kernel<", read_gather, run_gather},
                                            {"indexSelectSmallIndex<", read_select, run_small},
                                            {"indexSelectLargeIndex<", read_select, run_large},
                                            {"indexFuncSmallIndex<", read_add, run_add_small},
                                            {0}};
