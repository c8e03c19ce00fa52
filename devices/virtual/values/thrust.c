/* Thrust algorithms on longs, as CUB of CUDA 12.9 and 13 launches them. PyTorch uses them to merge equal indices of a
 * sparse tensor (coalesce in aten/src/ATen/native/sparse/cuda/SparseCUDATensor.cu, for gradients of sparse embeddings)
 * and to find the distinct rows of a matrix (unique_dim_cuda_template<T> in aten/src/ATen/native/cuda/Unique.cu). The
 * first compares longs; the second compares the rows whose indices they are, by functors {long columns; const T *rows}.
 *
 *     transform_kernel<policy, int, __identity, out, in>(int count, int, f, out, in)
 *     transform_kernel<policy, int, always_true_predicate, f, out, in>(int count, int, bool, predicate, f, out, in)
 *     DeviceMergeSortBlockSortKernel<policy, 4 iterators, count, less, long, value>(bool, keys, values, sorted keys,
 *         sorted values, count, buffer of keys, of values, less, ...)
 *     DeviceMergeSortPartitionKernel<...>(...), DeviceMergeSortMergeKernel<...>(...)            follow the block sort
 *     DeviceAdjacentDifferenceDifferenceKernel<policy, long *, long *, difference, ...>(in, ..., out, difference,
 *         int count)
 *     DeviceUniqueByKeySweepKernel<policy, 4 iterators, unsigned *, state, same, count>(keys, values, unique keys,
 *         their values, unsigned *number, state, same, count)
 *     DeviceSelectSweepKernel<...>(keys, ..., unique keys, long *number, state, ..., same, int count, ...)
 *     _kernel_agent<UniqueAgent<...>, ...>(keys, unique keys, same, int *number, int count, ...) */
#include "devices/virtual/memory/heap.h"
#include "plan.h"
#include <stdlib.h>
#include <string.h>

enum { WIDTH = sizeof(int64_t), NOWHERE = -1 };
enum { COMPARED, NUMBERS }; /* indices of plan->types: the compared type, the type of the number of results */
enum { FUNCTION, COUNT, OUT, NUMBER, VALUES }; /* plan->numbers: the positions of these arguments; FUNCTION is NOWHERE
                                                * if longs are compared */

static const unsigned char all = PLIM_KNOWN | PLIM_ASSUMPTION_ALL; /* unknown keys are assumed to be all distinct */

static void set_arguments(struct plim_plan *plan, int count, int out, int number, int values)
{
    const int64_t places[] = {NOWHERE, count, out, number, values};
    memcpy(plan->numbers, places, sizeof(places));
}

static bool is_of_long(struct plim_name pointer)
{
    return plim_name_behind(pointer, "device_ptr<long>") || plim_name_begins(pointer, "long*");
}

/* Reads the comparison from template argument `index`; `at` is its argument of the launch. */
static bool read_comparison(const char *list, int index, int at, struct plim_plan *plan)
{
    struct plim_name name = plim_name_argument(list, index);
    const char *rows = plim_name_behind(name, "unique_dim_cuda_template<");
    plan->numbers[FUNCTION] = rows ? at : NOWHERE;
    plan->types[COMPARED] = rows ? plim_name_type(plim_name_argument(rows, 0)) : PLIM_INT64;
    if (rows) return plan->types[COMPARED] != PLIM_NO_TYPE;
    return plim_name_begins(name, "LTOp<long,") || plim_name_behind(name, "less<long>") ||
           plim_name_behind(name, "equal_to<long>");
}

/* --- keys and values -------------------------------------------------------------------------- */

struct item {
    const struct plim_number *numbers; /* what is compared: the key, or the numbers of its row */
    int64_t columns, key, value;
    size_t set_arguments;
    unsigned char known; /* of the value */
};

struct items {
    struct plim_number *numbers; /* all keys, or all numbers of all rows */
    struct item *items;
    size_t count;
    unsigned char known; /* of all keys and numbers together */
};

