/* arange and linspace: elementwise_kernel_with_index (aten/src/ATen/native/cuda/RangeFactories.cu, PyTorch 2.0 to
 * 2.15). Arguments: the count, of 4 or 8 bytes; the lambda; the output. The lambda of arange holds {start, step} in the
 * accumulation type; that of linspace {T start, end; long steps; T step (float for integers); long steps / 2}, where
 * the second half is computed from the end.
 *
 *     triu_indices_kernel<T>(T *out, long first column, long row, long columns, long rectangle, long size)
 *     tril_indices_kernel<T>(T *out, long first row, long row, long columns, long trapezoid, long size)
 *
 * (TensorFactories.cu) write the rows of a triangle's elements, followed by their columns. In the part that is not a
 * rectangle the first row has `row` elements and each row after it one less (triu) or one more (tril); the rows of the
 * rectangle are complete. */
#include "devices/virtual/memory/heap.h"
#include "plan.h"
#include <math.h>
#include <string.h>

/* The types in the order of the lambdas of arange: AT_DISPATCH_ALL_TYPES_AND2(Half, BFloat16). */
static const enum plim_type types[] = {PLIM_UINT8, PLIM_INT8,  PLIM_INT32,
                                       PLIM_INT64, PLIM_INT16, PLIM_DOUBLE,
                                       PLIM_FLOAT, PLIM_HALF,  PLIM_BFLOAT16};

enum { OUTPUT, SUM, COUNT_BYTES = 0 };

static bool read(const char *list, struct plim_plan *plan)
{
    static const char word[] = "{lambda()#";
    struct plim_name lambda = plim_name_argument(list, 1);
    const char *first = plim_name_behind(lambda, word);
    const char *number =
        first ? plim_name_behind((struct plim_name){first, strlen(first)}, word) : NULL;
    int which = number ? *number - '1' : -1;
    if (!plim_name_begins(lambda, "arange_cuda_out") || number[1] != '}' || which < 0 || which > 8)
        return false;
    plan->types[OUTPUT] = types[which];
    bool is_double = types[which] == PLIM_DOUBLE, is_float = plim_type_is_float(types[which]);
    plan->types[SUM] = is_double ? PLIM_DOUBLE : is_float ? PLIM_FLOAT : PLIM_INT64;
    plan->numbers[COUNT_BYTES] = plim_name_begins(plim_name_argument(list, 0), "long") ? 8 : 4;
    return true;
}

/* The lambdas of linspace follow AT_DISPATCH_INTEGRAL_TYPES and AT_DISPATCH_FLOATING_AND_COMPLEX_TYPES_AND2. */
static bool read_even(const char *list, struct plim_plan *plan)
{
    static const char word[] = "{lambda()#";
    static const enum plim_type integers[] = {PLIM_UINT8, PLIM_INT8, PLIM_INT32, PLIM_INT64, PLIM_INT16},
                                floats[] = {PLIM_DOUBLE,  PLIM_FLOAT, PLIM_NO_TYPE,
                                            PLIM_NO_TYPE, PLIM_HALF,  PLIM_BFLOAT16};
    struct plim_name lambda = plim_name_argument(list, 1);
    const char *kind = plim_name_behind(lambda, word),
               *number = kind ? plim_name_behind((struct plim_name){kind, strlen(kind)}, word) : NULL;
    int which = number ? *number - '1' : -1;
    bool is_float = kind && *kind == '2';
    if (!plim_name_begins(lambda, "linspace_cuda_out") || kind[1] != '}' || (*kind != '1' && !is_float) ||
        number[1] != '}' || which < 0 || which >= (is_float ? 6 : 5))
        return false;
    plan->types[OUTPUT] = is_float ? floats[which] : integers[which];
    plan->types[SUM] = is_float ? floats[which] : PLIM_FLOAT;
    plan->numbers[COUNT_BYTES] = plim_name_begins(plim_name_argument(list, 0), "long") ? 8 : 4;
    return plan->types[OUTPUT] != PLIM_NO_TYPE;
}

