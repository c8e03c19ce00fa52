/* at::native::reduce_kernel (aten/src/ATen/native/cuda/Reduce.cuh, PyTorch 2.0 to 2.15), and its JIT-compiled variant,
 * of which only the name of prod's tells the operation. There is one argument:
 *
 *     {operation, identity, ReduceConfig of 16 words, OffsetCalculator<1> of the inputs,
 *      OffsetCalculator<2> of the outputs, source, outputs[2], two buffers, semaphores, base index,
 *      accumulate, final}
 *
 * The size of the first two fields is found by trying: the configuration starts with the size of an element and the
 * numbers of inputs and outputs, which must agree with the offset calculators. */
#include "devices/virtual/memory/heap.h"
#include "plan.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum kind {
    SUM,
    PRODUCT,
    MEAN,
    ALL,
    ANY,
    LARGEST,
    SMALLEST,
    LARGEST_AT,
    SMALLEST_AT,
    LARGEST_AND_AT,
    SMALLEST_AND_AT,
    SMALLEST_AND_LARGEST,
    ABSOLUTE_SUM,
    ABSOLUTE_LARGEST,
    NOT_ZERO,
    NORM, /* result unknown, but not negative */
    UNKNOWN_KIND
};
enum { KIND, THREADS, INPUT = 0, OUTPUT };

static const struct {
    const char *name;
    enum kind kind;
} kinds[] = {{"sum_functor<", SUM},
             {"MeanOps<", MEAN},
             {"and_kernel_cuda", ALL},
             {"or_kernel_cuda", ANY},
             {"MaxNanFunctor<", LARGEST},
             {"MinNanFunctor<", SMALLEST},
             {"ArgMaxOps<", LARGEST_AT},
             {"ArgMinOps<", SMALLEST_AT},
             {"MaxOps<", LARGEST_AND_AT},
             {"MinOps<", SMALLEST_AND_AT},
             {"MinMaxOps<", SMALLEST_AND_LARGEST},
             {"NormOneOps<", ABSOLUTE_SUM},
             {"AbsMaxOps<", ABSOLUTE_LARGEST},
             {"NormZeroOps<", NOT_ZERO},
             {"NormTwoOps<", NORM},
             {"NormOps<", NORM},
             {"prod_functor<", PRODUCT}};

static enum kind kind_of(struct plim_name name)
{
    const char *inner = plim_name_behind(name, "func_wrapper_t<");
    struct plim_name function = inner ? plim_name_argument(inner, 1) : name;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (plim_name_begins(function, kinds[i].name)) return kinds[i].kind;
    return UNKNOWN_KIND;
}

/* reduce_kernel<threads, vector, ReduceOp<input, operation, index, output, ...> > */
static bool read(const char *list, struct plim_plan *plan)
{
    struct plim_name operation = plim_name_argument(list, 2);
    const char *inner = plim_name_behind(operation, "ReduceOp<");
    if (!plim_name_begins(operation, "ReduceOp<")) return false;
    plan->types[INPUT] = plim_name_type(plim_name_argument(inner, 0));
    plan->types[OUTPUT] = plim_name_type(plim_name_argument(inner, 3));
    plan->numbers[KIND] = kind_of(plim_name_argument(inner, 1));
    plan->numbers[THREADS] = strtol(list, NULL, 10);
    bool is_32_bit = plim_name_begins(plim_name_argument(inner, 2), "unsigned int");
    return is_32_bit && plan->types[INPUT] != PLIM_NO_TYPE && plan->types[OUTPUT] != PLIM_NO_TYPE;
}

static bool read_compiled(const char *list, struct plim_plan *plan)
{
    (void)list;
    plan->numbers[KIND] = PRODUCT;
    return true;
}

/* --- reading the argument --------------------------------------------------------------------- */

struct configuration {
    int32_t element_bytes, inputs, outputs, step_input, step_output, ctas_per_output;
    int32_t input_mult[3], output_mult[2], block_width, block_height, num_threads;
    int32_t vectorize_input, output_vec_size;
    struct {
        int32_t dimensions;
        uint32_t sizes[PLIM_DIMENSIONS][3], strides[PLIM_DIMENSIONS][1];
    } in;
    struct {
        int32_t dimensions;
        uint32_t sizes[PLIM_DIMENSIONS][3], strides[PLIM_DIMENSIONS][2];
    } out;
};

