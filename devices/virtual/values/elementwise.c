/* Elementwise functions: at::native::{vectorized,unrolled}_elementwise_kernel and elementwise_kernel
 * (aten/src/ATen/native/cuda/CUDALoops.cuh, PyTorch 2.0 to 2.15). The operands are the output and up to three inputs:
 *
 *     (int count, functor, array<char *, n>)                                      contiguous, not converted
 *     (..., offset calculators, LoadWithCast, StoreWithCast)                      contiguous, possibly converted
 *     (int count, {OffsetCalculator<n>, array<char *, n>, functor})               strided
 *     (int count, {OffsetCalculator<n>, array<char *, n>, functor, array<ScalarType, n>})  strided and converted */
#include "devices/virtual/memory/heap.h"
#include "plan.h"
#include <string.h>

enum form { CONTIGUOUS, CONVERTED, STRIDED, STRIDED_CONVERTED };
enum { FORM, OPERANDS = 4 };

struct operands {
    size_t elements;
    int count;
    uintptr_t at[OPERANDS];
    enum plim_type types[OPERANDS];
    const struct plim_offsets *offsets; /* NULL: contiguous */
    const unsigned char *state;
    bool counts; /* converts a mask to integers, see counts_mask() */
};

/* --- kernel names ----------------------------------------------------------------------------- */

static bool read_vectorized(const char *list, struct plim_plan *plan)
{
    plan->numbers[FORM] = CONTIGUOUS;
    return plim_functor_read(plim_name_argument(list, 1), &plan->functor);
}

static bool read_unrolled(const char *list, struct plim_plan *plan)
{
    struct plim_name loader = plim_name_argument(list, 5);
    plan->numbers[FORM] = plim_name_behind(loader, "LoadWithCast") ? CONVERTED : CONTIGUOUS;
    return plim_functor_read(plim_name_argument(list, 0), &plan->functor);
}

static bool read_strided(const char *list, struct plim_plan *plan)
{
    struct plim_name closure = plim_name_argument(list, 2);
    bool converts = plim_name_begins(closure, "gpu_kernel_impl<");
    const char *functor =
        plim_name_behind(closure, converts ? "gpu_kernel_impl<" : "gpu_kernel_impl_nocast<");
    plan->numbers[FORM] = converts ? STRIDED_CONVERTED : STRIDED;
    if (!converts && !plim_name_begins(closure, "gpu_kernel_impl_nocast<")) return false;
    return plim_functor_read(plim_name_argument(functor, 0), &plan->functor);
}

/* --- operands --------------------------------------------------------------------------------- */

static void find_contiguous(const struct plim_plan *plan, const struct plim_launch *launch,
                            struct operands *out)
{
    out->state = launch->arguments[1];
    memcpy(out->at, launch->arguments[2], (size_t)out->count * sizeof(*out->at));
    if (plan->numbers[FORM] != CONVERTED) return;
    const int8_t *loads = launch->arguments[5], *stores = launch->arguments[6];
    out->types[0] = (enum plim_type)stores[0];
    for (int i = 1; i < out->count; i++) out->types[i] = (enum plim_type)loads[i - 1];
}

/* True if the types cannot be read: they follow a functor of unknown size. */
static bool lacks_types(const struct plim_plan *plan)
{
    return plan->numbers[FORM] == STRIDED_CONVERTED && !plim_functor_bytes(&plan->functor);
}

static void find_strided(const struct plim_plan *plan, const struct plim_launch *launch,
                         struct operands *out)
{
    const unsigned char *closure = launch->arguments[1];
    size_t at = plim_align(plim_offsets_bytes(out->count), sizeof(uintptr_t));
    out->offsets = (const struct plim_offsets *)(const void *)closure;
    memcpy(out->at, closure + at, (size_t)out->count * sizeof(*out->at));
    out->state = closure + at + (size_t)out->count * sizeof(*out->at);
    if (plan->numbers[FORM] != STRIDED_CONVERTED || lacks_types(plan)) return;
    const int8_t *types = (const int8_t *)out->state + plim_functor_bytes(&plan->functor);
    for (int i = 0; i < out->count; i++) out->types[i] = (enum plim_type)types[i];
}

/* True if a mask is converted to integers, which programs do in order to count what it selects. */
static bool counts_mask(const struct plim_plan *plan, const struct operands *o)
{
    const struct plim_function_row *row = plan->functor.row;
    return row && row->traits & PLIM_KEEPS_SIGN && o->count == 2 && o->types[1] == PLIM_BOOL &&
           plim_type_bytes(o->types[0]) > 1 && !plim_type_is_float(o->types[0]);
}

