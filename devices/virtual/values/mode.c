/* The most frequent number: mode (aten/src/ATen/native/cuda/TensorModeKernel.cu, PyTorch 2.0 to 2.15).
 *
 *     compute_mode<T, 2 x threads>(const T *in, TensorInfo<T> modes, TensorInfo<long> indices, long slice,
 *                                  long slices)
 *
 * Slices of more than 2048 numbers are sorted (radix.c) and then processed by Thrust (CUDA 12.8 to 13): count the
 * distinct numbers; count the occurrences of each; take the largest count; find the first position of that number.
 *
 *     DeviceReduceKernel<policy, in, ...>(in, int *parts, unsigned count, shares, ...)
 *     DeviceReduceSingleTileKernel<policy, in, out, ...>(in, int *out, count, plus, int first, ...)
 *         in: transform_iterator<zip_function<not_equal_to<T>>, ...> {const T *numbers, *next}
 *     _kernel_agent<ReduceByKeyAgent<T *, constant_iterator<int>, ...>, ...>(in, {long, int one}, T *numbers,
 *         long *counts, int *number, state, same, plus, int count, int tiles)
 *     _kernel_agent<ReduceAgent<in, tuple<long, long> *, ..., arg_max_f<...>>, ...>(in, out, int count, [shares,
 *         queue,] largest)
 *         in: zip_iterator {const long *counts, long first}, or the partial results of several blocks
 *     DeviceReduceKernel<...>, DeviceReduceSingleTileKernel<...>                  as above, to tuple<bool, long> *
 *         in: zip_iterator {{const T *numbers, {_1 == T value}}, long first}, or the partial results of several
 * blocks */
#include "devices/virtual/memory/heap.h"
#include "plan.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { IN, WIDTH = sizeof(int64_t), PAIR = 2 * WIDTH }; /* IN: index of plan->types */
enum { THREADS, IS_OF_PAIRS, IS_OF_BLOCKS };            /* indices of plan->numbers */

/* --- short slices: compute_mode --------------------------------------------------------------- */

static bool read_slices(const char *list, struct plim_plan *plan)
{
    plan->types[IN] = plim_name_type(plim_name_argument(list, 0));
    plan->numbers[THREADS] = strtol(plim_name_argument(list, 1).at, NULL, 10) / 2;
    return plan->types[IN] != PLIM_NO_TYPE && plan->numbers[THREADS] > 0;
}

static int compare(const void *a, const void *b)
{
    const struct plim_number *x = a, *y = b;
    return plim_number_compare(*x, *y);
}

static size_t reversed(size_t bits)
{
    size_t out = 0;
    for (int i = 0; i < 5; i++) out |= (bits >> i & 1) << (4 - i);
    return out;
}

/* Returns the position of a number in the merge order of compute_mode, where each thread holds two numbers; of equally
 * frequent numbers the first in this order is taken. */
static size_t merge_position(size_t place)
{
    size_t thread = place / 2;
    return reversed(thread / 32) * 32 + reversed(thread % 32);
}

/* Returns the index of the most frequent of sorted numbers, or -1 if several are equally frequent and PyTorch versions
 * may return different ones. */
static int64_t most_frequent(const struct plim_number *sorted, size_t count)
{
    size_t run = 0, longest = 0, first = 0, soonest = 0;
    for (size_t i = 0; i < count; i++) {
        run = i && !plim_number_compare(sorted[i], sorted[i - 1]) ? run + 1 : 1;
        if (run > longest) longest = run, first = soonest = i;
        if (run == longest && merge_position(i) < merge_position(soonest)) soonest = i;
    }
    return first == soonest ? (int64_t)first : -1;
}

struct slices {
    struct plim_view in, modes, indices;
    struct plim_tensor mode, index;
    size_t size, count;
    enum plim_type type;
};