struct reduction {
    const struct plim_offsets *in, *out;
    size_t inputs, outputs;
    uintptr_t from, to[2];
    bool is_partial; /* one of several launches that compute the result together */
    int64_t base;
    size_t header; /* bytes before the configuration */
};

static bool try_header(const char *argument, size_t header, struct reduction *r)
{
    struct configuration c;
    struct {
        uintptr_t from, to[2], buffers[3];
        int64_t base;
        bool accumulates, is_final;
    } rest;
    memcpy(&c, argument + header, sizeof(c));
    if (c.inputs <= 0 || c.outputs <= 0 || c.element_bytes <= 0 || c.element_bytes > 32)
        return false;
    r->in = (const void *)(argument + header + offsetof(struct configuration, in));
    r->out = (const void *)(argument + header + offsetof(struct configuration, out));
    r->inputs = (size_t)c.inputs;
    r->outputs = (size_t)c.outputs;
    if (!plim_offsets_check(r->in, r->inputs) || !plim_offsets_check(r->out, r->outputs))
        return false;
    memcpy(&rest, argument + plim_align(header + sizeof(c), 8), sizeof(rest));
    r->from = rest.from;
    memcpy(r->to, rest.to, sizeof(r->to));
    r->base = rest.base;
    memcpy(&r->is_partial, &rest.accumulates, 1);
    r->is_partial = r->is_partial || !rest.is_final;
    r->header = header;
    return plim_heap_is_device(r->from) && plim_heap_is_device(r->to[0]);
}

static bool find(const void *argument, struct reduction *r)
{
    static const size_t headers[] = {4, 8, 12, 16, 20, 24, 32, 40};
    for (size_t i = 0; i < sizeof(headers) / sizeof(headers[0]); i++)
        if (try_header(argument, headers[i], r)) return true;
    return false;
}

/* Determines the type of the JIT-compiled prod. Only the size of its accumulator is given; the identity, which is 1,
 * distinguishes the types. Returns PLIM_NO_TYPE for float accumulators, whose elements may be half. */
static enum plim_type type_of_one(const char *argument, const struct reduction *r)
{
    int32_t element_bytes;
    uint32_t words[2];
    memcpy(&element_bytes, argument + r->header, sizeof(element_bytes));
    memcpy(words, argument, sizeof(words));
    if (element_bytes == 8 && r->header == 8 && words[0] == 1 && !words[1]) return PLIM_INT64;
    if (element_bytes == 8 && r->header == 8 && !words[0] && words[1] == 0x3ff00000)
        return PLIM_DOUBLE;
    return PLIM_NO_TYPE;
}

/* --- reducing to one result ------------------------------------------------------------------- */

struct total {
    struct plim_number value, least;
    int64_t index;
    unsigned char known;
    bool is_settled; /* determined by one element, whatever the others are */
};

static double size_of(struct plim_number x)
{
    return x.is_float ? fabs(x.f) : fabs((double)x.i);
}

static void add(struct total *total, struct plim_number x)
{
    total->value.i = (int64_t)((uint64_t)total->value.i + (uint64_t)x.i);
    total->value.f += x.f;
}

