/* Numbers of a row: arange and linspace, elementwise_kernel_with_index
 * (aten/src/ATen/native/cuda/RangeFactories.cu, PyTorch 2.0 to 2.15). Arguments: (count of 4 or 8
 * bytes, the lambda {start, step} in the type of sums, the output). */
#include "devices/virtual/memory/heap.h"
#include "plan.h"
#include <string.h>

/* The lambdas stand in the order of AT_DISPATCH_ALL_TYPES_AND2(Half, BFloat16). */
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

static struct plim_number nth(struct plim_number start, struct plim_number step, int64_t i,
                              enum plim_type sum)
{
    struct plim_number n = start;
    n.i = (int64_t)((uint64_t)start.i + (uint64_t)step.i * (uint64_t)i);
    if (start.is_float)
        n.f = plim_number_round(start.f + plim_number_round(step.f * (double)i, sum), sum);
    return n;
}

/* From element `first` on as many as a column has. */
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

const struct plim_row plim_rows_range[] = {{"elementwise_kernel_with_index<", read, run}, {0}};