/* Computes a slice. The index is known only if the mode occurs once: otherwise the kernel may return any occurrence. */
static void compute_slice(struct slices *s, size_t slice, struct plim_number *numbers)
{
    size_t width = plim_type_bytes(s->type), begin = slice * s->size, found = 0;
    unsigned char known = PLIM_KNOWN;
    struct plim_number mode = {0}, index = {0}, x;
    for (size_t i = 0; i < s->size; i++) {
        known = plim_known_both(known, plim_view_get(&s->in, (begin + i) * width, s->type, &numbers[i]));
        if (numbers[i].is_float && isnan(numbers[i].f)) known = PLIM_UNKNOWN;
    }
    qsort(numbers, s->size, sizeof(*numbers), compare);
    int64_t which = known & PLIM_KNOWN ? most_frequent(numbers, s->size) : -1;
    if (which < 0) known = PLIM_UNKNOWN;
    if (which >= 0) mode = numbers[which];
    for (size_t i = 0; i < s->size && which >= 0; i++) {
        plim_view_get(&s->in, (begin + i) * width, s->type, &x);
        if (!plim_number_compare(x, mode)) found++, index.i = (int64_t)i;
    }
    plim_view_set(&s->modes, plim_tensor_offset(&s->mode, slice) * width, s->type, mode, known);
    plim_view_set(&s->indices, plim_tensor_offset(&s->index, slice) * WIDTH, PLIM_INT64, index,
                  found == 1 ? known : PLIM_UNKNOWN);
}

static bool run_slices(const struct plim_plan *plan, const struct plim_launch *launch)
{
    enum { INDEX_BYTES = 4, MOST = 2048 };
    int64_t size = plim_launch_long(launch, 3), count = plim_launch_long(launch, 4);
    struct slices s = {.size = (size_t)size, .count = (size_t)count, .type = plan->types[IN]};
    struct plim_number numbers[MOST];
    size_t width = plim_type_bytes(s.type);
    if (size <= 0 || size > MOST || size > 2 * plan->numbers[THREADS] || count <= 0 || count > INT32_MAX ||
        !plim_tensor_read(launch->arguments[1], INDEX_BYTES, &s.mode) ||
        !plim_tensor_read(launch->arguments[2], INDEX_BYTES, &s.index) || !plim_heap_is_device(s.mode.at))
        return false;
    bool works = count * size <= PLIM_MOST_ELEMENTS &&
                 plim_view_open(&s.in, plim_launch_address(launch, 0), s.count * s.size * width) &&
                 plim_view_open(&s.modes, s.mode.at, plim_tensor_span(&s.mode) * width) &&
                 plim_view_open(&s.indices, s.index.at, plim_tensor_span(&s.index) * WIDTH);
    for (size_t i = 0; works && i < s.count; i++) compute_slice(&s, i, numbers);
    if (works) {
        plim_view_store(&s.modes, launch->kernel);
        plim_view_store(&s.indices, launch->kernel);
    } else {
        plim_launch_spoil(launch, s.mode.at, plim_tensor_span(&s.mode) * width);
        plim_launch_spoil(launch, s.index.at, plim_tensor_span(&s.index) * WIDTH);
    }
    plim_view_close(&s.in);
    plim_view_close(&s.modes);
    plim_view_close(&s.indices);
    return true;
}

/* --- number of distinct numbers --------------------------------------------------------------- */

static bool read_different(const char *list, struct plim_plan *plan)
{
    struct plim_name in = plim_name_argument(list, 1);
    const char *same = plim_name_behind(in, "zip_function<");
    struct plim_name function = plim_name_argument(same, 0);
    const char *compared = plim_name_behind(function, "not_equal_to<");
    const char *pointers = plim_name_behind(in, "tuple<");
    plan->numbers[IS_OF_BLOCKS] = !strncmp(plan->row->name, "DeviceReduceKernel", strlen("DeviceReduceKernel"));
    plan->types[IN] = plim_name_type(plim_name_argument(compared, 0));
    return compared && pointers && plim_name_behind(in, "transform_iterator<") &&
           plim_name_behind(plim_name_argument(pointers, 1), "*") &&
           plim_name_type(plim_name_argument(pointers, 1)) == plan->types[IN] && plan->types[IN] != PLIM_NO_TYPE &&
           plim_name_behind(plim_name_argument(list, plan->numbers[IS_OF_BLOCKS] ? 3 : 4), "plus<int>");
}

/* Counts the positions where neighbours differ. If there are several blocks, the first one's partial sum is the
 * total. */