static void accumulate(enum kind kind, struct total *t, struct plim_number x, int64_t index,
                       unsigned char known)
{
    bool is_first = !index, is_true = plim_number_is_true(x),
         was_true = plim_number_is_true(t->value);
    bool settles = known & PLIM_KNOWN && ((kind == ALL && !is_true) || (kind == ANY && is_true));
    int order = is_first ? 0 : plim_number_compare(x, t->value);
    if (settles)
        t->known = known;
    else if (!t->is_settled)
        t->known = is_first ? known : plim_known_both(t->known, known);
    if (t->is_settled) return;
    t->is_settled = settles;
    if (is_first) *t = (struct total){x, x, 0, t->known, settles};
    switch (kind) {
    case SUM:
    case MEAN:
        if (!is_first) add(t, x);
        break;
    case PRODUCT:
        if (!is_first)
            t->value.i = (int64_t)((uint64_t)t->value.i * (uint64_t)x.i), t->value.f *= x.f;
        break;
    case ALL:
        t->value = (struct plim_number){.i = (is_first || was_true) && is_true};
        break;
    case ANY:
        t->value = (struct plim_number){.i = (!is_first && was_true) || is_true};
        break;
    case ABSOLUTE_SUM:
        t->value =
            (struct plim_number){.f = (is_first ? 0 : t->value.f) + size_of(x), .is_float = true};
        break;
    case NOT_ZERO:
        t->value =
            (struct plim_number){.f = (is_first ? 0 : t->value.f) + is_true, .is_float = true};
        break;
    case ABSOLUTE_LARGEST:
        if (is_first || isnan(x.f) || size_of(x) > t->value.f)
            t->value = (struct plim_number){.f = size_of(x), .is_float = true};
        break;
    case SMALLEST:
    case SMALLEST_AT:
    case SMALLEST_AND_AT: {
        bool has_nan = x.is_float && (isnan(x.f) || isnan(t->value.f));
        if (has_nan ? order > 0 : order < 0) t->value = x, t->index = index;
        break;
    }
    case SMALLEST_AND_LARGEST:
        if (plim_number_compare(x, t->least) < 0) t->least = x;
        if (order > 0) t->value = x;
        break;
    default:
        if (order > 0) t->value = x, t->index = index;
    }
}

static void finish(const struct plim_plan *plan, struct total *t, size_t inputs)
{
    if (plan->numbers[KIND] == MEAN) {
        float factor = (float)(1 / (double)inputs); /* PyTorch multiplies by this factor instead of dividing */
        t->value.f = plim_number_round((double)((float)t->value.f * factor), PLIM_FLOAT);
    }
    if (!(t->known & PLIM_KNOWN)) t->known = PLIM_UNKNOWN;
}

static void store_result(const struct plim_plan *plan, const struct total *t, unsigned char index_known, size_t at,
                         struct plim_view *out)
{
    enum plim_type type = plan->types[OUTPUT];
    struct plim_number index = {.i = t->index};
    switch (plan->numbers[KIND]) {
    case LARGEST_AT:
    case SMALLEST_AT:
        plim_view_set(&out[0], at, PLIM_INT64, index, index_known);
        break;
    case LARGEST_AND_AT:
    case SMALLEST_AND_AT:
        plim_view_set(&out[0], at, type, t->value, t->known);
        plim_view_set(&out[1], at / plim_type_bytes(type) * 8, PLIM_INT64, index, index_known);
        break;
    case SMALLEST_AND_LARGEST:
        plim_view_set(&out[0], at, type, t->least, t->known);
        plim_view_set(&out[1], at, type, t->value, t->known);
        break;
    default:
        plim_view_set(&out[0], at, type, t->value, t->known);
    }
}

/* --- reducing all outputs --------------------------------------------------------------------- */

static bool has_two(int64_t kind)
{
    return kind == LARGEST_AND_AT || kind == SMALLEST_AND_AT || kind == SMALLEST_AND_LARGEST;
}

static bool adds(int64_t kind) { return kind == SUM || kind == MEAN; }

/* True if reducing one number repeated gives the number itself or, for a sum, a multiple of it. */
static bool is_of_one(int64_t kind)
{
    return kind != PRODUCT && kind != ABSOLUTE_SUM && kind != NOT_ZERO;
}

static void add_same(struct total *total, size_t count)
{
    total->value.i = (int64_t)((uint64_t)total->value.i * count);
    total->value.f *= (double)count;
}

/* True if the reduction selects one of unknown numbers, such as a token or a class. */
static bool picks(const struct plim_plan *plan, const struct reduction *r)
{
    int64_t kind = plan->numbers[KIND];
    return (kind == LARGEST_AT || kind == LARGEST_AND_AT) && plim_type_is_float(plan->types[INPUT]) &&
           r->inputs > 1 && r->outputs <= PLIM_MOST_ELEMENTS;
}