static bool read_triangle(const char *list, struct plim_plan *plan)
{
    plan->types[OUTPUT] = plim_name_type(plim_name_argument(list, 0));
    return plan->types[OUTPUT] == PLIM_INT64 || plan->types[OUTPUT] == PLIM_INT32;
}

static struct plim_number nth(struct plim_number start, struct plim_number step, int64_t i,
                              enum plim_type sum)
{
    struct plim_number n = start;
    n.i = (int64_t)((uint64_t)start.i + (uint64_t)step.i * (uint64_t)i);
    if (start.is_float)
        n.f = plim_number_round(start.f + plim_number_round(step.f * (double)i, sum), sum);
    return n;
}

/* Writes up to PLIM_CHUNK elements, starting at element `first`. */
static void write_some(struct plim_view *out, size_t first, size_t end, struct plim_number start,
                       struct plim_number step, const struct plim_plan *plan)
{
    struct plim_column column = {.is_float = start.is_float};
    size_t offsets[PLIM_CHUNK], count = end - first < PLIM_CHUNK ? end - first : PLIM_CHUNK;
    for (size_t k = 0; k < count; k++) {
        struct plim_number n = nth(start, step, (int64_t)(first + k), plan->types[SUM]);
        column.i[k] = n.i;
        column.f[k] = n.f;
        column.known[k] = PLIM_KNOWN;
        offsets[k] = (first + k) * plim_type_bytes(plan->types[OUTPUT]);
    }
    plim_column_store(&column, out, offsets, count, plan->types[OUTPUT]);
}

static bool run(const struct plim_plan *plan, const struct plim_launch *launch)
{
    enum plim_type type = plan->types[OUTPUT], sum = plan->types[SUM];
    int64_t count =
        plan->numbers[COUNT_BYTES] == 8 ? plim_launch_long(launch, 0) : plim_launch_int(launch, 0);
    uintptr_t to = plim_launch_address(launch, 2);
    size_t width = plim_type_bytes(type);
    struct plim_view out;
    if (count <= 0 || !plim_heap_is_device(to)) return false;
    if (count > PLIM_MOST_ELEMENTS || !plim_view_blank(&out, to, (size_t)count * width)) {
        plim_launch_spoil(launch, to, (size_t)count * width);
        return true;
    }
    const char *state = launch->arguments[1];
    struct plim_number start = plim_number_load(state, sum);
    struct plim_number step = plim_number_load(state + plim_type_bytes(sum), sum);
    for (size_t i = 0; i < (size_t)count; i += PLIM_CHUNK)
        write_some(&out, i, (size_t)count, start, step, plan);
    plim_view_store(&out, launch->kernel);
    plim_view_close(&out);
    return true;
}

/* --- linspace --------------------------------------------------------------------------------- */

struct even {
    struct plim_number start, end;
    double step;
    int64_t steps;
};

/* Reads the lambda of linspace. Returns false if its layout is different. */
static bool read_lambda(const struct plim_plan *plan, const char *lambda, struct even *e)
{
    enum plim_type type = plan->types[OUTPUT], sum = plan->types[SUM];
    size_t width = plim_type_bytes(type), steps_at = plim_align(2 * width, sizeof(int64_t)),
           step_at = steps_at + sizeof(int64_t),
           half_at = plim_align(step_at + plim_type_bytes(sum), sizeof(int64_t));
    int64_t half;
    e->start = plim_number_load(lambda, type);
    e->end = plim_number_load(lambda + width, type);
    e->step = plim_number_load(lambda + step_at, sum).f;
    memcpy(&e->steps, lambda + steps_at, sizeof(e->steps));
    memcpy(&half, lambda + half_at, sizeof(half));
    return e->steps > 1 && half == e->steps / 2;
}

/* Returns from + step * count: fused for float and double, rounded twice for half and bfloat16. */
static double away(double from, double step, double count, enum plim_type type)
{
    if (type == PLIM_DOUBLE) return fma(step, count, from);
    if (type == PLIM_FLOAT) return (double)fmaf((float)step, (float)count, (float)from);
    return plim_number_round(from + plim_number_round(step * plim_number_round(count, type), type), type);
}

