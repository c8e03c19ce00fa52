/* Counting and selecting: CUB's DeviceReduce and DeviceSelect, on which PyTorch builds nonzero (see nonzero.c),
 * masked_select and unique (aten/src/ATen/native/cuda/Nonzero.cu, UniqueCub.cu, Unique.cu, PyTorch 2.0 to 2.15; CUB of
 * CUDA 11.8 to 13).
 *
 *     DeviceReduceSingleTileKernel<policy, in, out, ...>(in, out, count, operation, initial)
 *     DeviceReduceKernel<policy, in, ...>(in, parts, count, shares, operation)
 *     DeviceSelectSweepKernel<policy, in, flags, out, number, ...>(in, flags, out, number, state, operation, equality,
 *                                                                  count)
 *     DeviceReduceByKeyKernel<policy, keys, unique, values, sums, number, ...>(keys, unique, values, sums, number,
 *                                                                              state, first tile, equality, operation,
 *                                                                              count)
 *     adjacent_difference_kernel<long const *>(long count, long const *sorted, int *differs)
 *     unique_bool_write_output(int count, const int *trues, bool *out, long *number)
 *
 * An input is a pointer, or an iterator that maps the elements of a pointer to "is not zero". */
#include "devices/virtual/memory/heap.h"
#include "plan.h"
#include <string.h>

enum { IN, FLAGS, NUMBER }; /* indices of plan->types */
enum { POINTER_AT, SEES_TRUTH, COUNTS, FLAGS_AT = 3 };

/* Reads the type of an input iterator: const T *; transform_iterator<NonZeroOp<T>, const T *>, with the pointer first;
 * or TransformInputIterator<bool, NonZeroOp<T>, T *>, with the pointer last. */
static bool read_input(struct plim_name name, enum plim_type *type, int64_t *pointer_at,
                       int64_t *sees_truth)
{
    const char *seen = plim_name_behind(name, "NonZeroOp<");
    *pointer_at = plim_name_begins(name, "TransformInputIterator<") ? 8 : 0;
    *sees_truth = seen || plim_name_behind(name, "MapNumberOfTrueValues");
    *type = seen          ? plim_name_type(plim_name_argument(seen, 0))
            : *sees_truth ? PLIM_BOOL
                          : plim_name_type(name);
    return *type != PLIM_NO_TYPE && (*sees_truth || plim_name_behind(name, "*"));
}

/* --- sums ------------------------------------------------------------------------------------- */

static bool read_single(const char *list, struct plim_plan *plan)
{
    plan->types[NUMBER] = plim_name_type(plim_name_argument(list, 2));
    return read_input(plim_name_argument(list, 1), &plan->types[IN], &plan->numbers[POINTER_AT],
                      &plan->numbers[SEES_TRUTH]) &&
           plan->types[NUMBER] != PLIM_NO_TYPE &&
           plim_name_behind(plim_name_argument(list, 4), "plus") &&
           (plan->numbers[SEES_TRUTH] || !plim_type_is_float(plan->types[IN]));
}

/* Accepts a reduction to one partial sum per block. How the elements are distributed over the blocks does not matter:
 * the first partial sum receives the total. */
static bool read_parts(const char *list, struct plim_plan *plan)
{
    plan->types[NUMBER] = PLIM_INT32;
    return read_input(plim_name_argument(list, 1), &plan->types[IN], &plan->numbers[POINTER_AT],
                      &plan->numbers[SEES_TRUTH]) &&
           plan->numbers[SEES_TRUTH] && plim_name_begins(plim_name_argument(list, 4), "int");
}

enum { ALL = PLIM_KNOWN | PLIM_ASSUMPTION_ALL };

/* Sums the elements, or counts the nonzero ones. An element whose truth value is unknown counts as nonzero. */
static unsigned char sum(const struct plim_plan *plan, const struct plim_view *in, size_t count,
                         int64_t *total)
{
    size_t width = plim_type_bytes(plan->types[IN]);
    unsigned char known = PLIM_KNOWN;
    for (size_t i = 0; i < count; i++) {
        struct plim_number x;
        unsigned char its = plim_view_get(in, i * width, plan->types[IN], &x);
        bool counts = plan->numbers[SEES_TRUTH] && !(its & PLIM_KNOWN);
        known = plim_known_both(known, counts ? ALL : its);
        *total += counts ? 1 : plan->numbers[SEES_TRUTH] ? plim_number_is_true(x) : x.i;
    }
    return known;
}

/* Counts the nonzero elements of an input that is too large to examine: assumes all of them, unless the whole input is
 * filled with a known zero. */