/* Selects the index of the largest of unknown numbers. Of many numbers it is a token selected from a vocabulary; it is
 * assumed not to be a special token, which lie at either end. Of few numbers it is a class, or the expert that a token
 * is routed to; these are assumed to be spread evenly, as in top-k (sort.c). */
static unsigned char pick(const struct reduction *r, size_t output, int64_t *index)
{
    enum { MOST_CLASSES = 1024 }; /* more inputs are assumed to be a vocabulary */
    bool is_token = r->inputs > MOST_CLASSES;
    *index = (int64_t)(is_token ? r->inputs / 2 + output % (r->inputs / 4) : output % r->inputs);
    return PLIM_KNOWN | (is_token ? PLIM_ASSUMPTION_LONGEST : PLIM_ASSUMPTION_SPREAD);
}

/* True if the reduction tells whether a mask selects anything. Mask elements that are unknown are assumed to be set. */
static bool is_any_of_mask(const struct plim_plan *plan)
{
    return plan->numbers[KIND] == ANY && plan->types[INPUT] == PLIM_BOOL;
}

static unsigned char get(const struct plim_plan *plan, const struct plim_view *in, size_t offset, struct plim_number *x)
{
    unsigned char known = plim_view_get(in, offset, plan->types[INPUT], x);
    if (known & PLIM_KNOWN || !is_any_of_mask(plan)) return known;
    *x = (struct plim_number){.i = 1};
    return PLIM_KNOWN | PLIM_ASSUMPTION_ALL;
}

/* Computes all outputs. `inputs` is the number of inputs to read per output: all; 0 if none is known; or 1 of several
 * if they are all equal, where `in` holds just one. */
static void work(const struct plim_plan *plan, const struct reduction *r, size_t inputs,
                 const struct plim_view *in, struct plim_view *out)
{
    bool same = inputs == 1 && r->inputs > 1;
    for (size_t o = 0; o < r->outputs; o++) {
        size_t base = plim_offsets_of(r->out, o, 1, 2);
        struct total total = {.known = inputs ? PLIM_KNOWN : PLIM_UNKNOWN};
        for (size_t i = 0; i < inputs; i++) {
            struct plim_number x;
            unsigned char known = get(plan, in, same ? 0 : base + plim_offsets_of(r->in, i, 0, 1), &x);
            accumulate((enum kind)plan->numbers[KIND], &total, x, (int64_t)i, known);
        }
        if (same && adds(plan->numbers[KIND])) add_same(&total, r->inputs);
        finish(plan, &total, r->inputs);
        unsigned char index_known = total.known;
        if (!(total.known & PLIM_KNOWN) && picks(plan, r)) index_known = pick(r, o, &total.index);
        store_result(plan, &total, index_known, plim_offsets_of(r->out, o, 0, 2), out);
    }
}

/* Returns the size of the second output, which holds indices or has the type of the first; both have the same
 * layout. */
static size_t second_bytes(const struct plim_plan *plan, size_t bytes)
{
    return plan->numbers[KIND] == SMALLEST_AND_LARGEST
               ? bytes
               : bytes / plim_type_bytes(plan->types[OUTPUT]) * 8;
}

/* True if the input is too large to examine. Many floats written by a kernel come from a mask (elementwise.c); floats
 * copied from the host are data. */
static bool is_too_much(const struct plim_plan *plan, const struct reduction *r, size_t span)
{
    bool is_mask = !plim_type_is_float(plan->types[INPUT]) || plim_shadow_writer(r->from, span);
    return r->inputs * r->outputs > (is_mask ? PLIM_MOST_OF_MASK : PLIM_MOST_ELEMENTS);
}