static bool run_different(const struct plim_plan *plan, const struct plim_launch *launch)
{
    enum { FIRST = 4 };
    bool is_of_blocks = plan->numbers[IS_OF_BLOCKS];
    size_t count = (uint32_t)plim_launch_int(launch, 2), width = plim_type_bytes(plan->types[IN]),
           parts = is_of_blocks ? launch->grid->x : 1;
    uintptr_t from = plim_launch_address(launch, 0), next = plim_launch_pointer(launch, 0, sizeof(from));
    struct plim_view in = {0}, out = {0};
    struct plim_number x, y, total = {.i = is_of_blocks ? 0 : plim_launch_int(launch, FIRST)};
    unsigned char known = PLIM_KNOWN;
    if (!count || !plim_heap_is_device(from) || next != from + width ||
        !plim_view_blank(&out, plim_launch_address(launch, 1), parts * sizeof(int32_t)))
        return false;
    if (count > PLIM_MOST_ELEMENTS || !plim_view_open(&in, from, (count + 1) * width)) known = PLIM_UNKNOWN;
    for (size_t i = 0; known & PLIM_KNOWN && i < count; i++) {
        known = plim_known_both(known, plim_view_get(&in, i * width, plan->types[IN], &x));
        known = plim_known_both(known, plim_view_get(&in, (i + 1) * width, plan->types[IN], &y));
        total.i += plim_number_compare(x, y) != 0 || (x.is_float && isnan(x.f));
    }
    for (size_t i = 0; i < parts; i++)
        plim_view_set(&out, i * sizeof(int32_t), PLIM_INT32, i ? (struct plim_number){0} : total, known);
    plim_view_store(&out, launch->kernel);
    plim_view_close(&in);
    plim_view_close(&out);
    return true;
}

/* --- occurrences of each number --------------------------------------------------------------- */

static bool read_runs(const char *list, struct plim_plan *plan)
{
    const char *agent = plim_name_behind(plim_name_argument(list, 0), "ReduceByKeyAgent<");
    plan->types[IN] = plim_name_type(plim_name_argument(agent, 0));
    return agent && plan->types[IN] != PLIM_NO_TYPE && plim_name_behind(plim_name_argument(agent, 0), "*") &&
           plim_name_behind(plim_name_argument(agent, 1), "constant_iterator<int") &&
           plim_name_type(plim_name_argument(plim_name_behind(plim_name_argument(agent, 2), "device_ptr<"), 0)) ==
               plan->types[IN] &&
           plim_name_behind(plim_name_argument(agent, 3), "device_ptr<long>") &&
           plim_name_behind(plim_name_argument(agent, 4), "equal_to<") &&
           plim_name_behind(plim_name_argument(agent, 5), "plus<") &&
           plim_name_begins(plim_name_argument(agent, 6), "int*") &&
           plim_name_begins(plim_name_argument(agent, 7), "int");
}

static bool run_runs(const struct plim_plan *plan, const struct plim_launch *launch)
{
    enum { OUT = 2, COUNTS, NUMBER, COUNT = 8 };
    struct { int64_t from; int32_t one; } each;
    enum plim_type type = plan->types[IN];
    size_t count = (uint32_t)plim_launch_int(launch, COUNT), width = plim_type_bytes(type), runs = 0;
    struct plim_view in = {0}, out = {0}, counts = {0}, number = {0};
    struct plim_number before = {0}, x, length = {0};
    unsigned char known = PLIM_KNOWN;
    memcpy(&each, launch->arguments[1], sizeof(each));
    if (!count || each.one != 1 || !plim_view_blank(&number, plim_launch_address(launch, NUMBER), sizeof(int32_t)))
        return false;
    bool works = count <= PLIM_MOST_ELEMENTS && plim_view_open(&in, plim_launch_address(launch, 0), count * width) &&
                 plim_view_blank(&out, plim_launch_address(launch, OUT), count * width) &&
                 plim_view_blank(&counts, plim_launch_address(launch, COUNTS), count * WIDTH);
    for (size_t i = 0; works && i < count; i++) {
        known = plim_known_both(known, plim_view_get(&in, i * width, type, &x));
        if (!i || plim_number_compare(x, before) || (x.is_float && isnan(x.f))) runs++, length.i = 0;
        length.i++;
        plim_view_set(&out, (runs - 1) * width, type, x, PLIM_KNOWN);
        plim_view_set(&counts, (runs - 1) * WIDTH, PLIM_INT64, length, PLIM_KNOWN);
        before = x;
    }
    works = works && known & PLIM_KNOWN;
    if (works) {
        out.bytes = runs * width;
        counts.bytes = runs * WIDTH;
        memset(out.known, known, out.bytes);
        memset(counts.known, known, counts.bytes);
        plim_view_store(&out, launch->kernel);
        plim_view_store(&counts, launch->kernel);
    } else {
        plim_launch_spoil_block(launch, plim_launch_address(launch, OUT));
        plim_launch_spoil_block(launch, plim_launch_address(launch, COUNTS));
    }
    plim_view_set(&number, 0, PLIM_INT32, (struct plim_number){.i = (int64_t)runs}, works ? known : PLIM_UNKNOWN);
    plim_view_store(&number, launch->kernel);
    plim_view_close(&in);
    plim_view_close(&out);
    plim_view_close(&counts);
    plim_view_close(&number);
    return true;
}

