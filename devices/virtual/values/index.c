/* Elements by their indices: at::native::index_elementwise_kernel
 * (aten/src/ATen/native/cuda/IndexKernel.cu, PyTorch 2.0 to 2.11), vectorized_gather_kernel
 * (IndexKernelUtils.cu, from 2.7) and indexSelect*Index (Indexing.cu).
 *
 *     index_elementwise_kernel<threads, work, closure>(long count, closure)
 *         index, index_put: {OffsetCalculator<3>; output, input; how many; indices[25], sizes[25],
 * strides[25]} flip:             {OffsetCalculator<2> of signed strides; output, input} index_fill:
 * {OffsetCalculator<2>; self, indices; size, stride; number} index_copy: {OffsetCalculator<3>;
 * self, indices, source; size, stride} take:             {OffsetCalculator<2>; output, indices; int
 * count; bool contiguous; OffsetCalculator<1>; source} vectorized_gather_kernel<bytes, I>(char
 * *out, char *in, I *indices, int count, long slice, long size, long in stride, long out stride,
 * bool) indexSelectSmallIndex<T, I, index, ...>(TensorInfo<T> out, TensorInfo<const T> in,
 * TensorInfo<const I> indices, int out dimension, int in dimension, index inner, long size)
 *     indexSelectLargeIndex<...>(the same, ..., index total, index inner, long size) */
#include "devices/virtual/memory/heap.h"
#include "plan.h"
#include <stdlib.h>
#include <string.h>

enum kind { INDEX, INDEX_PUT, FLIP, FILL, COPY, TAKE, PUT };
enum { KIND, WIDTH, INDEX_BYTES };
enum { MOST_INDICES = 25, OPERANDS = 3 };

static const struct {
    const char *name;
    enum kind kind;
} kinds[] = {{"gpu_index_kernel<index_kernel_impl<", INDEX},
             {"gpu_index_kernel<index_put_kernel_impl<", INDEX_PUT},
             {"flip_kernel_impl<", FLIP},
             {"index_fill_kernel_impl<", FILL},
             {"index_copy_kernel_impl<", COPY},
             {"cuda_take_put_kernel<", TAKE}};

