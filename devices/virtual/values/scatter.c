/* gather and scatter along a dimension: _scatter_gather_elementwise_kernel
 * (aten/src/ATen/native/cuda/ScatterGatherKernel.cu, PyTorch 2.0 to 2.15). Arguments: (int count, closure), where the
 * closure is
 *
 *     {OffsetCalculator<3>; indices; size; a reference; self; stride in elements; numel; source}     gather, scatter
 *     {OffsetCalculator<2>; indices; size; a reference; self; stride in elements; numel; a number}   scatter of a
 *     number
 *
 * The operands of the calculator are self (or the output), the source, and the indices. */
#include "devices/virtual/memory/heap.h"
#include "plan.h"
#include <stdlib.h>
#include <string.h>

enum operation { ASSIGN, ADD, MULTIPLY, LARGEST, SMALLEST };
enum { OPERATION, SCATTERS, FILLS, WIDTH };

static bool read_operation(struct plim_name closure, struct plim_plan *plan)
{
    static const struct {
        const char *name;
        enum operation operation;
    } rows[] = {{"operator()<TensorAssign>", ASSIGN},
                {"operator()<ReduceAdd>", ADD},
                {"operator()<ReduceMultiply>", MULTIPLY},
                {"operator()<ReduceMaximum>", LARGEST},
                {"operator()<ReduceMinimum>", SMALLEST}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (plim_name_behind(closure, rows[i].name)) {
            plan->numbers[OPERATION] = rows[i].operation;
            return true;
        }
    return false;
}

/* _cuda_scatter_gather_internal_kernel<scatters, T, index>, _cuda_scatter_fill_internal_kernel<T,
 * index> */
static bool read(const char *list, struct plim_plan *plan)
{
    struct plim_name closure = plim_name_argument(list, 2);
    const char *fills = plim_name_behind(closure, "_cuda_scatter_fill_internal_kernel<");
    const char *moves = plim_name_behind(closure, "_cuda_scatter_gather_internal_kernel<");
    const char *types = fills ? fills : moves;
    if (!types || !read_operation(closure, plan)) return false;
    plan->numbers[FILLS] = fills != NULL;
    plan->numbers[SCATTERS] = fills || plim_name_begins(plim_name_argument(types, 0), "true");
    struct plim_name type = plim_name_argument(types, fills ? 0 : 1);
    int64_t opaque = plim_name_opaque_bytes(type);
    plan->types[0] = plim_name_type(type);
    plan->types[1] = plim_name_type(plim_name_argument(types, fills ? 1 : 2));
    plan->numbers[WIDTH] = opaque ? opaque : (int64_t)plim_type_bytes(plan->types[0]);
    bool is_opaque = plan->types[0] == PLIM_NO_TYPE;
    return plan->numbers[WIDTH] > 0 && plan->numbers[WIDTH] <= 8 &&
           (!is_opaque || plan->numbers[OPERATION] == ASSIGN) &&
           (plan->types[1] == PLIM_INT64 || plan->types[1] == PLIM_INT32);
}

struct scattering {
    const struct plim_offsets *offsets;
    int operands;
    size_t elements, width;
    struct {
        uintptr_t indices;
        int64_t size;
        uintptr_t reference, self;
        int64_t stride, numbers;
        uintptr_t source;
    } c;
};

static bool find(const struct plim_plan *plan, const struct plim_launch *launch,
                 struct scattering *s)
{
    const char *closure = launch->arguments[1];
    int32_t count = plim_launch_int(launch, 0);
    s->offsets = (const void *)closure;
    s->operands = plan->numbers[FILLS] ? 2 : 3;
    s->elements = (size_t)count;
    s->width = (size_t)plan->numbers[WIDTH];
    memcpy(&s->c, closure + plim_align(plim_offsets_bytes(s->operands), sizeof(uintptr_t)),
           sizeof(s->c));
    return count > 0 && plim_offsets_check(s->offsets, s->elements) &&
           plim_heap_is_device(s->c.indices) && plim_heap_is_device(s->c.self) && s->c.size > 0 &&
           s->c.stride >= 0 && (plan->numbers[FILLS] || plim_heap_is_device(s->c.source));
}

static struct plim_number combine(enum operation operation, struct plim_number a,
                                  struct plim_number b)
{
    int order = plim_number_compare(a, b);
    switch (operation) {
    case ADD:
        return (struct plim_number){(int64_t)((uint64_t)a.i + (uint64_t)b.i), a.f + b.f,
                                    a.is_float};
    case MULTIPLY:
        return (struct plim_number){(int64_t)((uint64_t)a.i * (uint64_t)b.i), a.f * b.f,
                                    a.is_float};
    case LARGEST:
        return order >= 0 ? a : b;
    default:
        return order <= 0 ? a : b;
    }
}

static void store_element(const struct plim_plan *plan, struct plim_view *to, size_t at,
                          const struct plim_view *from, size_t source, size_t width, unsigned char known)
{
    enum plim_type type = plan->types[0];
    struct plim_number a, b;
    if (plan->numbers[OPERATION] != ASSIGN) {
        known = plim_known_both(known, plim_view_get(to, at, type, &a));
        known = plim_known_both(known, plim_view_get(from, source, type, &b));
        plim_view_set(to, at, type, combine((enum operation)plan->numbers[OPERATION], a, b), known);
        return;
    }
    if (at + width > to->bytes) return;
    plim_view_move(to, at, from, source, width);
    for (size_t i = 0; i < width; i++)
        to->known[at + i] = plim_known_both(to->known[at + i], known);
}

/* Returns false if an index of a scatter is unknown or out of range: it may have written anywhere. */
static bool work(const struct plim_plan *plan, const struct scattering *s, struct plim_view *self,
                 const struct plim_view *source, const struct plim_view *indices)
{
    bool scatters = plan->numbers[SCATTERS];
    for (size_t e = 0; e < s->elements; e++) {
        struct plim_number index;
        size_t at = plim_offsets_of(s->offsets, e, 0, s->operands);
        size_t from = s->operands == 3 ? plim_offsets_of(s->offsets, e, 1, 3) : 0;
        size_t index_at = plim_offsets_of(s->offsets, e, s->operands - 1, s->operands);
        unsigned char known = plim_view_get(indices, index_at, plan->types[1], &index);
        bool is_place = known & PLIM_KNOWN && index.i >= 0 && index.i < s->c.size;
        if (!is_place && scatters) return false;
        if (!is_place) known = PLIM_UNKNOWN, index.i = 0;
        size_t moved = (size_t)(index.i * s->c.stride) * s->width;
        store_element(plan, self, at + (scatters ? moved : 0), source, from + (scatters ? 0 : moved),
                      s->width, known);
    }
    return true;
}

static bool run(const struct plim_plan *plan, const struct plim_launch *launch)
{
    struct scattering s;
    struct plim_view self = {0}, source = {0}, indices = {0};
    unsigned char number[8], known[8];
    if (!find(plan, launch, &s)) return false;
    size_t reach = (size_t)((s.c.size - 1) * s.c.stride) * s.width;
    size_t self_bytes = plim_offsets_last(s.offsets, 0, s.operands) + s.width +
                        (plan->numbers[SCATTERS] ? reach : 0);
    size_t source_bytes = plan->numbers[FILLS] ? 0
                                               : plim_offsets_last(s.offsets, 1, 3) + s.width +
                                                     (plan->numbers[SCATTERS] ? 0 : reach);
    size_t index_bytes =
        plim_offsets_last(s.offsets, s.operands - 1, s.operands) + plim_type_bytes(plan->types[1]);
    bool works = s.elements <= PLIM_MOST_ELEMENTS &&
                 plim_shadow_survey(s.c.indices, index_bytes) & PLIM_KNOWN &&
                 plim_view_open(&indices, s.c.indices, index_bytes) &&
                 plim_view_open(&self, s.c.self, self_bytes);
    if (works && !plan->numbers[FILLS]) works = plim_view_open(&source, s.c.source, source_bytes);
    if (plan->numbers[FILLS]) {
        memcpy(number, &s.c.source, sizeof(number));
        memset(known, PLIM_KNOWN, sizeof(known));
        source = (struct plim_view){.bytes = sizeof(number), .data = number, .known = known};
    }
    works = works && work(plan, &s, &self, &source, &indices);
    if (works)
        plim_view_store(&self, launch->kernel);
    else
        plim_launch_spoil(launch, s.c.self, self_bytes);
    plim_view_close(&self);
    plim_view_close(&indices);
    if (!plan->numbers[FILLS]) plim_view_close(&source);
    return true;
}

const struct plim_row plim_rows_scatter[] = {{"_scatter_gather_elementwise_kernel<", read, run},
                                             {0}};
