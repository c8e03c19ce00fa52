/* The different rows of a matrix (aten/src/ATen/native/cuda/Unique.cu, unique_dim_cuda_template<T>, PyTorch 2.11 to 2.15):
 * Thrust and CUB sort the rows' indices, compare neighbours and keep one of each, by functions {long columns; const T
 * *rows} of two indices.
 *
 *     DeviceMergeSortBlockSortKernel<policy, long *, NullType *, long *, NullType *, count, less, ...>(bool, indices, ...,
 *                                                                     sorted, ..., count, buffer, ..., less, ...)
 *     DeviceMergeSortPartitionKernel<...>(...), DeviceMergeSortMergeKernel<...>(...)            on what that has sorted
 *     DeviceAdjacentDifferenceDifferenceKernel<policy, long *, long *, differs, ...>(indices, ..., out, differs, int count)
 *     transform_kernel<...>(count, ..., out[place[i]], in)                     to a permutation_iterator, see thrust.c
 *     _kernel_agent<UniqueAgent<...>, ...>(indices, kept, same, int *number, int count, ...)
 *     DeviceSelectSweepKernel<...>(indices, ..., kept, long *number, state, ..., same, int count, ...)
 *     DeviceUniqueByKeySweepKernel<...>(indices, places, kept, their places, unsigned *number, state, same, count, ...)
 */
#include "devices/virtual/memory/heap.h"
#include "plan.h"
#include <stdlib.h>
#include <string.h>

enum { WIDTH = sizeof(int64_t), NOWHERE = -1 };
enum { FUNCTION, COUNT, OUT, NUMBER, VALUES }; /* which arguments, in plan->numbers */

static const unsigned char all = PLIM_KNOWN | PLIM_ASSUMED_ALL; /* of rows that are not known each may be another */

static bool read_function(const char *list, int argument, struct plim_plan *plan)
{
    const char *inner = plim_name_behind(plim_name_argument(list, argument), "unique_dim_cuda_template<");
    plan->types[0] = inner ? plim_name_type(plim_name_argument(inner, 0)) : PLIM_NO_TYPE;
    return plan->types[0] != PLIM_NO_TYPE;
}

static void place(struct plim_plan *plan, int function, int count, int out, int number, int values)
{
    const int64_t places[] = {function, count, out, number, values};
    memcpy(plan->numbers, places, sizeof(places));
}

/* --- rows ------------------------------------------------------------------------------------- */

struct row {
    const struct plim_number *numbers;
    int64_t columns, index, value;
    size_t place;
    unsigned char known; /* of the value that goes with it */
};

struct rows {
    struct plim_number *numbers; /* of all rows, by their index */
    struct row *items;           /* in the order of the indices */
    size_t count;
    unsigned char known;
};

static void rows_finish(struct rows *rows)
{
    free(rows->numbers);
    free(rows->items);
}

static bool load_numbers(const struct plim_plan *plan, uintptr_t at, size_t count, struct rows *rows)
{
    size_t width = plim_type_bytes(plan->types[0]);
    struct plim_view view = {0};
    rows->numbers = count && count <= PLIM_MOST_ELEMENTS ? calloc(count, sizeof(*rows->numbers)) : NULL;
    bool works = rows->numbers && plim_view_open(&view, at, count * width);
    for (size_t i = 0; works && i < count; i++)
        rows->known = plim_known_both(rows->known, plim_view_get(&view, i * width, plan->types[0], &rows->numbers[i]));
    plim_view_close(&view);
    return works && rows->known & PLIM_KNOWN;
}

/* False: something is not known, or there is too much. To be finished in any case. */
static bool load(const struct plim_plan *plan, const struct plim_launch *launch, uintptr_t indices, uintptr_t values,
                 struct rows *out)
{
    struct { int64_t columns; uintptr_t rows; } function;
    struct plim_view view = {0}, with = {0};
    size_t count = (uint32_t)plim_launch_int(launch, (int)plan->numbers[COUNT]);
    *out = (struct rows){.count = count, .known = PLIM_KNOWN};
    memcpy(&function, launch->arguments[plan->numbers[FUNCTION]], sizeof(function));
    bool works = count && count <= PLIM_MOST_ELEMENTS && function.columns > 0 &&
                 function.columns <= PLIM_MOST_ELEMENTS &&
                 load_numbers(plan, function.rows, count * (size_t)function.columns, out) &&
                 plim_view_open(&view, indices, count * WIDTH) &&
                 (!values || plim_view_open(&with, values, count * WIDTH));
    out->items = works ? calloc(count, sizeof(*out->items)) : NULL;
    for (size_t i = 0; out->items && i < count && works; i++) {
        struct plim_number index, value = {0};
        unsigned char known = PLIM_KNOWN;
        out->known = plim_known_both(out->known, plim_view_get(&view, i * WIDTH, PLIM_INT64, &index));
        if (values) known = plim_view_get(&with, i * WIDTH, PLIM_INT64, &value);
        works = index.i >= 0 && (uint64_t)index.i < count;
        if (works)
            out->items[i] = (struct row){&out->numbers[index.i * function.columns], function.columns, index.i, value.i,
                                         i, known};
    }
    plim_view_close(&view);
    plim_view_close(&with);
    return works && out->items && out->known & PLIM_KNOWN;
}