static bool read(const char *list, struct plim_plan *plan)
{
    struct plim_name closure = plim_name_argument(list, 2);
    const char *bytes = plim_name_behind(closure, "OpaqueType<");
    const char *take = plim_name_behind(closure, "cuda_take_put_kernel<");
    if (take) {
        plan->numbers[KIND] = plim_name_behind(closure, "take_kernel(") ? TAKE : PUT;
        plan->numbers[WIDTH] =
            (int64_t)plim_type_bytes(plim_name_type(plim_name_argument(take, 0)));
        return plan->numbers[WIDTH] > 0;
    }
    for (size_t i = 0; bytes && i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (plim_name_begins(closure, kinds[i].name)) {
            plan->numbers[KIND] = kinds[i].kind;
            plan->numbers[WIDTH] = strtol(bytes, NULL, 10);
            return plan->numbers[WIDTH] > 0;
        }
    return false;
}

/* --- operands --------------------------------------------------------------------------------- */

struct gathering {
    const struct plim_offsets *offsets;
    int operands;
    size_t elements;
    const char *rest; /* of the closure */
    struct plim_view views[OPERANDS];
    int64_t low[OPERANDS]; /* the lowest offset: the view begins there */
};

/* Strides may be negative; flip's are. */
static int64_t offset_of(const struct gathering *g, size_t index, int operand)
{
    int64_t sum = 0;
    for (int d = 0; d < g->offsets->dimensions; d++) {
        size_t size = g->offsets->sizes[d][0];
        sum += (int64_t)(index % size) * (int32_t)g->offsets->strides[d * g->operands + operand];
        index /= size;
    }
    return sum;
}

static void range_of(const struct gathering *g, int operand, int64_t *low, int64_t *high)
{
    *low = *high = 0;
    for (int d = 0; d < g->offsets->dimensions; d++) {
        int64_t reach = (int64_t)(g->offsets->sizes[d][0] - 1) *
                        (int32_t)g->offsets->strides[d * g->operands + operand];
        *(reach < 0 ? low : high) += reach;
    }
}

/* The view of an operand's elements, and `more` bytes behind what the offsets reach. */
static bool open(struct gathering *g, int operand, uintptr_t at, size_t width, int64_t more)
{
    int64_t high;
    range_of(g, operand, &g->low[operand], &high);
    return plim_view_open(&g->views[operand], at + (uintptr_t)g->low[operand],
                          (size_t)(high - g->low[operand] + more) + width);
}

static uintptr_t pointer_at(const char *rest, size_t i)
{
    uintptr_t value;
    memcpy(&value, rest + i * sizeof(value), sizeof(value));
    return value;
}

static bool begin(struct gathering *g, const struct plim_launch *launch, int operands)
{
    const char *closure = launch->arguments[1];
    int64_t count = plim_launch_long(launch, 0);
    *g = (struct gathering){.offsets = (const void *)closure,
                            .operands = operands,
                            .elements = (size_t)count,
                            .rest = closure +
                                    plim_align(plim_offsets_bytes(operands), sizeof(uintptr_t))};
    return count > 0 && plim_offsets_check(g->offsets, g->elements);
}

static void end(struct gathering *g)
{
    for (int i = 0; i < OPERANDS; i++) plim_view_close(&g->views[i]);
}

/* --- index and index_put ---------------------------------------------------------------------- */

struct indices {
    size_t count;
    struct plim_view views[MOST_INDICES];
    int64_t sizes[MOST_INDICES], strides[MOST_INDICES];
};

static bool open_indices(struct gathering *g, struct indices *x)
{
    int64_t low, high;
    x->count = (size_t)pointer_at(g->rest, 2);
    if (x->count < 1 || x->count > MOST_INDICES) return false;
    range_of(g, 2, &low, &high);
    if (low < 0) return false;
    for (size_t i = 0; i < x->count; i++) {
        x->sizes[i] = (int64_t)pointer_at(g->rest, 3 + MOST_INDICES + i);
        x->strides[i] = (int64_t)pointer_at(g->rest, 3 + 2 * MOST_INDICES + i);
        if (x->sizes[i] <= 0 || x->strides[i] < 0 ||
            !plim_view_open(&x->views[i], pointer_at(g->rest, 3 + i), (size_t)high + 8))
            return false;
    }
    return true;
}

/* How far the indices reach. */
static int64_t reach_of(const struct indices *x)
{
    int64_t reach = 0;
    for (size_t i = 0; i < x->count; i++) reach += (x->sizes[i] - 1) * x->strides[i];
    return reach;
}

/* PLIM_UNKNOWN: an index is not known, or none of this tensor's. */
static unsigned char find_place(const struct gathering *g, const struct indices *x, size_t element,
                                int64_t *place)
{
    unsigned char known = PLIM_KNOWN;
    *place = 0;
    for (size_t i = 0; i < x->count; i++) {
        struct plim_number index;
        known = plim_known_both(known, plim_view_get(&x->views[i], (size_t)offset_of(g, element, 2),
                                                     PLIM_INT64, &index));
        if (index.i < 0) index.i += x->sizes[i];
        if (index.i < 0 || index.i >= x->sizes[i]) return PLIM_UNKNOWN;
        *place += index.i * x->strides[i];
    }
    return known;
}

/* An element moves, and is known no better than where it moves to. */
static void move(struct plim_view *to, size_t at, const struct plim_view *from, size_t source,
                 size_t width, unsigned char known)
{
    if (at + width > to->bytes) return;
    plim_view_move(to, at, from, source, width);
    for (size_t b = 0; b < width; b++)
        to->known[at + b] = plim_known_both(to->known[at + b], known);
}

static bool run_index(const struct plim_plan *plan, const struct plim_launch *launch,
                      struct gathering *g)
{
    bool puts = plan->numbers[KIND] == INDEX_PUT;
    size_t width = (size_t)plan->numbers[WIDTH];
    struct indices x = {0};
    bool works = g->elements <= PLIM_MOST_ELEMENTS && open_indices(g, &x);
    int64_t reach = works ? reach_of(&x) : 0;
    works = works && open(g, 0, pointer_at(g->rest, 0), width, puts ? reach : 0) &&
            open(g, 1, pointer_at(g->rest, 1), width, puts ? 0 : reach);
    for (size_t e = 0; works && e < g->elements; e++) {
        int64_t place, out = offset_of(g, e, 0) - g->low[0], in = offset_of(g, e, 1) - g->low[1];
        unsigned char known = find_place(g, &x, e, &place);
        if (puts && !(known & PLIM_KNOWN))
            works = false; /* anywhere */
        else if (puts)
            move(&g->views[0], (size_t)(out + place), &g->views[1], (size_t)in, width, known);
        else if (known & PLIM_KNOWN)
            move(&g->views[0], (size_t)out, &g->views[1], (size_t)(in + place), width, known);
        else
            memset(g->views[0].known + out, PLIM_UNKNOWN, width);
    }
    if (works) plim_view_store(&g->views[0], launch->kernel);
    for (size_t i = 0; i < x.count; i++) plim_view_close(&x.views[i]);
    return works;
}

/* --- flip, index_fill, index_copy ------------------------------------------------------------- */

static bool run_flip(const struct plim_plan *plan, const struct plim_launch *launch,
                     struct gathering *g)
{
    size_t width = (size_t)plan->numbers[WIDTH];
    bool works = g->elements <= PLIM_MOST_ELEMENTS &&
                 open(g, 0, pointer_at(g->rest, 0), width, 0) &&
                 open(g, 1, pointer_at(g->rest, 1), width, 0);
    for (size_t e = 0; works && e < g->elements; e++)
        plim_view_move(&g->views[0], (size_t)(offset_of(g, e, 0) - g->low[0]), &g->views[1],
                       (size_t)(offset_of(g, e, 1) - g->low[1]), width);
    if (works) plim_view_store(&g->views[0], launch->kernel);
    return works;
}

/* Both write to places of self that indices name, one a number and one a source's elements. */
static bool run_place(const struct plim_plan *plan, const struct plim_launch *launch,
                      struct gathering *g)
{
    bool copies = plan->numbers[KIND] == COPY;
    size_t width = (size_t)plan->numbers[WIDTH], sizes = copies ? 3 : 2;
    int64_t size = (int64_t)pointer_at(g->rest, sizes),
            stride = (int64_t)pointer_at(g->rest, sizes + 1) * (int64_t)width;
    unsigned char number[16], number_known[16];
    struct plim_view constant = {.bytes = sizeof(number), .data = number, .known = number_known};
    memcpy(number, g->rest + (sizes + 2) * sizeof(uintptr_t), sizeof(number));
    memset(number_known, PLIM_KNOWN, sizeof(number_known));
    bool works = g->elements <= PLIM_MOST_ELEMENTS && size > 0 && stride >= 0 &&
                 width <= sizeof(number) && open(g, 1, pointer_at(g->rest, 1), 8, 0) &&
                 open(g, 0, pointer_at(g->rest, 0), width, (size - 1) * stride) &&
                 (!copies || open(g, 2, pointer_at(g->rest, 2), width, 0));
    for (size_t e = 0; works && e < g->elements; e++) {
        struct plim_number index;
        unsigned char known = plim_view_get(&g->views[1], (size_t)(offset_of(g, e, 1) - g->low[1]),
                                            PLIM_INT64, &index);
        if (index.i < 0) index.i += size;
        works = known & PLIM_KNOWN && index.i >= 0 && index.i < size;
        if (!works) break;
        size_t at = (size_t)(offset_of(g, e, 0) - g->low[0] + index.i * stride);
        size_t source = copies ? (size_t)(offset_of(g, e, 2) - g->low[2]) : 0;
        move(&g->views[0], at, copies ? &g->views[2] : &constant, source, width, known);
    }
    if (works) plim_view_store(&g->views[0], launch->kernel);
    return works;
}

/* The tensor that take reads and put writes. */
static uintptr_t indexed_of(const struct gathering *g)
{
    uintptr_t at;
    memcpy(&at, g->rest + plim_align(2 * sizeof(at) + 8 + plim_offsets_bytes(1), sizeof(at)),
           sizeof(at));
    return at;
}

/* Of the whole source, as if it had one dimension. */
static bool run_take(const struct plim_plan *plan, const struct plim_launch *launch,
                     struct gathering *g)
{
    size_t width = (size_t)plan->numbers[WIDTH];
    uintptr_t from = indexed_of(g);
    int32_t count;
    memcpy(&count, g->rest + 2 * sizeof(uintptr_t), sizeof(count));
    bool is_contiguous = g->rest[2 * sizeof(uintptr_t) + 4] != 0;
    bool works = count > 0 && is_contiguous && g->elements <= PLIM_MOST_ELEMENTS &&
                 open(g, 0, pointer_at(g->rest, 0), width, 0) &&
                 open(g, 1, pointer_at(g->rest, 1), 8, 0) &&
                 plim_view_open(&g->views[2], from, (size_t)count * width);
    for (size_t e = 0; works && e < g->elements; e++) {
        struct plim_number index;
        unsigned char known = plim_view_get(&g->views[1], (size_t)(offset_of(g, e, 1) - g->low[1]),
                                            PLIM_INT64, &index);
        if (index.i < 0) index.i += count;
        if (index.i < 0 || index.i >= count) known = PLIM_UNKNOWN, index.i = 0;
        move(&g->views[0], (size_t)(offset_of(g, e, 0) - g->low[0]), &g->views[2],
             (size_t)index.i * width, width, known);
    }
    if (works) plim_view_store(&g->views[0], launch->kernel);
    return works;
}

static bool run(const struct plim_plan *plan, const struct plim_launch *launch)
{
    struct gathering g;
    enum kind kind = (enum kind)plan->numbers[KIND];
    if (!begin(&g, launch, kind == FLIP || kind == FILL || kind >= TAKE ? 2 : 3)) return false;
    bool works = kind == PUT                          ? false
                 : kind == TAKE                       ? run_take(plan, launch, &g)
                 : kind == FLIP                       ? run_flip(plan, launch, &g)
                 : kind == INDEX || kind == INDEX_PUT ? run_index(plan, launch, &g)
                                                      : run_place(plan, launch, &g);
    /* Then the whole block that it writes to. */
    if (!works) {
        plim_launch_spoil_block(launch, kind == PUT ? indexed_of(&g) : pointer_at(g.rest, 0));
    }
    end(&g);
    return true;
}

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
            move(&to, (plim_tensor_offset(&out, (size_t)k) + (size_t)(i * out_stride)) * width,
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

const struct plim_row plim_rows_index[] = {{"index_elementwise_kernel<", read, run},
                                           {"vectorized_gather_kernel<", read_gather, run_gather},
                                           {"indexSelectSmallIndex<", read_select, run_small},
                                           {"indexSelectLargeIndex<", read_select, run_large},
                                           {"indexFuncSmallIndex<", read_add, run_add_small},
                                           {0}};
