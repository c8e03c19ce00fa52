/* Sorting along a dimension, and top-k (aten/src/ATen/native/cuda/Sort.cu, SortUtils.cuh, TensorTopK.cu, PyTorch 2.0 to
 * 2.15). Sorts are in place; each row is a slice of `size` elements that are `stride` apart:
 *
 *     bitonicSortKVInPlace<..., K, V, index, comparator, ...>(TensorInfo<K> keys, slices, size, stride,
 *         TensorInfo<V> values, stride, comparator)
 *     warpMergeSortKVInPlace<...>                              the same
 *     radixSortKVInPlace<...>(..., bool descending)
 *     sbtopk::gatherTopK<T, index, dimensions, _>(TensorInfo<const T> input, size, k, largest, slices, stride,
 *         TensorInfo<T> values, stride, TensorInfo<long> indices, stride, T *thresholds)
 *
 * Which of a few unknown numbers are the largest, such as router scores of experts, is assumed: they are spread evenly
 * over all positions. The order of unknown numbers is assumed likewise, and each still occurs once: the order of each
 * row is that of the previous row rotated by one. The top few of very many unknown numbers are the tokens with which a
 * beam search continues, assumed not to be special tokens (see pick() in reduce.c). */
#include "plan.h"
#include <stdlib.h>
#include <string.h>

enum { KEYS, VALUES };
enum { DESCENDING, INDEX_BYTES };
enum { MOST_SPREAD = 1024 }; /* largest row whose order is assumed: experts, not a vocabulary */
/* The top few of a row larger than the anchors of any detector are tokens: with T5's vocabulary of 32,128 a row has at
 * least two beams of it. Which anchors are the best determines how many boxes remain, so nothing is assumed of them. */
enum { MOST_ANCHORS = 49152, MOST_TOKENS = 64 };

struct item {
    struct plim_number key;
    unsigned char known;
    size_t place; /* original position */
};

static int rank(const void *a, const void *b, bool descending)
{
    const struct item *x = a, *y = b;
    int order = plim_number_compare(x->key, y->key);
    if (order) return descending ? -order : order;
    return (x->place > y->place) - (x->place < y->place);
}

static int rising(const void *a, const void *b)
{
    return rank(a, b, false);
}
static int falling(const void *a, const void *b)
{
    return rank(a, b, true);
}

/* Loads a row of keys. Returns false if one is unknown. */
static bool load(const struct plim_view *view, size_t first, size_t stride, size_t size,
                 enum plim_type type, struct item *items, unsigned char *known)
{
    size_t width = plim_type_bytes(type);
    *known = PLIM_KNOWN;
    for (size_t i = 0; i < size; i++) {
        items[i].known = plim_view_get(view, (first + i * stride) * width, type, &items[i].key);
        items[i].place = i;
        *known = plim_known_both(*known, items[i].known);
    }
    return *known & PLIM_KNOWN;
}

/* --- sorting in place ------------------------------------------------------------------------- */

static bool read(const char *list, struct plim_plan *plan)
{
    const char *end = strstr(list, ">(");
    const char *parameters = end ? end + 2 : NULL;
    const char *keys = parameters ? strstr(parameters, "TensorInfo<") : NULL;
    const char *values = keys ? strstr(keys + 1, "TensorInfo<") : NULL;
    if (!values) return false;
    plan->types[KEYS] = plim_name_type(plim_name_argument(keys + strlen("TensorInfo<"), 0));
    plan->types[VALUES] = plim_name_type(plim_name_argument(values + strlen("TensorInfo<"), 0));
    plan->numbers[DESCENDING] = strstr(parameters, "GTOp<") != NULL;
    plan->numbers[INDEX_BYTES] =
        plim_name_begins(plim_name_argument(keys + strlen("TensorInfo<"), 1), "unsigned int") ? 4
                                                                                              : 0;
    return plan->types[KEYS] != PLIM_NO_TYPE && plan->types[VALUES] != PLIM_NO_TYPE &&
           plan->numbers[INDEX_BYTES];
}

struct sorted {
    struct plim_tensor keys, values;
    size_t slices, size, keys_stride, values_stride;
};

/* Returns the span of a tensor in elements. Its TensorInfo has size 1 in the sorted dimension, so that dimension's size
 * and stride are passed. */
static size_t span_of(const struct plim_tensor *tensor, size_t size, size_t stride)
{
    return plim_tensor_span(tensor) + (size - 1) * stride;
}

/* Returns the position assumed for the number of rank i among unknown numbers. */
static size_t place_of(size_t row, size_t i, size_t size, bool descending)
{
    return (row + (descending ? i : size - 1 - i)) % size;
}