static int compare_rows(const struct row *x, const struct row *y)
{
    for (int64_t c = 0; c < x->columns; c++) {
        int order = plim_number_compare(x->numbers[c], y->numbers[c]);
        if (order) return order;
    }
    return 0;
}

static int compare_items(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    int order = compare_rows(x, y);
    return order ? order : x->place < y->place ? -1 : x->place > y->place;
}

/* Indices, or what goes with them. */
static bool store(const struct rows *rows, bool values, uintptr_t at, const char *writer)
{
    struct plim_view view;
    if (!plim_view_blank(&view, at, rows->count * WIDTH)) return false;
    for (size_t i = 0; i < rows->count; i++) {
        const struct row *row = &rows->items[i];
        unsigned char known = values ? plim_known_both(rows->known, row->known) : rows->known;
        plim_view_put(&view, i * WIDTH, PLIM_INT64, (struct plim_number){.i = values ? row->value : row->index}, known);
    }
    plim_view_store(&view, writer);
    plim_view_close(&view);
    return true;
}

/* --- sorting ---------------------------------------------------------------------------------- */

static bool read_sort(const char *list, struct plim_plan *plan)
{
    place(plan, 8, 5, 3, NOWHERE, NOWHERE);
    return plim_name_begins(plim_name_argument(list, 5), "unsigned int") && read_function(list, 6, plan);
}

/* As thrust.c does: all at once, in the place and in the buffer. */
static bool run_sort(const struct plim_plan *plan, const struct plim_launch *launch)
{
    struct rows rows;
    uintptr_t buffer = plim_launch_address(launch, 6);
    bool works = load(plan, launch, plim_launch_address(launch, 1), 0, &rows);
    if (works) qsort(rows.items, rows.count, sizeof(*rows.items), compare_items);
    works = works && store(&rows, false, plim_launch_address(launch, 3), launch->kernel);
    if (works && plim_heap_is_device(buffer)) works = store(&rows, false, buffer, launch->kernel);
    rows_finish(&rows);
    return works;
}

static bool read_partition(const char *list, struct plim_plan *plan)
{
    return read_function(list, 2, plan);
}

static bool read_merge(const char *list, struct plim_plan *plan)
{
    return read_function(list, 6, plan);
}

static bool run_merge(const struct plim_plan *plan, const struct plim_launch *launch)
{
    (void)plan;
    (void)launch;
    return true;
}

/* --- neighbours ------------------------------------------------------------------------------- */

static bool read_difference(const char *list, struct plim_plan *plan)
{
    place(plan, 3, 4, 2, NOWHERE, NOWHERE);
    return plim_name_begins(plim_name_argument(list, 1), "long*") && read_function(list, 3, plan);
}

/* The first is what it was; of all others, whether it differs from the one before. */
static bool run_difference(const struct plim_plan *plan, const struct plim_launch *launch)
{
    struct rows rows;
    bool works = load(plan, launch, plim_launch_address(launch, 0), 0, &rows);
    for (size_t i = rows.count; works && i-- > 1;)
        rows.items[i].index = compare_rows(&rows.items[i], &rows.items[i - 1]) != 0;
    works = works && store(&rows, false, plim_launch_address(launch, 2), launch->kernel);
    rows_finish(&rows);
    return works;
}

static bool read_places(const char *list, struct plim_plan *plan)
{
    bool has_predicate = plim_name_behind(plim_name_argument(list, 2), "always_true_predicate");
    int at = has_predicate ? 3 : 2;
    plan->numbers[OUT] = has_predicate ? 5 : 3;
    return plim_name_begins(plim_name_argument(list, 1), "int") &&
           plim_name_behind(plim_name_argument(list, at), "identity") &&
           plim_name_behind(plim_name_argument(list, at + 1), "permutation_iterator<long*, long const*>") &&
           plim_name_begins(plim_name_argument(list, at + 2), "long*");
}