/* --- (number, index) pairs -------------------------------------------------------------------- */

/* A number, or a flag that one was found, and its index. */
struct pair {
    struct plim_number number, index;
    unsigned char known, index_known;
};

static struct pair pair_at(const struct plim_view *in, size_t i, enum plim_type type)
{
    struct pair pair;
    pair.known = plim_view_get(in, i * PAIR, type, &pair.number);
    pair.index_known = plim_view_get(in, i * PAIR + WIDTH, PLIM_INT64, &pair.index);
    return pair;
}

/* Stores the same pair as the partial result of each block; reducing those gives the same pair again. */
static bool store_pairs(const struct plim_plan *plan, const struct plim_launch *launch, const struct pair *pair,
                        enum plim_type type)
{
    size_t count = plan->numbers[IS_OF_BLOCKS] ? launch->grid->x : 1;
    struct plim_view out;
    if (!plim_view_blank(&out, plim_launch_address(launch, 1), count * PAIR)) return false;
    memset(out.data, 0, out.bytes);
    memset(out.known, pair->known, out.bytes); /* including the padding */
    for (size_t i = 0; i < count; i++) {
        plim_view_set(&out, i * PAIR, type, pair->number, pair->known);
        plim_view_set(&out, i * PAIR + WIDTH, PLIM_INT64, pair->index, pair->index_known);
    }
    plim_view_store(&out, launch->kernel);
    plim_view_close(&out);
    return true;
}

/* --- largest count ---------------------------------------------------------------------------- */

static bool read_largest(const char *list, struct plim_plan *plan)
{
    const char *agent = plim_name_behind(plim_name_argument(list, 0), "ReduceAgent<");
    struct plim_name in = plim_name_argument(agent, 0);
    const char *zipped = plim_name_behind(in, "zip_iterator<"),
               *both = plim_name_behind(plim_name_argument(zipped, 0), "tuple<");
    plan->numbers[IS_OF_PAIRS] = !zipped;
    plan->numbers[IS_OF_BLOCKS] = plim_name_behind(plim_name_argument(list, 4), "GridEvenShare<") != NULL;
    bool is_understood = zipped ? plim_name_behind(plim_name_argument(both, 0), "device_ptr<long>") &&
                                      plim_name_behind(plim_name_argument(both, 1), "counting_iterator<long")
                                : plim_name_behind(in, "tuple<long, long>*") != NULL;
    return agent && is_understood && plim_name_behind(plim_name_argument(agent, 1), "tuple<long, long>*") &&
           plim_name_begins(plim_name_argument(agent, 3), "int") &&
           plim_name_behind(plim_name_argument(agent, 4), "arg_max_f<long, long,") &&
           plim_name_behind(plim_name_argument(agent, 4), "less<long>") &&
           plim_name_behind(plim_name_argument(list, plan->numbers[IS_OF_BLOCKS] ? 6 : 4), "arg_max_f<");
}

static bool run_largest(const struct plim_plan *plan, const struct plim_launch *launch)
{
    bool is_of_pairs = plan->numbers[IS_OF_PAIRS];
    int64_t first = is_of_pairs ? 0 : (int64_t)plim_launch_pointer(launch, 0, WIDTH);
    size_t count = (uint32_t)plim_launch_int(launch, 2), width = is_of_pairs ? PAIR : WIDTH;
    struct pair best = {.known = PLIM_UNKNOWN, .index_known = PLIM_UNKNOWN};
    struct plim_view in = {0};
    if (!count) return false;
    bool works = count <= PLIM_MOST_ELEMENTS && plim_view_open(&in, plim_launch_address(launch, 0), count * width);
    for (size_t i = 0; works && i < count; i++) {
        struct pair pair = {.index.i = first + (int64_t)i};
        if (is_of_pairs)
            pair = pair_at(&in, i, PLIM_INT64);
        else
            pair.known = pair.index_known = plim_view_get(&in, i * WIDTH, PLIM_INT64, &pair.number);
        unsigned char known = i ? plim_known_both(best.known, pair.known) : pair.known;
        if (!i || pair.number.i > best.number.i || (pair.number.i == best.number.i && pair.index.i < best.index.i))
            best = pair;
        best.known = best.index_known = known;
        works = known & PLIM_KNOWN;
    }
    if (!works) best.known = best.index_known = PLIM_UNKNOWN;
    plim_view_close(&in);
    return store_pairs(plan, launch, &best, PLIM_INT64);
}