static void sort_rows(const struct plim_plan *plan, const struct sorted *s, struct plim_view *keys,
                      struct plim_view *values, bool descending, struct item *items)
{
    size_t width = plim_type_bytes(plan->types[KEYS]),
           value_width = plim_type_bytes(plan->types[VALUES]);
    struct plim_number *moved = malloc(s->size * sizeof(*moved));
    for (size_t r = 0; moved && r < s->slices; r++) {
        size_t first = plim_tensor_offset(&s->keys, r),
               first_value = plim_tensor_offset(&s->values, r);
        unsigned char known, all = PLIM_KNOWN;
        bool is_known =
            load(keys, first, s->keys_stride, s->size, plan->types[KEYS], items, &known);
        for (size_t i = 0; i < s->size; i++)
            all = plim_known_both(
                all, plim_view_get(values, (first_value + i * s->values_stride) * value_width,
                                   plan->types[VALUES], &moved[i]));
        if (is_known) qsort(items, s->size, sizeof(*items), descending ? falling : rising);
        /* Values that are spread evenly stay so in any order, so they are not moved. */
        bool stays = !is_known && all & (PLIM_ASSUMPTION_SPREAD | PLIM_ASSUMPTION_LONGEST);
        all = is_known ? plim_known_both(all, known) : plim_known_both(all, PLIM_KNOWN | PLIM_ASSUMPTION_SPREAD);
        for (size_t i = 0; i < s->size; i++) {
            if (!is_known && !stays) items[i].place = place_of(r, i, s->size, descending);
            plim_view_set(keys, (first + i * s->keys_stride) * width, plan->types[KEYS],
                          items[i].key, is_known ? known : PLIM_UNKNOWN);
            plim_view_set(values, (first_value + i * s->values_stride) * value_width,
                          plan->types[VALUES], moved[items[i].place], all);
        }
    }
    free(moved);
}

static bool run(const struct plim_plan *plan, const struct plim_launch *launch, bool descending)
{
    struct sorted s = {.slices = (uint32_t)plim_launch_int(launch, 1),
                       .size = (uint32_t)plim_launch_int(launch, 2),
                       .keys_stride = (uint32_t)plim_launch_int(launch, 3),
                       .values_stride = (uint32_t)plim_launch_int(launch, 5)};
    size_t index_bytes = (size_t)plan->numbers[INDEX_BYTES];
    if (!plim_tensor_read(launch->arguments[0], index_bytes, &s.keys) || !s.slices || !s.size ||
        !plim_tensor_read(launch->arguments[4], index_bytes, &s.values))
        return false;
    size_t bytes = span_of(&s.keys, s.size, s.keys_stride) * plim_type_bytes(plan->types[KEYS]);
    size_t value_bytes =
        span_of(&s.values, s.size, s.values_stride) * plim_type_bytes(plan->types[VALUES]);
    struct plim_view keys = {0}, values = {0};
    struct item *items = calloc(s.size, sizeof(*items));
    bool works = items && s.slices * s.size <= PLIM_MOST_ELEMENTS &&
                 (plim_shadow_survey(s.keys.at, bytes) | plim_shadow_survey(s.values.at, value_bytes)) & PLIM_KNOWN &&
                 plim_view_open(&keys, s.keys.at, bytes) &&
                 plim_view_open(&values, s.values.at, value_bytes);
    if (works) {
        sort_rows(plan, &s, &keys, &values, descending, items);
        plim_view_store(&keys, launch->kernel);
        plim_view_store(&values, launch->kernel);
    } else {
        plim_launch_spoil(launch, s.keys.at, bytes);
        plim_launch_spoil(launch, s.values.at, value_bytes);
    }
    free(items);
    plim_view_close(&keys);
    plim_view_close(&values);
    return true;
}

static bool run_compared(const struct plim_plan *plan, const struct plim_launch *launch)
{
    return run(plan, launch, plan->numbers[DESCENDING]);
}

static bool run_radix(const struct plim_plan *plan, const struct plim_launch *launch)
{
    return run(plan, launch, *(const unsigned char *)launch->arguments[6] != 0);
}

/* --- top-k ------------------------------------------------------------------------------------ */

static bool read_largest(const char *list, struct plim_plan *plan)
{
    plan->types[KEYS] = plim_name_type(plim_name_argument(list, 0));
    struct plim_name index = plim_name_argument(list, 1);
    plan->numbers[INDEX_BYTES] = plim_name_begins(index, "unsigned int")    ? 4
                                 : plim_name_begins(index, "unsigned long") ? 8
                                                                            : 0;
    return plan->types[KEYS] != PLIM_NO_TYPE && plan->numbers[INDEX_BYTES];
}

struct largest {
    struct plim_tensor in, values, indices;
    size_t slices, size, count, in_stride, values_stride, indices_stride;
    bool is_largest;
};

static int64_t number_at(const struct plim_plan *plan, const struct plim_launch *launch, int i)
{
    return plan->numbers[INDEX_BYTES] == 8 ? plim_launch_long(launch, i)
                                           : (uint32_t)plim_launch_int(launch, i);
}

