/* The k-th smallest number of each slice, and its index (aten/src/ATen/native/cuda/Sorting.cu, PyTorch 2.0 to 2.15):
 *
 *     gatherKthValue<T, I, dimensions>(TensorInfo<const T, I> in, I size, I k, I slices, I stride,
 *                                      TensorInfo<T, I> values, TensorInfo<long, I> indices)
 *     gatherMedian<T, I, dimensions>(TensorInfo<T, I> values, TensorInfo<long, I> indices, TensorInfo<const T, I> in,
 *                                    I size, I slices, I stride, bool without NaN)
 *
 * Which of several equal numbers the kernels return is undefined. */
#include "devices/virtual/memory/heap.h"
#include "plan.h"
#include <math.h>
#include <stdlib.h>

enum { WIDTH = sizeof(int64_t), IN = 0, INDEX_BYTES = 0 };

static bool read(const char *list, struct plim_plan *plan)
{
    struct plim_name index = plim_name_argument(list, 1);
    plan->types[IN] = plim_name_type(plim_name_argument(list, 0));
    plan->numbers[INDEX_BYTES] = plim_name_behind(index, "long") ? 8 : plim_name_behind(index, "int") ? 4 : 0;
    return plan->types[IN] != PLIM_NO_TYPE && plan->numbers[INDEX_BYTES];
}

struct slices {
    enum plim_type type;
    struct plim_tensor in, value, index;
    struct plim_view from, values, indices;
    int64_t size, count, stride, k; /* k counts from 1; 0: the median */
    bool without_nan;
};

static int compare(const void *a, const void *b)
{
    const struct plim_number *x = a, *y = b;
    return plim_number_compare(*x, *y);
}

/* Returns the index of the median in sorted numbers. A NaN sorts last, and is the median if there is one and
 * `without_nan` is not set. */
static int64_t middle(const struct slices *s, const struct plim_number *sorted)
{
    int64_t numbers = s->size;
    while (numbers && sorted[0].is_float && isnan(sorted[numbers - 1].f)) numbers--;
    if (numbers < s->size && !s->without_nan) return s->size - 1;
    return numbers ? (numbers - 1) / 2 : 0;
}

static void select_kth(struct slices *s, int64_t slice, struct plim_number *numbers)
{
    size_t width = plim_type_bytes(s->type), begin = plim_tensor_offset(&s->in, (size_t)slice);
    unsigned char known = PLIM_KNOWN;
    struct plim_number index = {0}, x;
    int64_t found = 0;
    for (int64_t i = 0; i < s->size; i++)
        known = plim_known_both(known, plim_view_get(&s->from, (begin + (size_t)(i * s->stride)) * width, s->type,
                                                     &numbers[i]));
    qsort(numbers, (size_t)s->size, sizeof(*numbers), compare);
    struct plim_number value = numbers[s->k ? s->k - 1 : middle(s, numbers)];
    for (int64_t i = 0; i < s->size; i++) {
        plim_view_get(&s->from, (begin + (size_t)(i * s->stride)) * width, s->type, &x);
        if (!plim_number_compare(x, value)) found++, index.i = i;
    }
    plim_view_set(&s->values, plim_tensor_offset(&s->value, (size_t)slice) * width, s->type, value, known);
    plim_view_set(&s->indices, plim_tensor_offset(&s->index, (size_t)slice) * WIDTH, PLIM_INT64, index,
                  found == 1 ? known : PLIM_UNKNOWN);
}

static bool run(struct slices *s, const struct plim_launch *launch)
{
    size_t width = plim_type_bytes(s->type), value_bytes = plim_tensor_span(&s->value) * width,
           index_bytes = plim_tensor_span(&s->index) * WIDTH,
           bytes = (plim_tensor_span(&s->in) + (size_t)((s->size - 1) * s->stride)) * width;
    bool works = s->size * s->count <= PLIM_MOST_ELEMENTS && plim_shadow_survey(s->in.at, bytes) & PLIM_KNOWN &&
                 plim_view_open(&s->from, s->in.at, bytes) && plim_view_open(&s->values, s->value.at, value_bytes) &&
                 plim_view_open(&s->indices, s->index.at, index_bytes);
    struct plim_number *numbers = works ? malloc((size_t)s->size * sizeof(*numbers)) : NULL;
    for (int64_t i = 0; numbers && i < s->count; i++) select_kth(s, i, numbers);
    if (numbers) {
        plim_view_store(&s->values, launch->kernel);
        plim_view_store(&s->indices, launch->kernel);
    } else {
        plim_launch_spoil(launch, s->value.at, value_bytes);
        plim_launch_spoil(launch, s->index.at, index_bytes);
    }
    free(numbers);
    plim_view_close(&s->from);
    plim_view_close(&s->values);
    plim_view_close(&s->indices);
    return true;
}

static int64_t number_at(const struct plim_plan *plan, const struct plim_launch *launch, int i)
{
    return plan->numbers[INDEX_BYTES] == 8 ? plim_launch_long(launch, i) : (uint32_t)plim_launch_int(launch, i);
}

/* Reads the arguments: `in` and `values` (followed by the indices) are the positions of the tensors, `size` and
 * `slices` (followed by the stride) those of the sizes. */
static bool find(const struct plim_plan *plan, const struct plim_launch *launch, int in, int values, int size,
                 int slices, struct slices *s)
{
    size_t bytes = (size_t)plan->numbers[INDEX_BYTES];
    s->type = plan->types[IN];
    s->size = number_at(plan, launch, size);
    s->count = number_at(plan, launch, slices);
    s->stride = number_at(plan, launch, slices + 1);
    return plim_tensor_read(launch->arguments[in], bytes, &s->in) &&
           plim_tensor_read(launch->arguments[values], bytes, &s->value) &&
           plim_tensor_read(launch->arguments[values + 1], bytes, &s->index) && plim_heap_is_device(s->value.at) &&
           plim_heap_is_device(s->index.at) && s->size > 0 && s->size <= INT32_MAX && s->count > 0 &&
           s->count <= INT32_MAX && s->stride >= 0 && s->stride <= INT32_MAX;
}

static bool run_kth(const struct plim_plan *plan, const struct plim_launch *launch)
{
    struct slices s = {.k = number_at(plan, launch, 2)};
    return find(plan, launch, 0, 5, 1, 3, &s) && s.k >= 1 && s.k <= s.size && run(&s, launch);
}

static bool run_median(const struct plim_plan *plan, const struct plim_launch *launch)
{
    struct slices s = {.without_nan = *(const char *)launch->arguments[6] != 0};
    return find(plan, launch, 2, 0, 3, 4, &s) && run(&s, launch);
}

const struct plim_row plim_rows_kth[] = {{"gatherKthValue<", read, run_kth},
                                         {"gatherMedian<", read, run_median},
                                         {0}};