/* --- first position of a number --------------------------------------------------------------- */

static bool read_first(const char *list, struct plim_plan *plan)
{
    struct plim_name in = plim_name_argument(list, 1);
    const char *seen = plim_name_behind(in, "find_if::transform_input_iterator_t<"),
               *parts = plim_name_behind(plim_name_argument(seen, 2), "composite<"),
               *value = plim_name_behind(plim_name_argument(parts, 2), "value<");
    plan->numbers[IS_OF_PAIRS] = !seen;
    plan->numbers[IS_OF_BLOCKS] = !strncmp(plan->row->name, "DeviceReduceKernel", strlen("DeviceReduceKernel"));
    plan->types[IN] = plim_name_type(plim_name_argument(seen, 1));
    bool is_understood = seen ? plan->types[IN] != PLIM_NO_TYPE && value &&
                                    plim_name_type(plim_name_argument(value, 0)) == plan->types[IN] &&
                                    plim_name_behind(plim_name_argument(parts, 0), "operator_adaptor<") &&
                                    plim_name_behind(plim_name_argument(parts, 0), "::equal_to<") &&
                                    plim_name_behind(plim_name_argument(parts, 1), "argument<0") &&
                                    plim_name_behind(in, "counting_iterator<long")
                              : plim_name_behind(in, "tuple<bool, long>*") != NULL;
    return is_understood &&
           plim_name_behind(plim_name_argument(list, plan->numbers[IS_OF_BLOCKS] ? 3 : 4), "find_if::functor<");
}

/* The result of a search among unknown numbers. The number was taken from them, so it is found at an unknown index,
 * unless it is NaN; learned values are assumed not to be. */
static const struct pair somewhere = {.number = {.i = 1},
                                      .known = PLIM_KNOWN | PLIM_ASSUMPTION_FINITE,
                                      .index_known = PLIM_UNKNOWN};

static struct pair find(const struct plim_plan *plan, const struct plim_launch *launch, size_t count)
{
    enum plim_type type = plan->types[IN];
    size_t width = plim_type_bytes(type), value_at = WIDTH + plim_align(2, width);
    const char *argument = launch->arguments[0];
    struct pair found = {.known = PLIM_KNOWN, .index_known = PLIM_KNOWN};
    struct plim_number value = plim_number_load(argument + value_at, type), x;
    int64_t first = (int64_t)plim_launch_pointer(launch, 0, plim_align(value_at + width, WIDTH));
    struct plim_view in = {0};
    if (count > PLIM_MOST_ELEMENTS || !plim_view_open(&in, plim_launch_address(launch, 0), count * width))
        return somewhere;
    for (size_t i = 0; i < count && found.known & PLIM_KNOWN && !found.number.i; i++) {
        found.known = found.index_known = plim_known_both(found.known, plim_view_get(&in, i * width, type, &x));
        found.number.i = !plim_number_compare(x, value) && !(x.is_float && isnan(x.f));
        found.index.i = first + (int64_t)i;
    }
    plim_view_close(&in);
    return found.known & PLIM_KNOWN ? found : somewhere;
}

/* Combines partial results. All blocks stored the same pair, so the first one is the result. */
static struct pair find_in_pairs(const struct plim_launch *launch, size_t count)
{
    struct pair found = somewhere;
    struct plim_view in = {0};
    if (plim_view_open(&in, plim_launch_address(launch, 0), count * PAIR)) found = pair_at(&in, 0, PLIM_BOOL);
    plim_view_close(&in);
    return found;
}

static bool run_first(const struct plim_plan *plan, const struct plim_launch *launch)
{
    size_t count = (uint32_t)plim_launch_int(launch, 2);
    if (!count) return false;
    struct pair found = plan->numbers[IS_OF_PAIRS] ? find_in_pairs(launch, count) : find(plan, launch, count);
    return store_pairs(plan, launch, &found, PLIM_BOOL);
}

const struct plim_row plim_rows_mode[] = {{"compute_mode<", read_slices, run_slices},
                                          {"DeviceReduceKernel<", read_different, run_different},
                                          {"DeviceReduceSingleTileKernel<", read_different, run_different},
                                          {"_kernel_agent<", read_runs, run_runs},
                                          {"_kernel_agent<", read_largest, run_largest},
                                          {"DeviceReduceKernel<", read_first, run_first},
                                          {"DeviceReduceSingleTileKernel<", read_first, run_first},
                                          {0}};