static bool find(const struct plim_plan *plan, const struct plim_launch *launch, struct largest *l)
{
    size_t index_bytes = (size_t)plan->numbers[INDEX_BYTES];
    *l = (struct largest){.size = (size_t)number_at(plan, launch, 1),
                          .count = (size_t)number_at(plan, launch, 2),
                          .is_largest = *(const unsigned char *)launch->arguments[3] != 0,
                          .slices = (size_t)number_at(plan, launch, 4),
                          .in_stride = (size_t)number_at(plan, launch, 5),
                          .values_stride = (size_t)number_at(plan, launch, 7),
                          .indices_stride = (size_t)number_at(plan, launch, 9)};
    return plim_tensor_read(launch->arguments[0], index_bytes, &l->in) && l->count &&
           l->count <= l->size && l->slices &&
           plim_tensor_read(launch->arguments[6], index_bytes, &l->values) &&
           plim_tensor_read(launch->arguments[8], index_bytes, &l->indices);
}

/* Orders the selected elements by position, as the kernel does; of those equal to the threshold it takes the first. */
static int by_place(const void *a, const void *b)
{
    const struct item *x = a, *y = b;
    return (x->place > y->place) - (x->place < y->place);
}

/* Stores the assumed position of the i-th element selected from a row of unknown numbers; returns its state. */
static unsigned char pick(const struct largest *l, size_t row, size_t i, int64_t *place)
{
    bool is_token = l->size > MOST_ANCHORS && l->count <= MOST_TOKENS;
    size_t pick = row * l->count + i;
    *place = (int64_t)(pick % l->size);
    if (!is_token) return l->size <= MOST_SPREAD ? PLIM_KNOWN | PLIM_ASSUMPTION_SPREAD : PLIM_UNKNOWN;
    /* The row may hold the vocabularies of several beams, one after the other. No vocabulary ends at this fraction of
     * the row, nor within the following `steps` positions. */
    enum { BEGIN = 382, PARTS = 1000, STEPS = 1024 };
    size_t steps = l->size / STEPS > l->count ? l->size / STEPS : l->count;
    *place = (int64_t)(l->size / PARTS * BEGIN + pick % steps);
    return PLIM_KNOWN | PLIM_ASSUMPTION_LONGEST;
}

static void select_rows(const struct plim_plan *plan, const struct largest *l,
                        const struct plim_view *in, struct plim_view *values,
                        struct plim_view *indices, struct item *items)
{
    enum plim_type type = plan->types[KEYS];
    size_t width = plim_type_bytes(type);
    for (size_t r = 0; r < l->slices; r++) {
        unsigned char known;
        bool is_known =
            load(in, plim_tensor_offset(&l->in, r), l->in_stride, l->size, type, items, &known);
        if (is_known) qsort(items, l->size, sizeof(*items), l->is_largest ? falling : rising);
        if (is_known) qsort(items, l->count, sizeof(*items), by_place);
        for (size_t i = 0; i < l->count; i++) {
            struct plim_number place = {.i = (int64_t)items[i].place};
            unsigned char index_known = is_known ? known : pick(l, r, i, &place.i);
            plim_view_set(values,
                          (plim_tensor_offset(&l->values, r) + i * l->values_stride) * width, type,
                          items[i].key, is_known ? known : PLIM_UNKNOWN);
            plim_view_set(indices, (plim_tensor_offset(&l->indices, r) + i * l->indices_stride) * 8,
                          PLIM_INT64, place, index_known);
        }
    }
}

static bool run_largest(const struct plim_plan *plan, const struct plim_launch *launch)
{
    struct largest l;
    struct plim_view in = {0}, values = {0}, indices = {0};
    size_t width = plim_type_bytes(plan->types[KEYS]);
    if (!find(plan, launch, &l)) return false;
    size_t bytes = span_of(&l.values, l.count, l.values_stride) * width;
    size_t index_bytes = span_of(&l.indices, l.count, l.indices_stride) * 8;
    struct item *items = calloc(l.size, sizeof(*items));
    bool works = items && l.slices * l.size <= PLIM_MOST_ELEMENTS &&
                 plim_view_open(&in, l.in.at, span_of(&l.in, l.size, l.in_stride) * width) &&
                 plim_view_open(&values, l.values.at, bytes) &&
                 plim_view_open(&indices, l.indices.at, index_bytes);
    if (works) {
        select_rows(plan, &l, &in, &values, &indices, items);
        plim_view_store(&values, launch->kernel);
        plim_view_store(&indices, launch->kernel);
    } else {
        plim_launch_spoil(launch, l.values.at, bytes);
        plim_launch_spoil(launch, l.indices.at, index_bytes);
    }
    free(items);
    plim_view_close(&in);
    plim_view_close(&values);
    plim_view_close(&indices);
    return true;
}

const struct plim_row plim_rows_sort[] = {{"bitonicSortKVInPlace<", read, run_compared},
                                          {"warpMergeSortKVInPlace<", read, run_compared},
                                          {"radixSortKVInPlace<", read, run_radix},
                                          {"gatherTopK<", read_largest, run_largest},
                                          {0}};