static bool run(const struct plim_plan *given, const struct plim_launch *launch)
{
    struct reduction r;
    struct plim_plan plan = *given;
    struct plim_view in = {0}, out[2] = {{0}};
    unsigned char state, one[8];
    if (!find(launch->arguments[0], &r)) return false;
    if (given->row->read == read_compiled)
        plan.types[INPUT] = plan.types[OUTPUT] = type_of_one(launch->arguments[0], &r);
    int64_t kind = plan.numbers[KIND];
    bool is_index = kind == LARGEST_AT || kind == SMALLEST_AT;
    size_t width = plim_type_bytes(plan.types[INPUT]),
           out_width = is_index ? 8 : plim_type_bytes(plan.types[OUTPUT]);
    if (!width || !out_width || (has_two(kind) && !plim_heap_is_device(r.to[1]))) return false;
    size_t bytes = plim_offsets_last(r.out, 0, 2) + out_width,
           more = has_two(kind) ? second_bytes(&plan, bytes) : 0;
    size_t span = plim_offsets_last(r.in, 0, 1) + plim_offsets_last(r.out, 1, 2) + width;
    bool is_even = is_of_one(kind) && r.inputs > 1 &&
                   plim_shadow_is_filled(r.from, span, width, one, &state);
    bool is_seen = is_even ? plim_view_open(&in, r.from, width)
                           : !is_too_much(&plan, &r, span) && plim_shadow_survey(r.from, span) & PLIM_KNOWN &&
                                 plim_view_open_mask(&in, r.from, span);
    bool is_norm = kind == NORM || kind == ABSOLUTE_SUM || kind == ABSOLUTE_LARGEST;
    bool works = kind != UNKNOWN_KIND && kind != NORM && !r.is_partial && !r.base &&
                 (is_seen || picks(&plan, &r) || is_any_of_mask(&plan)) &&
                 plim_view_open_mask(&out[0], r.to[0], bytes) &&
                 (!more || plim_view_open_mask(&out[1], r.to[1], more));
    if (works) {
        bool is_one = is_even || (!is_seen && is_any_of_mask(&plan));
        work(&plan, &r, is_one ? 1 : is_seen ? r.inputs : 0, &in, out);
        plim_view_store(&out[0], launch->kernel);
        if (more) plim_view_store(&out[1], launch->kernel);
    } else {
        plim_shadow_spoil_as(r.to[0], bytes, is_norm ? PLIM_UNKNOWN | PLIM_NOT_NEGATIVE : PLIM_UNKNOWN, launch->kernel);
        if (more) plim_launch_spoil(launch, r.to[1], more);
        if (kind == UNKNOWN_KIND && plim_heap_is_device(r.to[1]))
            return false; /* the size of the second output is not known */
    }
    plim_view_close(&in);
    for (int i = 0; i < 2; i++) plim_view_close(&out[i]);
    return true;
}

bool plim_reduce_cost(const struct plim_plan *plan, const struct plim_launch *launch,
                      struct plim_cost *out)
{
    struct reduction r;
    if (plan->types[INPUT] == PLIM_NO_TYPE || !find(launch->arguments[0], &r)) return false;
    out->number[0] = (int64_t)(r.outputs * (r.inputs * plim_type_bytes(plan->types[INPUT]) +
                                            plim_type_bytes(plan->types[OUTPUT])));
    return true;
}

bool plim_reduce_launch_of(const struct plim_plan *plan, const struct plim_launch *launch,
                           struct plim_reduce_launch *out, bool *shares)
{
    enum { THREADS_WITH_VECTOR = 512 }; /* threads times vector width of a block, for all types but complex double */
    struct reduction r;
    struct configuration c;
    if (!find(launch->arguments[0], &r)) return false;
    memcpy(&c, (const char *)launch->arguments[0] + r.header, sizeof(c));
    *out = (struct plim_reduce_launch){.outputs = c.outputs,
                                       .inputs = c.inputs,
                                       .partial_bytes = (uint8_t)c.element_bytes,
                                       .vector = (uint8_t)c.output_vec_size,
                                       .threads_share = c.input_mult[0] != 0};
    *shares = c.ctas_per_output > 1;
    return plan->numbers[THREADS] * c.output_vec_size == THREADS_WITH_VECTOR;
}

const struct plim_row plim_rows_reduce[] = {
    {"reduce_kernel<", read, run}, {"reduction_prod_kernel", read_compiled, run}, {0}};