static bool find(const struct plim_plan *plan, const struct plim_launch *launch,
                 struct operands *out)
{
    const struct plim_functor *functor = &plan->functor;
    int32_t elements = plim_launch_int(launch, 0);
    *out = (struct operands){
        .elements = (size_t)elements, .count = 1 + functor->inputs, .types = {functor->result}};
    memcpy(&out->types[1], functor->arguments, sizeof(functor->arguments));
    if (plan->numbers[FORM] >= STRIDED)
        find_strided(plan, launch, out);
    else
        find_contiguous(plan, launch, out);
    out->counts = counts_mask(plan, out);
    if (elements <= 0 || (out->offsets && !plim_offsets_check(out->offsets, out->elements)))
        return false;
    for (int i = 0; i < out->count; i++)
        if (!plim_heap_is_device(out->at[i]) || !plim_type_bytes(out->types[i])) return false;
    return true;
}

static size_t span_of(const struct operands *o, int i)
{
    size_t width = plim_type_bytes(o->types[i]);
    return o->offsets ? plim_offsets_last(o->offsets, i, o->count) + width : o->elements * width;
}

static bool is_dense(const struct operands *o)
{
    return span_of(o, 0) == o->elements * plim_type_bytes(o->types[0]);
}

/* --- computing the elements ------------------------------------------------------------------- */

/* Assumes that a mask selects every element whose value is unknown. */
static void select_unknown(struct plim_column *mask, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (mask->known[i] & PLIM_KNOWN) continue;
        mask->i[i] = 1;
        mask->f[i] = 1;
        mask->known[i] = PLIM_KNOWN | PLIM_ASSUMPTION_ALL;
    }
}

/* Computes a single element if each input is one repeated number or entirely unknown, or if there are no inputs: the
 * output is then uniform too. Returns false if that is not so. */
static bool fill(const struct plim_function_call *call, const struct operands *o, const char *writer)
{
    struct plim_column in[3], out;
    unsigned char known, element[8] = {0};
    struct plim_view view = {.bytes = sizeof(element), .data = element, .known = &known};
    unsigned char states[sizeof(element)];
    const size_t first = 0;
    if (!is_dense(o)) return false;
    for (int i = 1; i < o->count; i++) {
        size_t width = plim_type_bytes(o->types[i]), span = span_of(o, i);
        if (!plim_shadow_is_filled(o->at[i], span, width, element, &known)) {
            if (!plim_shadow_is_spoilt(o->at[i], span, &known)) return false;
            memset(element, 0, sizeof(element));
        }
        memset(states, known, sizeof(states));
        view.known = states;
        plim_column_load(&in[i - 1], &view, &first, 1, o->types[i],
                         call->functor->arguments[i - 1]);
    }
    if (o->counts) select_unknown(&in[0], 1);
    plim_functor_apply(call, in, &out, 1);
    view.known = states;
    plim_column_store(&out, &view, &first, 1, o->types[0]);
    known = out.known[0];
    if (known & PLIM_KNOWN)
        plim_shadow_fill(o->at[0], element, plim_type_bytes(o->types[0]), known, span_of(o, 0));
    else
        plim_shadow_spoil_as(o->at[0], span_of(o, 0), plim_unknown_of(known), writer);
    return true;
}

/* Stores the offsets of `count` elements of each operand. */
static void set_offsets(const struct operands *o, size_t first, size_t count,
                        size_t offsets[OPERANDS][PLIM_CHUNK])
{
    for (int i = 0; i < o->count; i++) {
        size_t width = plim_type_bytes(o->types[i]);
        if (o->offsets)
            plim_offsets_row(o->offsets, first, count, i, o->count, offsets[i]);
        for (size_t k = 0; k < count && !o->offsets; k++) offsets[i][k] = (first + k) * width;
    }
}

static void work(const struct plim_function_call *call, const struct operands *o,
                 struct plim_view *views)
{
    size_t offsets[OPERANDS][PLIM_CHUNK];
    struct plim_column in[3], out;
    for (size_t first = 0; first < o->elements; first += PLIM_CHUNK) {
        size_t left = o->elements - first, count = left < PLIM_CHUNK ? left : PLIM_CHUNK;
        set_offsets(o, first, count, offsets);
        for (int i = 1; i < o->count; i++)
            plim_column_load(&in[i - 1], &views[i], offsets[i], count, o->types[i],
                             call->functor->arguments[i - 1]);
        if (o->counts) select_unknown(&in[0], count);
        plim_functor_apply(call, in, &out, count);
        plim_column_store(&out, &views[0], offsets[0], count, o->types[0]);
    }
}

