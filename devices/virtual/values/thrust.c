/* Thrust on longs, as CUB of CUDA 12.9 and 13 launches it: sequence, sort_by_key, unique_by_key and adjacent_difference.
 * So the indices of a sparse tensor become those of one element each (coalesce in
 * aten/src/ATen/native/sparse/cuda/SparseCUDATensor.cu: gradients of sparse embeddings), and so rows are counted
 * (unique_rows.c).
 *
 *     transform_kernel<policy, int, __identity, out, counting_iterator<long>>(int count, int, f, out, long first)
 *     transform_kernel<policy, int, always_true_predicate, f, out, counting_iterator<long>>(int count, int, bool,
 *                                                                                        predicate, f, out, long first)
 *     DeviceMergeSortBlockSortKernel<policy, 4 iterators, count, less, long, long>(bool, keys, values, sorted keys,
 *                                                          sorted values, count, buffer of keys, of values, less, ...)
 *     DeviceMergeSortPartitionKernel<...>(...), DeviceMergeSortMergeKernel<...>(...)            on what that has sorted
 *     DeviceUniqueByKeySweepKernel<policy, 4 iterators, unsigned *, state, equal, count>(keys, values, unique keys,
 *                                                                their values, unsigned *number, state, equal, count)
 *     DeviceAdjacentDifferenceDifferenceKernel<policy, long *, long *, minus<long>, ...>(in, ..., out, minus, int count)
 */
#include "devices/virtual/memory/heap.h"
#include "plan.h"
#include <stdlib.h>
#include <string.h>

enum { WIDTH = sizeof(int64_t) };

static const unsigned char all = PLIM_KNOWN | PLIM_ASSUMED_ALL; /* of what is not known all are taken */

/* --- counting --------------------------------------------------------------------------------- */

enum { OUT, FIRST };

static bool is_of_long(struct plim_name pointer)
{
    return plim_name_behind(pointer, "device_ptr<long>") || plim_name_begins(pointer, "long*");
}

static bool read_sequence(const char *list, struct plim_plan *plan)
{
    bool has_predicate = plim_name_behind(plim_name_argument(list, 2), "always_true_predicate");
    int at = has_predicate ? 3 : 2; /* the function, what is written, what is read */
    plan->numbers[OUT] = has_predicate ? 5 : 3;
    plan->numbers[FIRST] = plan->numbers[OUT] + 1;
    return plim_name_begins(plim_name_argument(list, 1), "int") &&
           plim_name_behind(plim_name_argument(list, at), "identity") && is_of_long(plim_name_argument(list, at + 1)) &&
           plim_name_behind(plim_name_argument(list, at + 2), "counting_iterator<long");
}

static bool run_sequence(const struct plim_plan *plan, const struct plim_launch *launch)
{
    int64_t count = plim_launch_int(launch, 0), first = plim_launch_long(launch, (int)plan->numbers[FIRST]);
    struct plim_view out;
    if (count <= 0 || count > PLIM_MOST_ELEMENTS ||
        !plim_view_blank(&out, plim_launch_address(launch, (int)plan->numbers[OUT]), (size_t)count * WIDTH))
        return false;
    for (int64_t i = 0; i < count; i++)
        plim_view_put(&out, (size_t)i * WIDTH, PLIM_INT64, (struct plim_number){.i = first + i}, PLIM_KNOWN);
    plim_view_store(&out, launch->kernel);
    plim_view_close(&out);
    return true;
}

/* --- sorting ---------------------------------------------------------------------------------- */

static bool sorts_longs(struct plim_name less, struct plim_name key, struct plim_name value)
{
    bool is_up = plim_name_begins(less, "LTOp<long,") || plim_name_behind(less, "less<long>");
    return is_up && plim_name_type(key) == PLIM_INT64 && plim_name_type(value) == PLIM_INT64;
}

static bool read_sort(const char *list, struct plim_plan *plan)
{
    enum { COUNT = 5, LESS, KEY, VALUE };
    (void)plan;
    return plim_name_begins(plim_name_argument(list, COUNT), "unsigned int") &&
           sorts_longs(plim_name_argument(list, LESS), plim_name_argument(list, KEY), plim_name_argument(list, VALUE));
}

static bool read_partition(const char *list, struct plim_plan *plan)
{
    enum { LESS = 2, KEY };
    struct plim_name key = plim_name_argument(list, KEY);
    (void)plan;
    return sorts_longs(plim_name_argument(list, LESS), key, key);
}

struct pair {
    int64_t key, value;
    size_t place;
    unsigned char known; /* of the value */
};

static int compare_pairs(const void *a, const void *b)
{
    const struct pair *x = a, *y = b;
    if (x->key != y->key) return x->key < y->key ? -1 : 1;
    return x->place < y->place ? -1 : x->place > y->place;
}

/* NULL: there is too much, or not all keys are known. */
static struct pair *load_pairs(uintptr_t keys, uintptr_t values, size_t count, unsigned char *known)
{
    struct plim_view from = {0}, with = {0};
    bool works = count && count <= PLIM_MOST_ELEMENTS && plim_view_open(&from, keys, count * WIDTH) &&
                 plim_view_open(&with, values, count * WIDTH);
    struct pair *pairs = works ? calloc(count, sizeof(*pairs)) : NULL;
    *known = PLIM_KNOWN;
    for (size_t i = 0; pairs && i < count; i++) {
        struct plim_number key, value;
        *known = plim_known_both(*known, plim_view_get(&from, i * WIDTH, PLIM_INT64, &key));
        unsigned char its = plim_view_get(&with, i * WIDTH, PLIM_INT64, &value);
        pairs[i] = (struct pair){key.i, value.i, i, its};
    }
    plim_view_close(&from);
    plim_view_close(&with);
    if (pairs && *known & PLIM_KNOWN) return pairs;
    free(pairs);
    return NULL;
}

