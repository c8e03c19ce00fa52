/* Access to elements by index: at::native::index_elementwise_kernel (aten/src/ATen/native/cuda/IndexKernel.cu, PyTorch
 * 2.0 to 2.15):
 *
 *     index_elementwise_kernel<threads, work, closure>(long count, closure)
 *         index, index_put: {OffsetCalculator<3>; output, input; number of indices; indices[25], sizes[25],
 *         strides[25]}
 *         flip:             {OffsetCalculator<2> with signed strides; output, input}
 *         index_fill:       {OffsetCalculator<2>; self, indices; size, stride; number}
 *         index_copy:       {OffsetCalculator<3>; self, indices, source; size, stride}
 *         take, put:        {OffsetCalculator<2>; output or input, indices; long count; bool contiguous;
 *                            OffsetCalculator<1>; [long count, if it accumulates;] the indexed tensor} */
#include "devices/virtual/memory/heap.h"
#include "plan.h"
#include <stdlib.h>
#include <string.h>

enum kind { INDEX, INDEX_PUT, FLIP, FILL, COPY, TAKE, PUT };
enum { KIND, WIDTH, ADDS };
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
    const char *take = plim_name_behind(closure, "cuda_take_put_kernel<");
    if (take) {
        struct plim_name function = plim_name_argument(take, 2);
        plan->numbers[KIND] = plim_name_behind(function, "take_kernel(") ? TAKE : PUT;
        plan->types[0] = plim_name_type(plim_name_argument(take, 0));
        plan->numbers[WIDTH] = (int64_t)plim_type_bytes(plan->types[0]);
        plan->numbers[ADDS] = plan->numbers[KIND] == PUT && plim_name_behind(function, "int)#1}");
        bool is_put = plan->numbers[ADDS] || plim_name_behind(function, "int)#2}");
        return plan->numbers[WIDTH] > 0 && (plan->numbers[KIND] == TAKE || is_put) &&
               plim_name_begins(plim_name_argument(take, 1), "int");
    }
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (plim_name_begins(closure, kinds[i].name)) {
            plan->numbers[KIND] = kinds[i].kind;
            plan->numbers[WIDTH] = plim_name_opaque_bytes(closure);
            return plan->numbers[WIDTH] > 0;
        }
    return false;
}

/* --- operands --------------------------------------------------------------------------------- */

struct gathering {
    const struct plim_offsets *offsets;
    int operands;
    size_t elements;
    const char *rest; /* of the closure, after the offset calculator */
    struct plim_view views[OPERANDS];
    int64_t low[OPERANDS]; /* lowest offset of each operand, where its view begins */
};

/* The position of an element in each operand. Elements are visited in order: a division per dimension and element would
 * dominate the run time. */
struct place {
    uint32_t at[PLIM_DIMENSIONS];
    int64_t offset[OPERANDS]; /* bytes from the start of the operand's view */
};

/* Returns the position of the first element; the views must be open. */
static struct place first(const struct gathering *g)
{
    struct place place = {0};
    for (int i = 0; i < g->operands; i++) place.offset[i] = -g->low[i];
    return place;
}