static unsigned char sum_many(const struct plim_plan *plan, uintptr_t from, size_t count, int64_t *total)
{
    size_t width = plim_type_bytes(plan->types[IN]);
    unsigned char element[sizeof(int64_t)] = {0}, known;
    if (!plan->numbers[SEES_TRUTH]) return PLIM_UNKNOWN;
    *total = (int64_t)count;
    if (!plim_shadow_is_filled(from, count * width, width, element, &known)) return ALL;
    if (!memcmp(element, (unsigned char[sizeof(element)]){0}, width)) *total = 0;
    return known;
}

static bool run_sum(const struct plim_plan *plan, const struct plim_launch *launch, size_t parts)
{
    uintptr_t from = plim_launch_pointer(launch, 0, plan->numbers[POINTER_AT]),
              to = plim_launch_address(launch, 1);
    size_t count = (uint32_t)plim_launch_int(launch, 2),
           width = plim_type_bytes(plan->types[NUMBER]);
    struct plim_view in = {0}, out;
    int64_t total = 0;
    if (!plim_heap_is_device(from) || !plim_view_blank(&out, to, parts * width)) return false;
    bool few = count <= PLIM_MOST_OF_MASK &&
               plim_view_open_mask(&in, from, count * plim_type_bytes(plan->types[IN]));
    unsigned char known = few ? sum(plan, &in, count, &total) : sum_many(plan, from, count, &total);
    for (size_t i = 0; i < parts; i++)
        plim_view_set(&out, i * width, plan->types[NUMBER],
                      (struct plim_number){.i = i ? 0 : total}, known);
    plim_view_store(&out, launch->kernel);
    plim_view_close(&in);
    plim_view_close(&out);
    return true;
}

static bool run_single(const struct plim_plan *plan, const struct plim_launch *launch)
{
    return run_sum(plan, launch, 1);
}

static bool run_parts(const struct plim_plan *plan, const struct plim_launch *launch)
{
    return run_sum(plan, launch, launch->grid->x);
}

/* --- DeviceSelect ----------------------------------------------------------------------------- */

static bool read_select(const char *list, struct plim_plan *plan)
{
    struct plim_name in = plim_name_argument(list, 1), flags = plim_name_argument(list, 2);
    int64_t truth;
    bool counts = plim_name_behind(in, "counting_iterator<long") ||
                  plim_name_begins(in, "CountingInputIterator<long");
    bool is_unique = plim_name_begins(flags, "NullType") &&
                     plim_name_behind(plim_name_argument(list, 7), "equal_to");
    plan->numbers[COUNTS] = counts;
    plan->types[IN] = counts ? PLIM_INT64 : plim_name_type(in);
    plan->types[NUMBER] = plim_name_type(plim_name_argument(list, 4));
    plan->types[FLAGS] = PLIM_NO_TYPE;
    if (!is_unique && !read_input(flags, &plan->types[FLAGS], &plan->numbers[FLAGS_AT], &truth))
        return false;
    return plan->types[IN] != PLIM_NO_TYPE && plan->types[NUMBER] != PLIM_NO_TYPE;
}

/* Copies the selected elements to `out`, which has room for `most`. Returns how many were selected. */
static size_t select(const struct plim_plan *plan, const struct plim_launch *launch,
                     const struct plim_view *in, const struct plim_view *flags,
                     struct plim_view *out, size_t count, size_t most, unsigned char *known)
{
    enum plim_type type = plan->types[IN];
    size_t width = plim_type_bytes(type), taken = 0;
    struct plim_number before = {0}, x, flag;
    *known = PLIM_KNOWN;
    for (size_t i = 0; i < count; i++) {
        bool is_taken;
        unsigned char its = PLIM_KNOWN;
        if (plan->numbers[COUNTS])
            x = (struct plim_number){.i = plim_launch_long(launch, 0) + (int64_t)i};
        else
            its = plim_view_get(in, i * width, type, &x);
        if (plan->types[FLAGS] != PLIM_NO_TYPE) {
            unsigned char flag_known = plim_view_get(flags, i * plim_type_bytes(plan->types[FLAGS]),
                                                     plan->types[FLAGS], &flag);
            is_taken = !(flag_known & PLIM_KNOWN) || plim_number_is_true(flag);
            its = plim_known_both(its, flag_known & PLIM_KNOWN ? flag_known : ALL);
        } else
            is_taken = !i || plim_number_compare(x, before) != 0 || (x.is_float && x.f != x.f);
        before = x;
        *known = plim_known_both(*known, its);
        if (is_taken && taken < most) plim_view_set(out, taken++ * width, type, x, PLIM_KNOWN);
    }
    return taken;
}