static struct plim_number even_nth(const struct plim_plan *plan, const struct even *e, int64_t i)
{
    bool is_near = i < e->steps / 2;
    struct plim_number from = is_near ? e->start : e->end, n = {.is_float = true};
    n.f = away(from.is_float ? from.f : (double)from.i, is_near ? e->step : -e->step,
               (double)(is_near ? i : e->steps - i - 1), plan->types[SUM]);
    return plim_number_convert(n, plan->types[OUTPUT]);
}

static bool run_even(const struct plim_plan *plan, const struct plim_launch *launch)
{
    enum plim_type type = plan->types[OUTPUT];
    size_t width = plim_type_bytes(type);
    int64_t count = plan->numbers[COUNT_BYTES] == 8 ? plim_launch_long(launch, 0) : plim_launch_int(launch, 0);
    uintptr_t to = plim_launch_address(launch, 2);
    struct even e;
    struct plim_view out = {0};
    if (count <= 0 || !plim_heap_is_device(to)) return false;
    bool works = count <= PLIM_MOST_ELEMENTS && read_lambda(plan, launch->arguments[1], &e) && e.steps == count &&
                 plim_view_blank(&out, to, (size_t)count * width);
    for (int64_t i = 0; works && i < count; i++)
        plim_view_set(&out, (size_t)i * width, type, even_nth(plan, &e, i), PLIM_KNOWN);
    if (works)
        plim_view_store(&out, launch->kernel);
    else
        plim_launch_spoil(launch, to, (size_t)count * width);
    plim_view_close(&out);
    return true;
}

/* --- triangles -------------------------------------------------------------------------------- */

static bool run_triangle(const struct plim_plan *plan, const struct plim_launch *launch, bool is_upper)
{
    enum plim_type type = plan->types[OUTPUT];
    size_t width = plim_type_bytes(type);
    uintptr_t to = plim_launch_address(launch, 0);
    int64_t first = plim_launch_long(launch, 1), length = plim_launch_long(launch, 2),
            columns = plim_launch_long(launch, 3), part = plim_launch_long(launch, 4),
            size = plim_launch_long(launch, 5), row = 0, column = 0;
    struct plim_view out = {0};
    if (size <= 0 || size > INT32_MAX || !plim_heap_is_device(to)) return false;
    bool works = size <= PLIM_MOST_ELEMENTS && first >= 0 && columns > 0 && part >= 0 && part <= size &&
                 plim_view_blank(&out, to, 2 * (size_t)size * width);
    for (int64_t i = 0; works && i < size; i++) {
        bool is_whole = is_upper ? i < part : i >= part;
        struct plim_number at_row = {.i = row + (is_upper ? 0 : first)},
                           at_column = {.i = column + (is_upper ? first : 0)};
        if (is_upper && !is_whole) at_column.i += plim_launch_long(launch, 2) - length;
        plim_view_set(&out, (size_t)i * width, type, at_row, PLIM_KNOWN);
        plim_view_set(&out, (size_t)(size + i) * width, type, at_column, PLIM_KNOWN);
        if (++column < (is_whole ? columns : length)) continue;
        column = 0, row++;
        if (!is_whole) length += is_upper ? -1 : 1;
    }
    if (works)
        plim_view_store(&out, launch->kernel);
    else
        plim_launch_spoil(launch, to, 2 * (size_t)size * width);
    plim_view_close(&out);
    return true;
}

static bool run_upper(const struct plim_plan *plan, const struct plim_launch *launch)
{
    return run_triangle(plan, launch, true);
}

static bool run_lower(const struct plim_plan *plan, const struct plim_launch *launch)
{
    return run_triangle(plan, launch, false);
}

const struct plim_row plim_rows_range[] = {{"elementwise_kernel_with_index<", read, run},
                                           {"elementwise_kernel_with_index<", read_even, run_even},
                                           {"triu_indices_kernel<", read_triangle, run_upper},
                                           {"tril_indices_kernel<", read_triangle, run_lower},
                                           {0}};