static bool run_places(const struct plim_plan *plan, const struct plim_launch *launch)
{
    struct { uintptr_t places, out; } to;
    int64_t count = plim_launch_int(launch, 0);
    struct plim_view places = {0}, in = {0}, out = {0};
    memcpy(&to, launch->arguments[plan->numbers[OUT]], sizeof(to));
    bool works = count > 0 && count <= PLIM_MOST_ELEMENTS && plim_view_open(&places, to.places, (size_t)count * WIDTH) &&
                 plim_view_open(&in, plim_launch_address(launch, (int)plan->numbers[OUT] + 1), (size_t)count * WIDTH) &&
                 plim_view_open(&out, to.out, (size_t)count * WIDTH);
    for (int64_t i = 0; works && i < count; i++) {
        struct plim_number at;
        unsigned char known = plim_view_get(&places, (size_t)i * WIDTH, PLIM_INT64, &at);
        works = known & PLIM_KNOWN && at.i >= 0 && at.i < count;
        if (works) plim_view_move_by(&out, (size_t)at.i * WIDTH, &in, (size_t)i * WIDTH, WIDTH, known);
    }
    if (works) plim_view_store(&out, launch->kernel);
    plim_view_close(&places);
    plim_view_close(&in);
    plim_view_close(&out);
    return works;
}

/* --- one of each ------------------------------------------------------------------------------ */

static bool read_agent(const char *list, struct plim_plan *plan)
{
    const char *agent = plim_name_behind(plim_name_argument(list, 0), "UniqueAgent<");
    place(plan, 2, 4, 1, 3, NOWHERE);
    plan->types[1] = PLIM_INT32;
    return agent && plim_name_begins(plim_name_argument(agent, 4), "int*") && read_function(agent, 2, plan);
}

static bool read_select(const char *list, struct plim_plan *plan)
{
    place(plan, 6, 7, 2, 3, NOWHERE);
    plan->types[1] = plim_name_type(plim_name_argument(list, 4));
    return plan->types[1] != PLIM_NO_TYPE && plim_name_begins(plim_name_argument(list, 1), "long*") &&
           plim_name_begins(plim_name_argument(list, 2), "NullType") && read_function(list, 7, plan);
}

static bool read_by_key(const char *list, struct plim_plan *plan)
{
    place(plan, 6, 7, 2, 4, 1);
    plan->types[1] = PLIM_INT32;
    return plim_name_begins(plim_name_argument(list, 5), "unsigned int*") && read_function(list, 7, plan);
}

static bool run_unique(const struct plim_plan *plan, const struct plim_launch *launch)
{
    struct rows rows;
    struct plim_view number;
    int values = (int)plan->numbers[VALUES], out = (int)plan->numbers[OUT];
    size_t taken = 0;
    if (!plim_view_blank(&number, plim_launch_address(launch, (int)plan->numbers[NUMBER]), plim_type_bytes(plan->types[1])))
        return false;
    bool works = load(plan, launch, plim_launch_address(launch, 0),
                      values == NOWHERE ? 0 : plim_launch_address(launch, values), &rows);
    unsigned char known = works ? rows.known : all;
    for (size_t i = 0; works && i < rows.count; i++)
        if (!i || compare_rows(&rows.items[i], &rows.items[taken - 1])) rows.items[taken++] = rows.items[i];
    struct plim_number found = {.i = (int64_t)(works ? taken : rows.count)};
    if (works) rows.count = taken;
    works = works && store(&rows, false, plim_launch_address(launch, out), launch->kernel) &&
            (values == NOWHERE || store(&rows, true, plim_launch_address(launch, out + 1), launch->kernel));
    if (!works) plim_launch_spoil_block(launch, plim_launch_address(launch, out));
    if (!works && values != NOWHERE) plim_launch_spoil_block(launch, plim_launch_address(launch, out + 1));
    plim_view_put(&number, 0, plan->types[1], found, known);
    plim_view_store(&number, launch->kernel);
    plim_view_close(&number);
    rows_finish(&rows);
    return true;
}

const struct plim_row plim_rows_unique_rows[] = {
    {"DeviceMergeSortBlockSortKernel<", read_sort, run_sort},
    {"DeviceMergeSortPartitionKernel<", read_partition, run_merge},
    {"DeviceMergeSortMergeKernel<", read_merge, run_merge},
    {"DeviceAdjacentDifferenceDifferenceKernel<", read_difference, run_difference},
    {"transform_kernel<", read_places, run_places},
    {"_kernel_agent<", read_agent, run_unique},
    {"DeviceSelectSweepKernel<", read_select, run_unique},
    {"DeviceUniqueByKeySweepKernel<", read_by_key, run_unique},
    {0}};