static void items_finish(struct items *x)
{
    free(x->numbers);
    free(x->items);
}

static bool load_numbers(struct items *x, uintptr_t at, enum plim_type type, size_t count)
{
    size_t width = plim_type_bytes(type);
    struct plim_view view = {0};
    x->numbers = count && count <= PLIM_MOST_ELEMENTS ? calloc(count, sizeof(*x->numbers)) : NULL;
    bool works = x->numbers && plim_view_open(&view, at, count * width);
    for (size_t i = 0; works && i < count; i++)
        x->known = plim_known_both(x->known, plim_view_get(&view, i * width, type, &x->numbers[i]));
    plim_view_close(&view);
    return works && x->known & PLIM_KNOWN;
}

/* Replaces the compared numbers: keys are row indices, so the rows are loaded. */
static bool load_rows(const struct plim_plan *plan, const struct plim_launch *launch, struct items *x)
{
    struct { int64_t columns; uintptr_t rows; } function;
    memcpy(&function, launch->arguments[plan->numbers[FUNCTION]], sizeof(function));
    free(x->numbers);
    x->numbers = NULL;
    if (function.columns <= 0 || function.columns > PLIM_MOST_ELEMENTS ||
        !load_numbers(x, function.rows, plan->types[COMPARED], x->count * (size_t)function.columns))
        return false;
    for (size_t i = 0; i < x->count; i++) {
        struct item *item = &x->items[i];
        if (item->key < 0 || (uint64_t)item->key >= x->count) return false;
        item->numbers = &x->numbers[item->key * function.columns];
        item->columns = function.columns;
    }
    return true;
}

/* Loads keys and, if `values` is not 0, values. Returns false if a key or number is unknown or there are too many.
 * items_finish() must be called in any case. */
static bool load(const struct plim_plan *plan, const struct plim_launch *launch, uintptr_t keys, uintptr_t values,
                 struct items *out)
{
    struct plim_view with = {0};
    size_t count = (uint32_t)plim_launch_int(launch, (int)plan->numbers[COUNT]);
    *out = (struct items){.count = count, .known = PLIM_KNOWN};
    bool works =
        load_numbers(out, keys, PLIM_INT64, count) && (!values || plim_view_open(&with, values, count * WIDTH));
    out->items = works ? calloc(count, sizeof(*out->items)) : NULL;
    for (size_t i = 0; out->items && i < count; i++) {
        struct plim_number value = {0};
        unsigned char known = values ? plim_view_get(&with, i * WIDTH, PLIM_INT64, &value) : PLIM_KNOWN;
        out->items[i] = (struct item){&out->numbers[i], 1, out->numbers[i].i, value.i, i, known};
    }
    plim_view_close(&with);
    return out->items && (plan->numbers[FUNCTION] == NOWHERE || load_rows(plan, launch, out));
}

static int compare(const struct item *x, const struct item *y)
{
    for (int64_t c = 0; c < x->columns; c++) {
        int order = plim_number_compare(x->numbers[c], y->numbers[c]);
        if (order) return order;
    }
    return 0;
}

static int compare_items(const void *a, const void *b)
{
    const struct item *x = a, *y = b;
    int order = compare(x, y);
    return order ? order : x->set_arguments < y->set_arguments ? -1 : x->set_arguments > y->set_arguments;
}

/* Stores the keys, or the values if `values` is set. */
static bool store_one(const struct items *x, bool values, uintptr_t at, const char *writer)
{
    struct plim_view view;
    if (!plim_view_blank(&view, at, x->count * WIDTH)) return false;
    for (size_t i = 0; i < x->count; i++) {
        const struct item *item = &x->items[i];
        unsigned char known = values ? plim_known_both(x->known, item->known) : x->known;
        plim_view_set(&view, i * WIDTH, PLIM_INT64, (struct plim_number){.i = values ? item->value : item->key}, known);
    }
    plim_view_store(&view, writer);
    plim_view_close(&view);
    return true;
}