/* True if any input value is known, or if there are no inputs. */
static bool knows_inputs(const struct operands *o)
{
    unsigned bits = o->count == 1 ? PLIM_KNOWN : 0;
    for (int i = 1; i < o->count; i++) bits |= plim_shadow_survey(o->at[i], span_of(o, i));
    return bits & PLIM_KNOWN;
}

/* True if the result may be known. Of unknown inputs that holds only for comparisons with themselves or with infinity,
 * for converted masks, and for the sign of a norm. */
static bool is_worth_it(const struct plim_functor *functor, const struct operands *o, bool knows)
{
    enum { NORMS = 64 };
    return knows || o->counts || o->elements <= NORMS ||
           (functor->row->result == PLIM_AS_TRUTH && plim_type_is_float(functor->inner[0]));
}

static bool is_too_much(const struct operands *o, bool knows)
{
    bool is_mask = o->count > 1;
    for (int i = 1; i < o->count; i++) is_mask &= o->types[i] == PLIM_BOOL;
    is_mask |= !plim_type_is_float(o->types[0]);
    return o->elements > (is_mask && knows ? PLIM_MOST_OF_MASK : PLIM_MOST_ELEMENTS);
}

static bool run(const struct plim_plan *plan, const struct plim_launch *launch)
{
    const struct plim_functor *functor = &plan->functor;
    struct plim_view views[OPERANDS] = {{0}};
    struct operands o;
    if (!find(plan, launch, &o)) return false;
    if (lacks_types(plan)) {
        plim_launch_spoil_block(launch, o.at[0]);
        return true;
    }
    const struct plim_function_call call = {
        .functor = functor, .state = o.state, .same = o.count == 3 && o.at[1] == o.at[2]};
    bool knows = knows_inputs(&o), works = functor->row && is_worth_it(functor, &o, knows);
    if (works && fill(&call, &o, launch->kernel)) return true;
    works = works && !is_too_much(&o, knows);
    for (int i = 1; i < o.count && works; i++)
        works = plim_view_open_mask(&views[i], o.at[i], span_of(&o, i));
    if (works && is_dense(&o))
        works = plim_view_blank_mask(&views[0], o.at[0], span_of(&o, 0));
    else if (works)
        works = plim_view_open_mask(&views[0], o.at[0], span_of(&o, 0));
    if (works) work(&call, &o, views);
    if (works)
        plim_view_store(&views[0], launch->kernel);
    else
        plim_launch_spoil(launch, o.at[0], span_of(&o, 0));
    if (!functor->row && strstr(launch->kernel, "_amp_non_finite_check"))
        plim_launch_check(launch, 1);
    for (int i = 0; i < o.count; i++) plim_view_close(&views[i]);
    return true;
}

/* Counts every operand once; a broadcast operand counts only the memory it spans. */
bool plim_elementwise_cost(const struct plim_plan *plan, const struct plim_launch *launch,
                           struct plim_cost *out)
{
    struct operands o;
    if (!find(plan, launch, &o)) return false;
    out->kind = o.offsets ? PLIM_COST_STRIDED : PLIM_COST_MOVE;
    for (int i = 0; i < o.count; i++) {
        size_t dense = o.elements * plim_type_bytes(o.types[i]), span = span_of(&o, i);
        out->number[0] += (int64_t)(span < dense ? span : dense);
    }
    return true;
}

int64_t plim_elementwise_jumps(const struct plim_plan *plan, const struct plim_launch *launch)
{
    enum { SECTOR_BYTES = 32 };
    struct operands o;
    int64_t bytes = 0;
    if (!find(plan, launch, &o) || !o.offsets || o.elements < 2) return 0;
    for (int i = 0; i < o.count; i++) {
        size_t step = plim_offsets_of(o.offsets, 1, i, o.count);
        if (step >= SECTOR_BYTES) bytes += (int64_t)o.elements * SECTOR_BYTES;
    }
    return bytes;
}

const struct plim_row plim_rows_elementwise[] = {
    {"vectorized_elementwise_kernel<", read_vectorized, run},
    {"unrolled_elementwise_kernel<", read_unrolled, run},
    {"elementwise_kernel<", read_strided, run},
    {0}};