/* Advances to the next element. Strides may be negative, as in flip. */
static void next(const struct gathering *g, struct place *place)
{
    for (int d = 0; d < g->offsets->dimensions; d++) {
        uint32_t size = g->offsets->sizes[d][0];
        bool is_last = ++place->at[d] == size;
        if (is_last) place->at[d] = 0;
        for (int i = 0; i < g->operands; i++) {
            int64_t stride = (int32_t)g->offsets->strides[d * g->operands + i];
            place->offset[i] += is_last ? -stride * (int64_t)(size - 1) : stride;
        }
        if (!is_last) return;
    }
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

static uintptr_t pointer_at(const char *rest, size_t i)
{
    uintptr_t value;
    memcpy(&value, rest + i * sizeof(value), sizeof(value));
    return value;
}

/* Returns the number of bytes that the operand's elements span, including `more` bytes after the last offset, and moves
 * *at to the first of them. Stores the lowest offset in `g`. */
static size_t span_of(struct gathering *g, int operand, size_t width, int64_t more, uintptr_t *at)
{
    int64_t high;
    range_of(g, operand, &g->low[operand], &high);
    *at += (uintptr_t)g->low[operand];
    return (size_t)(high - g->low[operand] + more) + width;
}

static bool open(struct gathering *g, int operand, uintptr_t at, size_t width, int64_t more)
{
    size_t bytes = span_of(g, operand, width, more, &at);
    return plim_view_open(&g->views[operand], at, bytes);
}

/* Marks the output (operand 0) as unknown if nothing is known of the input (operand 1), as is usual for gradients.
 * Returns false if something is known. */
static bool spoil_unknown(struct gathering *g, const struct plim_launch *launch, size_t width,
                          int64_t reach)
{
    uintptr_t to = pointer_at(g->rest, 0), from = pointer_at(g->rest, 1);
    size_t written = span_of(g, 0, width, 0, &to), read = span_of(g, 1, width, reach, &from);
    if (plim_shadow_survey(from, read) & PLIM_KNOWN) return false;
    plim_launch_spoil(launch, to, written);
    return true;
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

static bool read_indices(const struct gathering *g, struct indices *x)
{
    x->count = (size_t)pointer_at(g->rest, 2);
    if (x->count < 1 || x->count > MOST_INDICES) return false;
    for (size_t i = 0; i < x->count; i++) {
        x->sizes[i] = (int64_t)pointer_at(g->rest, 3 + MOST_INDICES + i);
        x->strides[i] = (int64_t)pointer_at(g->rest, 3 + 2 * MOST_INDICES + i);
        if (x->sizes[i] <= 0 || x->strides[i] < 0) return false;
    }
    return true;
}

static bool open_indices(const struct gathering *g, struct indices *x)
{
    int64_t low, high;
    range_of(g, 2, &low, &high);
    for (size_t i = 0; i < x->count; i++)
        if (low < 0 || !plim_view_open(&x->views[i], pointer_at(g->rest, 3 + i), (size_t)high + 8))
            return false;
    return true;
}

/* Returns the largest offset that the indices can produce, in bytes. */
static int64_t reach_of(const struct indices *x)
{
    int64_t reach = 0;
    for (size_t i = 0; i < x->count; i++) reach += (x->sizes[i] - 1) * x->strides[i];
    return reach;
}

/* Stores the offset given by an element's indices. Returns PLIM_UNKNOWN if an index is unknown or out of range. */
static unsigned char find_place(const struct indices *x, int64_t element, int64_t *place)
{
    unsigned char known = PLIM_KNOWN;
    *place = 0;
    for (size_t i = 0; i < x->count; i++) {
        struct plim_number index;
        known = plim_known_both(known, plim_view_get(&x->views[i], (size_t)element,
                                                     PLIM_INT64, &index));
        if (index.i < 0) index.i += x->sizes[i];
        if (index.i < 0 || index.i >= x->sizes[i]) return PLIM_UNKNOWN;
        *place += index.i * x->strides[i];
    }
    return known;
}

static bool run_index(const struct plim_plan *plan, const struct plim_launch *launch,
                      struct gathering *g)
{
    bool puts = plan->numbers[KIND] == INDEX_PUT;
    size_t width = (size_t)plan->numbers[WIDTH];
    struct indices x = {0};
    if (!read_indices(g, &x)) return false;
    int64_t reach = reach_of(&x);
    if (!puts && spoil_unknown(g, launch, width, reach)) return true;
    bool works = g->elements <= PLIM_MOST_ELEMENTS && open_indices(g, &x) &&
            open(g, 0, pointer_at(g->rest, 0), width, puts ? reach : 0) &&
            open(g, 1, pointer_at(g->rest, 1), width, puts ? 0 : reach);
    struct place at = first(g);
    for (size_t e = 0; works && e < g->elements; e++, next(g, &at)) {
        int64_t place, out = at.offset[0], in = at.offset[1];
        unsigned char known = find_place(&x, at.offset[2], &place);
        if (puts && !(known & PLIM_KNOWN))
            works = false; /* the element may have been written anywhere */
        else if (puts)
            plim_view_move_by(&g->views[0], (size_t)(out + place), &g->views[1], (size_t)in, width, known);
        else if (known & PLIM_KNOWN)
            plim_view_move_by(&g->views[0], (size_t)out, &g->views[1], (size_t)(in + place), width, known);
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
    if (spoil_unknown(g, launch, width, 0)) return true;
    bool works = g->elements <= PLIM_MOST_ELEMENTS &&
                 open(g, 0, pointer_at(g->rest, 0), width, 0) &&
                 open(g, 1, pointer_at(g->rest, 1), width, 0);
    struct place at = first(g);
    for (size_t e = 0; works && e < g->elements; e++, next(g, &at))
        plim_view_move(&g->views[0], (size_t)at.offset[0], &g->views[1], (size_t)at.offset[1], width);
    if (works) plim_view_store(&g->views[0], launch->kernel);
    return works;
}

/* index_fill and index_copy: write one number, or the elements of the source, to the elements of self that the indices
 * select. */
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
    struct place at = first(g);
    for (size_t e = 0; works && e < g->elements; e++, next(g, &at)) {
        struct plim_number index;
        unsigned char known =
            plim_view_get(&g->views[1], (size_t)at.offset[1], PLIM_INT64, &index);
        if (index.i < 0) index.i += size;
        works = known & PLIM_KNOWN && index.i >= 0 && index.i < size;
        if (!works) break;
        size_t to = (size_t)(at.offset[0] + index.i * stride);
        size_t source = copies ? (size_t)at.offset[2] : 0;
        plim_view_move_by(&g->views[0], to, copies ? &g->views[2] : &constant, source, width, known);
    }
    if (works) plim_view_store(&g->views[0], launch->kernel);
    return works;
}

/* --- take and put ----------------------------------------------------------------------------- */

/* The tensor that take reads and put writes, indexed as if it had one dimension. */
struct indexed {
    const struct plim_offsets *offsets; /* in elements; NULL: contiguous */
    uintptr_t at;
    int64_t count;
};

static bool find_indexed(const struct plim_plan *plan, const struct gathering *g, struct indexed *x)
{
    enum { COUNT = 2 * sizeof(uintptr_t), CONTIGUOUS = COUNT + sizeof(int64_t), OFFSETS = CONTIGUOUS + 4 };
    const struct plim_offsets *offsets = (const void *)(g->rest + OFFSETS);
    size_t end = plim_align(OFFSETS + plim_offsets_bytes(1), sizeof(x->at)),
           more = plan->numbers[ADDS] ? sizeof(x->count) : 0;
    memcpy(&x->count, g->rest + COUNT, sizeof(x->count));
    memcpy(&x->at, g->rest + end + more, sizeof(x->at));
    x->offsets = g->rest[CONTIGUOUS] ? NULL : offsets;
    return x->count > 0 && plim_offsets_check(offsets, (size_t)x->count) && plim_heap_is_device(x->at);
}

static bool open_indexed(struct gathering *g, const struct indexed *x, size_t width)
{
    size_t last = x->offsets ? plim_offsets_last(x->offsets, 0, 1) : (size_t)x->count - 1;
    return g->elements <= PLIM_MOST_ELEMENTS && plim_view_open(&g->views[2], x->at, (last + 1) * width) &&
           open(g, 0, pointer_at(g->rest, 0), width, 0) && open(g, 1, pointer_at(g->rest, 1), 8, 0);
}

/* Stores the position that an element's index selects, in elements. Returns PLIM_UNKNOWN if the index is unknown or out
 * of range. */
static unsigned char point(const struct gathering *g, const struct place *at, const struct indexed *x, size_t *to)
{
    struct plim_number index;
    unsigned char known = plim_view_get(&g->views[1], (size_t)at->offset[1], PLIM_INT64, &index);
    if (index.i < 0) index.i += x->count;
    bool is_one = index.i >= 0 && index.i < x->count;
    *to = !is_one ? 0 : x->offsets ? plim_offsets_of(x->offsets, (size_t)index.i, 0, 1) : (size_t)index.i;
    return is_one ? known : PLIM_UNKNOWN;
}

static bool run_take(const struct plim_plan *plan, const struct plim_launch *launch,
                     struct gathering *g)
{
    size_t width = (size_t)plan->numbers[WIDTH], from;
    struct indexed x;
    bool works = find_indexed(plan, g, &x) && open_indexed(g, &x, width);
    struct place at = first(g);
    for (size_t e = 0; works && e < g->elements; e++, next(g, &at)) {
        unsigned char known = point(g, &at, &x, &from);
        plim_view_move_by(&g->views[0], (size_t)at.offset[0], &g->views[2], from * width, width, known);
    }
    if (works) plim_view_store(&g->views[0], launch->kernel);
    return works;
}

/* Writes one element of put. If several elements go to the same place, the order in which they are written or added is
 * undefined; that does not matter for sums of integers, or if the values are equal. */
static void store_one(const struct plim_plan *plan, struct gathering *g, size_t to, size_t from, unsigned char known,
                      bool is_first)
{
    enum plim_type type = plan->types[0];
    struct plim_number old, number;
    unsigned char had = plim_view_get(&g->views[2], to, type, &old);
    known = plim_known_both(known, plim_view_get(&g->views[0], from, type, &number));
    bool differs = !is_first && (plan->numbers[ADDS] ? number.is_float : plim_number_compare(old, number) != 0);
    if (plan->numbers[ADDS] || !is_first) known = plim_known_both(known, had);
    if (plan->numbers[ADDS]) {
        number.i = (int64_t)((uint64_t)number.i + (uint64_t)old.i);
        number.f += old.f;
    }
    plim_view_set(&g->views[2], to, type, number, differs ? PLIM_UNKNOWN : known);
}

static bool run_put(const struct plim_plan *plan, const struct plim_launch *launch, struct gathering *g)
{
    size_t width = (size_t)plan->numbers[WIDTH], to;
    struct indexed x;
    if (!find_indexed(plan, g, &x)) return false;
    bool works = !(plan->types[0] == PLIM_BOOL && plan->numbers[ADDS]) && open_indexed(g, &x, width);
    bool *is_written = works ? calloc(g->views[2].bytes / width, sizeof(*is_written)) : NULL;
    struct place at = first(g);
    for (size_t e = 0; is_written && works && e < g->elements; e++, next(g, &at)) {
        unsigned char known = point(g, &at, &x, &to);
        works = known & PLIM_KNOWN; /* otherwise it may have been written anywhere */
        if (works) store_one(plan, g, to * width, (size_t)at.offset[0], known, !is_written[to]);
        is_written[to] = true;
    }
    if (works && is_written)
        plim_view_store(&g->views[2], launch->kernel);
    else
        plim_launch_spoil_block(launch, x.at);
    free(is_written);
    return true;
}

static bool run(const struct plim_plan *plan, const struct plim_launch *launch)
{
    typedef bool run_kind(const struct plim_plan *plan, const struct plim_launch *launch, struct gathering *g);
    static const struct {
        int operands;
        run_kind *run;
    } runs[] = {[INDEX] = {3, run_index}, [INDEX_PUT] = {3, run_index}, [FLIP] = {2, run_flip},
                [FILL] = {2, run_place},  [COPY] = {3, run_place},      [TAKE] = {2, run_take},
                [PUT] = {2, run_put}};
    struct gathering g;
    enum kind kind = (enum kind)plan->numbers[KIND];
    if (!begin(&g, launch, runs[kind].operands)) return false;
    bool works = runs[kind].run(plan, launch, &g);
    /* Otherwise the whole block that the kernel writes becomes unknown; of a put that fails here, that block is not
     * known. */
    if (!works && kind != PUT) plim_launch_spoil_block(launch, pointer_at(g.rest, 0));
    end(&g);
    return works || kind != PUT;
}

const struct plim_row plim_rows_index[] = {{"index_elementwise_kernel<", read, run}, {0}};