/* Returns how many elements the output has room for. A program that counts first and allocates that many finds the
 * count where this kernel stores it. With --assume that count may be smaller than what a mask of unknown values selects
 * here. */
static size_t room_for(const struct plim_plan *plan, uintptr_t number, size_t count)
{
    struct plim_view view = {0};
    struct plim_number stored = {0};
    size_t room = count;
    if (!plim_view_open(&view, number, plim_type_bytes(plan->types[NUMBER]))) return room;
    unsigned char known = plim_view_get(&view, 0, plan->types[NUMBER], &stored);
    if (known & PLIM_ASSUMPTION_ALL && stored.i >= 0 && (uint64_t)stored.i < count) room = (size_t)stored.i;
    plim_view_close(&view);
    return room;
}

static bool run_select(const struct plim_plan *plan, const struct plim_launch *launch)
{
    size_t count = (uint32_t)plim_launch_int(launch, 7), width = plim_type_bytes(plan->types[IN]);
    uintptr_t to = plim_launch_address(launch, 2), number = plim_launch_address(launch, 3);
    struct plim_view in = {0}, flags = {0}, out = {0}, total;
    unsigned char known = PLIM_UNKNOWN;
    size_t taken = 0;
    bool has_flags = plan->types[FLAGS] != PLIM_NO_TYPE;
    /* No output address means that nothing is selected. */
    size_t room = !to ? 0 : has_flags ? room_for(plan, number, count) : count;
    if (!plim_view_blank(&total, number, plim_type_bytes(plan->types[NUMBER]))) return false;
    bool works = count && count <= PLIM_MOST_OF_MASK && (!to || plim_view_blank_mask(&out, to, count * width));
    if (!works && to) plim_launch_spoil_block(launch, to);
    if (works && !plan->numbers[COUNTS])
        works = plim_view_open_mask(&in, plim_launch_address(launch, 0), count * width);
    if (works && has_flags)
        works = plim_view_open_mask(&flags, plim_launch_pointer(launch, 1, plan->numbers[FLAGS_AT]),
                                    count * plim_type_bytes(plan->types[FLAGS]));
    if (works) taken = select(plan, launch, &in, &flags, &out, count, room, &known);
    out.bytes =
        taken *
        width; /* the rest keeps its contents; how large the program made the buffer is not known */
    if (taken) memset(out.known, known, out.bytes);
    if (taken) plim_view_store(&out, launch->kernel);
    plim_view_set(&total, 0, plan->types[NUMBER], (struct plim_number){.i = (int64_t)taken}, known);
    plim_view_store(&total, launch->kernel);
    plim_view_close(&in);
    plim_view_close(&flags);
    plim_view_close(&out);
    plim_view_close(&total);
    return true; /* the selected elements and their number are all that the kernel writes */
}

/* --- unique ----------------------------------------------------------------------------------- */

/* Run-length encoding: the distinct keys of consecutive equal keys, and the length of each run. */
static bool read_runs(const char *list, struct plim_plan *plan)
{
    plan->types[IN] = plim_name_type(plim_name_argument(list, 1));
    plan->types[FLAGS] = plim_name_type(plim_name_argument(list, 4));
    plan->types[NUMBER] = plim_name_type(plim_name_argument(list, 5));
    return plim_name_behind(plim_name_argument(list, 3), "constant_iterator<") &&
           plan->types[IN] != PLIM_NO_TYPE && plan->types[FLAGS] != PLIM_NO_TYPE &&
           plan->types[NUMBER] != PLIM_NO_TYPE;
}