/* Stores the keys to argument `at` and the values, if any, to argument `at` + 1. */
static bool store(const struct items *x, const struct plim_plan *plan, const struct plim_launch *launch, int at)
{
    return store_one(x, false, plim_launch_address(launch, at), launch->kernel) &&
           (plan->numbers[VALUES] == NOWHERE ||
            store_one(x, true, plim_launch_address(launch, at + 1), launch->kernel));
}

static uintptr_t values_of(const struct plim_plan *plan, const struct plim_launch *launch)
{
    return plan->numbers[VALUES] == NOWHERE ? 0 : plim_launch_address(launch, (int)plan->numbers[VALUES]);
}

/* --- transform_kernel ------------------------------------------------------------------------- */

/* Returns the template argument that is the output type (the input type follows) and sets plan->numbers[OUT]; 0 if the
 * function is not supported. */
static int read_transform(const char *list, struct plim_plan *plan)
{
    bool has_predicate = plim_name_behind(plim_name_argument(list, 2), "always_true_predicate");
    int function = has_predicate ? 3 : 2;
    plan->numbers[OUT] = has_predicate ? 5 : 3;
    bool is_known = plim_name_begins(plim_name_argument(list, 1), "int") &&
                    plim_name_behind(plim_name_argument(list, function), "identity");
    return is_known ? function + 1 : 0;
}

static bool read_sequence(const char *list, struct plim_plan *plan)
{
    int out = read_transform(list, plan);
    return out && is_of_long(plim_name_argument(list, out)) &&
           plim_name_behind(plim_name_argument(list, out + 1), "counting_iterator<long");
}

static bool run_sequence(const struct plim_plan *plan, const struct plim_launch *launch)
{
    int at = (int)plan->numbers[OUT];
    int64_t count = plim_launch_int(launch, 0), first = plim_launch_long(launch, at + 1);
    struct plim_view out;
    if (count <= 0 || count > PLIM_MOST_ELEMENTS ||
        !plim_view_blank(&out, plim_launch_address(launch, at), (size_t)count * WIDTH))
        return false;
    for (int64_t i = 0; i < count; i++)
        plim_view_set(&out, (size_t)i * WIDTH, PLIM_INT64, (struct plim_number){.i = first + i}, PLIM_KNOWN);
    plim_view_store(&out, launch->kernel);
    plim_view_close(&out);
    return true;
}

static bool read_places(const char *list, struct plim_plan *plan)
{
    int out = read_transform(list, plan);
    return out && plim_name_behind(plim_name_argument(list, out), "permutation_iterator<long*, long const*>") &&
           plim_name_begins(plim_name_argument(list, out + 1), "long*");
}

