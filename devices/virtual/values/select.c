/* Rows by their indices: vectorized_gather_kernel (aten/src/ATen/native/cuda/IndexKernelUtils.cu, PyTorch from
 * 2.7), indexSelect*Index and indexFuncSmallIndex (Indexing.cu):
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

enum { INDEX_BYTES }; /* of a plan's numbers */

/* --- rows of bytes ---------------------------------------------------------------------------- */

static bool read_gather(const char *list, struct plim_plan *plan)
{
    plan->types[0] = plim_name_type(plim_name_argument(list, 1));
    return plan->types[0] == PLIM_INT64 || plan->types[0] == PLIM_INT32;
}

struct row_gathering {
    uintptr_t to, from;
    int64_t count, slice, size; /* rows that are written; their bytes; rows that there are */
    int64_t in_stride, out_stride;
    struct plim_view indices;
    enum plim_type index_type;
};

/* Which row the i-th is; -1: that is not known for certain. */
static int64_t row_of(const struct row_gathering *g, int64_t i)
{
    struct plim_number index;
    size_t place = (size_t)i * plim_type_bytes(g->index_type);
    unsigned char known = plim_view_get(&g->indices, place, g->index_type, &index);
    if (index.i < 0) index.i += g->size;
    bool is_certain = known == PLIM_KNOWN; /* an assumption is not passed on */
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

/* In one piece: what is known of memory is kept by ranges, and a range for each of many rows takes
 * time with their square. False: it is too large for that. */
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

/* --- index_select ----------------------------------------------------------------------------- */

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

static bool select(const struct plim_plan *plan, const struct plim_launch *launch, int64_t inner,
                   int64_t size)
{
    size_t index_bytes = (size_t)plan->numbers[INDEX_BYTES],
           width = plim_type_bytes(plan->types[0]);
    size_t place_bytes = plim_type_bytes(plan->types[1]);
    struct plim_tensor out, in, places;
    struct plim_view to = {0}, from = {0}, indices = {0};
    int out_dimension = plim_launch_int(launch, 3), in_dimension = plim_launch_int(launch, 4);
    if (!plim_tensor_read(launch->arguments[0], index_bytes, &out) ||
        !plim_tensor_read(launch->arguments[1], index_bytes, &in) ||
        !plim_tensor_read(launch->arguments[2], index_bytes, &places) || inner <= 0 || size <= 0 ||
        places.dimensions != 1 || out_dimension < 0 || out_dimension >= out.dimensions ||
        in_dimension < 0 || in_dimension >= in.dimensions)
        return false;
    int64_t count = places.sizes[0], out_stride = out.strides[out_dimension],
            in_stride = in.strides[in_dimension];
    size_t out_bytes = (plim_tensor_span(&out) + (size_t)((count - 1) * out_stride)) * width;
    size_t in_bytes = (plim_tensor_span(&in) + (size_t)((size - 1) * in_stride)) * width;
    bool works = count * inner <= PLIM_MOST_ELEMENTS &&
                 plim_shadow_survey(in.at, in_bytes) & PLIM_KNOWN &&
                 plim_view_open(&to, out.at, out_bytes) && plim_view_open(&from, in.at, in_bytes) &&
                 plim_view_open(&indices, places.at, plim_tensor_span(&places) * place_bytes);
    if (!works) plim_launch_spoil(launch, out.at, out_bytes);
    for (int64_t i = 0; works && i < count; i++) {
        struct plim_number index;
        unsigned char known = plim_view_get(
            &indices, plim_tensor_offset(&places, (size_t)i) * place_bytes, plan->types[1], &index);
        if (index.i < 0 || index.i >= size) known = PLIM_UNKNOWN, index.i = 0;
        for (int64_t k = 0; k < inner; k++)
            plim_view_move_by(&to, (plim_tensor_offset(&out, (size_t)k) + (size_t)(i * out_stride)) * width,
                 &from,
                 (plim_tensor_offset(&in, (size_t)k) + (size_t)(index.i * in_stride)) * width,
                 width, known);
    }
    if (works) plim_view_store(&to, launch->kernel);
    plim_view_close(&to);
    plim_view_close(&from);
    plim_view_close(&indices);
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

/* Each slice of the source is added where its index says, times alpha. */
static bool add(const struct plim_plan *plan, const struct plim_launch *launch, int64_t inner,
                int64_t size, struct plim_number alpha)
{
    size_t index_bytes = (size_t)plan->numbers[INDEX_BYTES],
           width = plim_type_bytes(plan->types[0]);
    size_t place_bytes = plim_type_bytes(plan->types[1]);
    struct plim_tensor out, in, places;
    struct plim_view to = {0}, from = {0}, indices = {0};
    int out_dimension = plim_launch_int(launch, 3), in_dimension = plim_launch_int(launch, 4);
    if (!plim_tensor_read(launch->arguments[0], index_bytes, &out) ||
        !plim_tensor_read(launch->arguments[1], index_bytes, &in) ||
        !plim_tensor_read(launch->arguments[2], index_bytes, &places) || inner <= 0 || size <= 0 ||
        places.dimensions != 1 || out_dimension < 0 || out_dimension >= out.dimensions ||
        in_dimension < 0 || in_dimension >= in.dimensions)
        return false;
    int64_t count = places.sizes[0], out_stride = out.strides[out_dimension],
            in_stride = in.strides[in_dimension];
    size_t out_bytes = (plim_tensor_span(&out) + (size_t)((size - 1) * out_stride)) * width;
    size_t in_bytes = (plim_tensor_span(&in) + (size_t)((count - 1) * in_stride)) * width;
    bool works = count * inner <= PLIM_MOST_ELEMENTS && plim_view_open(&to, out.at, out_bytes) &&
                 plim_view_open(&from, in.at, in_bytes) &&
                 plim_view_open(&indices, places.at, plim_tensor_span(&places) * place_bytes);
    for (int64_t i = 0; works && i < count; i++) {
        struct plim_number index, a, b;
        unsigned char known = plim_view_get(
            &indices, plim_tensor_offset(&places, (size_t)i) * place_bytes, plan->types[1], &index);
        works = known & PLIM_KNOWN && index.i >= 0 && index.i < size;
        for (int64_t k = 0; works && k < inner; k++) {
            size_t at =
                (plim_tensor_offset(&out, (size_t)k) + (size_t)(index.i * out_stride)) * width;
            size_t source = (plim_tensor_offset(&in, (size_t)k) + (size_t)(i * in_stride)) * width;
            unsigned char all = plim_known_both(known, plim_view_get(&to, at, plan->types[0], &a));
            all = plim_known_both(all, plim_view_get(&from, source, plan->types[0], &b));
            a.i = (int64_t)((uint64_t)a.i + (uint64_t)alpha.i * (uint64_t)b.i);
            a.f += alpha.f * b.f;
            plim_view_put(&to, at, plan->types[0], a, all);
        }
    }
    if (works)
        plim_view_store(&to, launch->kernel);
    else
        plim_launch_spoil(launch, out.at, out_bytes);
    plim_view_close(&to);
    plim_view_close(&from);
    plim_view_close(&indices);
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