static bool run_runs(const struct plim_plan *plan, const struct plim_launch *launch)
{
    size_t count = (uint32_t)plim_launch_int(launch, 9), width = plim_type_bytes(plan->types[IN]);
    size_t sum_width = plim_type_bytes(plan->types[FLAGS]);
    struct plim_view in = {0}, keys = {0}, sums = {0}, number = {0};
    unsigned char known = PLIM_KNOWN;
    int64_t runs = 0, length = 0;
    struct plim_number before = {0}, x;
    bool works = count && count <= PLIM_MOST_ELEMENTS &&
                 plim_view_open(&in, plim_launch_address(launch, 0), count * width) &&
                 plim_view_blank(&keys, plim_launch_address(launch, 1), count * width) &&
                 plim_view_blank(&sums, plim_launch_address(launch, 3), count * sum_width) &&
                 plim_view_blank(&number, plim_launch_address(launch, 4),
                                 plim_type_bytes(plan->types[NUMBER]));
    for (size_t i = 0; works && i < count; i++) {
        known = plim_known_both(known, plim_view_get(&in, i * width, plan->types[IN], &x));
        if (!i || plim_number_compare(x, before)) runs++, length = 0;
        plim_view_set(&keys, (size_t)(runs - 1) * width, plan->types[IN], x, PLIM_KNOWN);
        plim_view_set(&sums, (size_t)(runs - 1) * sum_width, plan->types[FLAGS],
                      (struct plim_number){.i = ++length}, PLIM_KNOWN);
        before = x;
    }
    works = works && known & PLIM_KNOWN;
    if (works) {
        keys.bytes = (size_t)runs * width;
        sums.bytes = (size_t)runs * sum_width;
        memset(keys.known, known, keys.bytes);
        memset(sums.known, known, sums.bytes);
        plim_view_set(&number, 0, plan->types[NUMBER], (struct plim_number){.i = runs}, known);
        plim_view_store(&keys, launch->kernel);
        plim_view_store(&sums, launch->kernel);
        plim_view_store(&number, launch->kernel);
    }
    plim_view_close(&in);
    plim_view_close(&keys);
    plim_view_close(&sums);
    plim_view_close(&number);
    return works;
}

static bool read_difference(const char *list, struct plim_plan *plan)
{
    plan->types[IN] = plim_name_type(plim_name_argument(list, 0));
    return plan->types[IN] != PLIM_NO_TYPE;
}

static bool run_difference(const struct plim_plan *plan, const struct plim_launch *launch)
{
    size_t count = (size_t)plim_launch_long(launch, 0), width = plim_type_bytes(plan->types[IN]);
    struct plim_view in = {0}, out = {0};
    struct plim_number before = {0}, x;
    unsigned char had = PLIM_KNOWN;
    bool works = count && count <= PLIM_MOST_ELEMENTS &&
                 plim_view_open(&in, plim_launch_address(launch, 1), count * width) &&
                 plim_view_blank(&out, plim_launch_address(launch, 2), count * sizeof(int32_t));
    for (size_t i = 0; works && i < count; i++) {
        unsigned char known = plim_view_get(&in, i * width, plan->types[IN], &x);
        struct plim_number differs = {.i = i && plim_number_compare(x, before) != 0};
        plim_view_set(&out, i * sizeof(int32_t), PLIM_INT32, differs, plim_known_both(known, had));
        before = x;
        had = known;
    }
    if (works) plim_view_store(&out, launch->kernel);
    plim_view_close(&in);
    plim_view_close(&out);
    return works;
}

static bool run_unique_bool(const struct plim_plan *plan, const struct plim_launch *launch)
{
    int64_t count = plim_launch_int(launch, 0);
    struct plim_view trues = {0}, out = {0}, number = {0};
    struct plim_number n = {0};
    unsigned char known = PLIM_UNKNOWN;
    (void)plan;
    bool works = plim_view_open(&trues, plim_launch_address(launch, 1), sizeof(int32_t)) &&
                 plim_view_blank(&out, plim_launch_address(launch, 2), 2) &&
                 plim_view_blank(&number, plim_launch_address(launch, 3), sizeof(int64_t));
    if (works) known = plim_view_get(&trues, 0, PLIM_INT32, &n);
    works = works && known & PLIM_KNOWN;
    bool has_true = n.i > 0, has_false = n.i < count;
    if (works) {
        plim_view_set(&out, 0, PLIM_BOOL, (struct plim_number){.i = !has_false}, known);
        plim_view_set(&out, 1, PLIM_BOOL, (struct plim_number){.i = 1}, known);
        out.bytes = (size_t)has_true + has_false;
        plim_view_set(&number, 0, PLIM_INT64, (struct plim_number){.i = has_true + has_false},
                      known);
        plim_view_store(&out, launch->kernel);
        plim_view_store(&number, launch->kernel);
    }
    plim_view_close(&trues);
    plim_view_close(&out);
    plim_view_close(&number);
    return works;
}

const struct plim_row plim_rows_cub[] = {
    {"DeviceReduceSingleTileKernel<", read_single, run_single},
    {"DeviceReduceKernel<", read_parts, run_parts},
    {"DeviceSelectSweepKernel<", read_select, run_select},
    {"DeviceReduceByKeyKernel<", read_runs, run_runs},
    {"adjacent_difference_kernel<", read_difference, run_difference},
    {"unique_bool_write_output", NULL, run_unique_bool},
    {0}};