static bool run_places(const struct plim_plan *plan, const struct plim_launch *launch)
{
    struct { uintptr_t places, out; } to;
    int64_t count = plim_launch_int(launch, 0);
    struct plim_view places = {0}, in = {0}, out = {0};
    memcpy(&to, launch->arguments[plan->numbers[OUT]], sizeof(to));
    bool works = count > 0 && count <= PLIM_MOST_ELEMENTS &&
                 plim_view_open(&places, to.places, (size_t)count * WIDTH) &&
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

/* --- merge sort ------------------------------------------------------------------------------- */

static bool read_sort(const char *list, struct plim_plan *plan)
{
    enum { COUNTER = 5, LESS, KEY, VALUE };
    bool has_values = plim_name_type(plim_name_argument(list, VALUE)) == PLIM_INT64;
    set_arguments(plan, 5, 3, NOWHERE, has_values ? 2 : NOWHERE);
    return plim_name_begins(plim_name_argument(list, COUNTER), "unsigned int") &&
           plim_name_type(plim_name_argument(list, KEY)) == PLIM_INT64 &&
           (has_values || plim_name_begins(plim_name_argument(list, VALUE), "NullType")) &&
           read_comparison(list, LESS, 8, plan);
}

static bool read_partition(const char *list, struct plim_plan *plan)
{
    enum { LESS = 2, KEY };
    return plim_name_type(plim_name_argument(list, KEY)) == PLIM_INT64 && read_comparison(list, LESS, 6, plan);
}

/* CUB sorts tiles and then merges them back and forth between two buffers. Here everything is sorted at once, into
 * both. */
static bool run_sort(const struct plim_plan *plan, const struct plim_launch *launch)
{
    enum { BUFFER = 6 };
    struct items x;
    bool works = load(plan, launch, plim_launch_address(launch, 1), values_of(plan, launch), &x);
    if (works) qsort(x.items, x.count, sizeof(*x.items), compare_items);
    works = works && store(&x, plan, launch, (int)plan->numbers[OUT]) &&
            (!plim_heap_is_device(plim_launch_address(launch, BUFFER)) || store(&x, plan, launch, BUFFER));
    items_finish(&x);
    return works;
}

static bool run_merge(const struct plim_plan *plan, const struct plim_launch *launch)
{
    (void)plan;
    (void)launch;
    return true;
}

/* --- adjacent difference ---------------------------------------------------------------------- */

static bool read_differing(const char *list, struct plim_plan *plan)
{
    set_arguments(plan, 4, 2, NOWHERE, NOWHERE);
    return is_of_long(plim_name_argument(list, 1)) && read_comparison(list, 3, 3, plan) &&
           plan->numbers[FUNCTION] != NOWHERE;
}

/* Writes for each key but the first whether its row differs from the one before; the first is copied. */
static bool run_differing(const struct plim_plan *plan, const struct plim_launch *launch)
{
    struct items x;
    bool works = load(plan, launch, plim_launch_address(launch, 0), 0, &x);
    for (size_t i = x.count; works && i-- > 1;) x.items[i].key = compare(&x.items[i], &x.items[i - 1]) != 0;
    works = works && store(&x, plan, launch, (int)plan->numbers[OUT]);
    items_finish(&x);
    return works;
}

static bool read_difference(const char *list, struct plim_plan *plan)
{
    (void)plan;
    return is_of_long(plim_name_argument(list, 1)) && is_of_long(plim_name_argument(list, 2)) &&
           plim_name_behind(plim_name_argument(list, 3), "minus<long>");
}

/* The first element is copied. */
static bool run_difference(const struct plim_plan *plan, const struct plim_launch *launch)
{
    int64_t count = plim_launch_int(launch, 4);
    struct plim_view in = {0}, out = {0};
    struct plim_number before = {0}, x;
    unsigned char had = PLIM_KNOWN;
    (void)plan;
    bool works = count > 0 && count <= PLIM_MOST_ELEMENTS &&
                 plim_view_open(&in, plim_launch_address(launch, 0), (size_t)count * WIDTH) &&
                 plim_view_blank(&out, plim_launch_address(launch, 2), (size_t)count * WIDTH);
    for (int64_t i = 0; works && i < count; i++) {
        unsigned char known = plim_view_get(&in, (size_t)i * WIDTH, PLIM_INT64, &x);
        struct plim_number difference = {.i = (int64_t)((uint64_t)x.i - (uint64_t)before.i)};
        plim_view_set(&out, (size_t)i * WIDTH, PLIM_INT64, difference, plim_known_both(known, had));
        before = x;
        had = known;
    }
    if (works) plim_view_store(&out, launch->kernel);
    plim_view_close(&in);
    plim_view_close(&out);
    return works;
}

/* --- unique ----------------------------------------------------------------------------------- */

static bool read_by_key(const char *list, struct plim_plan *plan)
{
    enum { ITERATORS = 4, COUNTED, STATE, SAME, COUNTER };
    set_arguments(plan, 7, 2, 4, 1);
    plan->types[NUMBERS] = PLIM_INT32;
    for (int i = 1; i <= ITERATORS; i++)
        if (!is_of_long(plim_name_argument(list, i))) return false;
    return plim_name_begins(plim_name_argument(list, COUNTED), "unsigned int*") &&
           plim_name_begins(plim_name_argument(list, COUNTER), "unsigned int") && read_comparison(list, SAME, 6, plan);
}

/* Accepts only comparison by rows; cub.c has the others. */
static bool read_select(const char *list, struct plim_plan *plan)
{
    set_arguments(plan, 7, 2, 3, NOWHERE);
    plan->types[NUMBERS] = plim_name_type(plim_name_argument(list, 4));
    return plan->types[NUMBERS] != PLIM_NO_TYPE && is_of_long(plim_name_argument(list, 1)) &&
           plim_name_begins(plim_name_argument(list, 2), "NullType") && read_comparison(list, 7, 6, plan) &&
           plan->numbers[FUNCTION] != NOWHERE;
}

static bool read_agent(const char *list, struct plim_plan *plan)
{
    const char *agent = plim_name_behind(plim_name_argument(list, 0), "UniqueAgent<");
    set_arguments(plan, 4, 1, 3, NOWHERE);
    plan->types[NUMBERS] = PLIM_INT32;
    return agent && is_of_long(plim_name_argument(agent, 0)) && is_of_long(plim_name_argument(agent, 1)) &&
           plim_name_begins(plim_name_argument(agent, 4), "int*") && read_comparison(agent, 2, 2, plan) &&
           plan->numbers[FUNCTION] != NOWHERE;
}

static void spoil(const struct plim_plan *plan, const struct plim_launch *launch)
{
    int out = (int)plan->numbers[OUT];
    plim_launch_spoil_block(launch, plim_launch_address(launch, out));
    if (plan->numbers[VALUES] != NOWHERE) plim_launch_spoil_block(launch, plim_launch_address(launch, out + 1));
}

static bool run_unique(const struct plim_plan *plan, const struct plim_launch *launch)
{
    struct items x;
    struct plim_view number;
    size_t taken = 0;
    enum plim_type type = plan->types[NUMBERS];
    if (!plim_view_blank(&number, plim_launch_address(launch, (int)plan->numbers[NUMBER]), plim_type_bytes(type)))
        return false;
    bool works = load(plan, launch, plim_launch_address(launch, 0), values_of(plan, launch), &x);
    unsigned char known = works ? x.known : all;
    for (size_t i = 0; works && i < x.count; i++)
        if (!i || compare(&x.items[i], &x.items[taken - 1])) x.items[taken++] = x.items[i];
    if (works) x.count = taken;
    if (!works || !store(&x, plan, launch, (int)plan->numbers[OUT])) spoil(plan, launch);
    plim_view_set(&number, 0, type, (struct plim_number){.i = (int64_t)x.count}, known);
    plim_view_store(&number, launch->kernel);
    plim_view_close(&number);
    items_finish(&x);
    return true;
}

const struct plim_row plim_rows_thrust[] = {
    {"transform_kernel<", read_sequence, run_sequence},
    {"transform_kernel<", read_places, run_places},
    {"DeviceMergeSortBlockSortKernel<", read_sort, run_sort},
    {"DeviceMergeSortPartitionKernel<", read_partition, run_merge},
    {"DeviceMergeSortMergeKernel<", read_sort, run_merge},
    {"DeviceAdjacentDifferenceDifferenceKernel<", read_differing, run_differing},
    {"DeviceAdjacentDifferenceDifferenceKernel<", read_difference, run_difference},
    {"DeviceUniqueByKeySweepKernel<", read_by_key, run_unique},
    {"DeviceSelectSweepKernel<", read_select, run_unique},
    {"_kernel_agent<", read_agent, run_unique},
    {0}};