/* The first `count`. False: there is no room. */
static bool store_pairs(const struct pair *pairs, size_t count, uintptr_t keys, uintptr_t values, unsigned char known,
                        const char *writer)
{
    struct plim_view to = {0}, with = {0};
    bool works = plim_view_blank(&to, keys, count * WIDTH) && plim_view_blank(&with, values, count * WIDTH);
    for (size_t i = 0; works && i < count; i++) {
        plim_view_put(&to, i * WIDTH, PLIM_INT64, (struct plim_number){.i = pairs[i].key}, known);
        plim_view_put(&with, i * WIDTH, PLIM_INT64, (struct plim_number){.i = pairs[i].value},
                      plim_known_both(known, pairs[i].known));
    }
    if (works) plim_view_store(&to, writer);
    if (works) plim_view_store(&with, writer);
    plim_view_close(&to);
    plim_view_close(&with);
    return works;
}

/* Tiles are sorted, and then merged from one place to the other and back. Here all is sorted at once, in both. */
static bool run_sort(const struct plim_plan *plan, const struct plim_launch *launch)
{
    size_t count = (uint32_t)plim_launch_int(launch, 5);
    unsigned char known;
    struct pair *pairs = load_pairs(plim_launch_address(launch, 1), plim_launch_address(launch, 2), count, &known);
    (void)plan;
    if (!pairs) return false;
    qsort(pairs, count, sizeof(*pairs), compare_pairs);
    bool works = store_pairs(pairs, count, plim_launch_address(launch, 3), plim_launch_address(launch, 4), known,
                             launch->kernel);
    uintptr_t buffer = plim_launch_address(launch, 6), values = plim_launch_address(launch, 7);
    if (works && plim_heap_is_device(buffer) && plim_heap_is_device(values))
        works = store_pairs(pairs, count, buffer, values, known, launch->kernel);
    free(pairs);
    return works;
}

static bool run_merge(const struct plim_plan *plan, const struct plim_launch *launch)
{
    (void)plan;
    (void)launch;
    return true;
}

/* --- what is there once ------------------------------------------------------------------------- */

static bool read_unique(const char *list, struct plim_plan *plan)
{
    enum { ITERATORS = 4, NUMBER, STATE, EQUAL, COUNT };
    (void)plan;
    for (int i = 1; i <= ITERATORS; i++)
        if (!is_of_long(plim_name_argument(list, i))) return false;
    return plim_name_begins(plim_name_argument(list, NUMBER), "unsigned int*") &&
           plim_name_behind(plim_name_argument(list, EQUAL), "equal_to<long>") &&
           plim_name_begins(plim_name_argument(list, COUNT), "unsigned int");
}

/* Of unknown keys each may be another. */
static bool run_unique(const struct plim_plan *plan, const struct plim_launch *launch)
{
    size_t count = (uint32_t)plim_launch_int(launch, 7), taken = 0;
    unsigned char known;
    struct plim_view number;
    (void)plan;
    if (!plim_view_blank(&number, plim_launch_address(launch, 4), sizeof(uint32_t))) return false;
    struct pair *pairs = load_pairs(plim_launch_address(launch, 0), plim_launch_address(launch, 1), count, &known);
    for (size_t i = 0; pairs && i < count; i++)
        if (!i || pairs[i].key != pairs[taken - 1].key) pairs[taken++] = pairs[i];
    uintptr_t keys = plim_launch_address(launch, 2), values = plim_launch_address(launch, 3);
    bool works = pairs && store_pairs(pairs, taken, keys, values, known, launch->kernel);
    if (!works) {
        plim_launch_spoil_block(launch, keys);
        plim_launch_spoil_block(launch, values);
    }
    plim_view_put(&number, 0, PLIM_INT32, (struct plim_number){.i = (int64_t)(works ? taken : count)},
                  works ? known : all);
    plim_view_store(&number, launch->kernel);
    plim_view_close(&number);
    free(pairs);
    return true;
}

/* --- differences ------------------------------------------------------------------------------ */

static bool read_difference(const char *list, struct plim_plan *plan)
{
    (void)plan;
    return plim_name_begins(plim_name_argument(list, 1), "long*") && plim_name_begins(plim_name_argument(list, 2), "long*") &&
           plim_name_behind(plim_name_argument(list, 3), "minus<long>");
}

/* The first stays. */
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
        plim_view_put(&out, (size_t)i * WIDTH, PLIM_INT64, difference, plim_known_both(known, had));
        before = x;
        had = known;
    }
    if (works) plim_view_store(&out, launch->kernel);
    plim_view_close(&in);
    plim_view_close(&out);
    return works;
}

const struct plim_row plim_rows_thrust[] = {{"transform_kernel<", read_sequence, run_sequence},
                                            {"DeviceMergeSortBlockSortKernel<", read_sort, run_sort},
                                            {"DeviceMergeSortPartitionKernel<", read_partition, run_merge},
                                            {"DeviceMergeSortMergeKernel<", read_sort, run_merge},
                                            {"DeviceUniqueByKeySweepKernel<", read_unique, run_unique},
                                            {"DeviceAdjacentDifferenceDifferenceKernel<", read_difference, run_difference},
                                            {0}};
