/* at::native::CatArrayBatchedCopy* (aten/src/ATen/native/cuda/Shape.cu, PyTorch 2.0 to 2.15). Template arguments: an
 * opaque type, the index type, the number of dimensions, the capacity for inputs, the capacity for strided inputs.
 * Arguments: output; metadata; sizes and strides of the output, 4 each; the concatenated dimension; its stride. The
 * metadata:
 *
 *     pointers[capacity]; uint32 offsets, sizes along the dimension, elements [capacity each]; uint8
 *     contiguous[capacity];
 *     sizes and strides, 4 each, of the inputs that are not contiguous [capacity for strided inputs]
 *
 * The number of inputs is the y dimension of the grid. In the vectorized form the sizes and strides of the output count
 * vectors and everything else counts elements; the copy is done in vectors. */
#include "devices/virtual/memory/heap.h"
#include "plan.h"
#include <stdlib.h>
#include <string.h>

enum { WIDTH, DIMENSIONS, MOST, KEPT, VECTOR };
enum { CAT_DIMENSIONS = 4 };

static bool read(const char *list, struct plim_plan *plan)
{
    plan->numbers[WIDTH] = plim_name_opaque_bytes(plim_name_argument(list, 0));
    if (!plan->numbers[WIDTH] || !plim_name_begins(plim_name_argument(list, 1), "unsigned int")) return false;
    plan->numbers[VECTOR] = 1;
    for (int i = DIMENSIONS; i <= KEPT; i++) {
        struct plim_name number = plim_name_argument(list, i + 1);
        if (!number.at) return false;
        plan->numbers[i] = strtol(number.at, NULL, 10);
    }
    return plan->numbers[DIMENSIONS] >= 1 && plan->numbers[DIMENSIONS] <= CAT_DIMENSIONS &&
           plan->numbers[MOST] >= 1 && plan->numbers[MOST] <= 1024 && plan->numbers[KEPT] >= 1;
}

/* As read(), followed by the bytes of a vector and the elements of a vector. */
static bool read_vectorized(const char *list, struct plim_plan *plan)
{
    struct plim_name elements = plim_name_argument(list, 6);
    if (!read(list, plan) || !elements.at) return false;
    plan->numbers[VECTOR] = strtol(elements.at, NULL, 10);
    plan->numbers[WIDTH] *= plan->numbers[VECTOR];
    return plan->numbers[VECTOR] > 0;
}

struct input {
    uintptr_t at;
    uint32_t offset, size, elements;
    bool is_contiguous;
    uint32_t sizes[CAT_DIMENSIONS], strides[CAT_DIMENSIONS];
};

struct output {
    uintptr_t at;
    uint32_t sizes[CAT_DIMENSIONS], strides[CAT_DIMENSIONS], stride;
    int along, dimensions;
    size_t width;
};

/* Converts the input to the units of the copy (elements or vectors); `offset` becomes the offset from the start of the
 * output. */
static void count_units(const struct plim_plan *plan, const struct output *out, struct input *input)
{
    uint32_t vector = (uint32_t)plan->numbers[VECTOR];
    input->offset = input->offset * out->stride / vector;
    if (vector > 1 && out->along == out->dimensions - 1)
        input->size = input->size * out->stride / vector;
    input->elements /= vector;
}

static struct input input_of(const struct plim_plan *plan, const struct output *out,
                             const char *metadata, size_t i)
{
    size_t most = (size_t)plan->numbers[MOST];
    const char *words = metadata + most * sizeof(uintptr_t),
               *flags = words + 3 * most * sizeof(uint32_t);
    struct input input;
    memcpy(&input.at, metadata + i * sizeof(uintptr_t), sizeof(input.at));
    memcpy(&input.offset, words + i * sizeof(uint32_t), sizeof(uint32_t));
    memcpy(&input.size, words + (most + i) * sizeof(uint32_t), sizeof(uint32_t));
    memcpy(&input.elements, words + (2 * most + i) * sizeof(uint32_t), sizeof(uint32_t));
    input.is_contiguous = plan->numbers[KEPT] < 2 || flags[i];
    count_units(plan, out, &input);
    if (input.is_contiguous) return input;
    const char *layout =
        metadata + plim_align((size_t)(flags - metadata) + most, sizeof(uint32_t)) + i * 32;
    memcpy(input.sizes, layout, sizeof(input.sizes));
    memcpy(input.strides, layout + sizeof(input.sizes), sizeof(input.strides));
    return input;
}

static size_t bytes_of(const struct input *input, const struct output *out)
{
    size_t span = 1;
    if (input->is_contiguous) return input->elements * out->width;
    for (int d = 0; d < out->dimensions; d++)
        span += (size_t)(input->sizes[d] - 1) * input->strides[d];
    return span * out->width;
}

static void copy(const struct input *input, const struct output *out, const struct plim_view *from,
                 struct plim_view *to)
{
    for (size_t e = 0; e < input->elements; e++) {
        size_t rest = e, place = input->offset, source = 0;
        for (int d = out->dimensions; d-- > 0;) {
            size_t size = d == out->along ? input->size : out->sizes[d], k = rest % size;
            rest /= size;
            place += k * out->strides[d];
            if (!input->is_contiguous) source += k * input->strides[d];
        }
        if (input->is_contiguous) source = e;
        plim_view_move(to, place * out->width, from, source * out->width, out->width);
    }
}

/* Concatenates contiguous one-dimensional inputs of any size by copying ranges. */
static bool join(const struct plim_plan *plan, const struct plim_launch *launch,
                 const struct output *out)
{
    if (out->dimensions != 1 || out->strides[0] != 1) return false;
    for (size_t i = 0; i < launch->grid->y; i++) {
        struct input input = input_of(plan, out, launch->arguments[1], i);
        if (!input.is_contiguous || !plim_heap_is_device(input.at)) return false;
    }
    for (size_t i = 0; i < launch->grid->y; i++) {
        struct input input = input_of(plan, out, launch->arguments[1], i);
        plim_shadow_copy(out->at + input.offset * out->width, input.at,
                         input.elements * out->width);
    }
    return true;
}

static bool run(const struct plim_plan *plan, const struct plim_launch *launch)
{
    struct output out = {.at = plim_launch_address(launch, 0),
                         .along = plim_launch_int(launch, 3),
                         .stride = (uint32_t)plim_launch_int(launch, 4),
                         .dimensions = (int)plan->numbers[DIMENSIONS],
                         .width = (size_t)plan->numbers[WIDTH]};
    struct plim_view to;
    size_t span = 1;
    memcpy(out.sizes, launch->arguments[2], sizeof(out.sizes));
    memcpy(out.strides, (const char *)launch->arguments[2] + sizeof(out.sizes),
           sizeof(out.strides));
    if (launch->grid->y > plan->numbers[MOST] || out.along < 0 || out.along >= CAT_DIMENSIONS ||
        !plim_heap_is_device(out.at))
        return false;
    if (join(plan, launch, &out)) return true;
    for (int d = 0; d < out.dimensions; d++) {
        if (!out.sizes[d]) return false;
        span += (size_t)(out.sizes[d] - 1) * out.strides[d];
    }
    bool works = span <= PLIM_MOST_ELEMENTS && plim_view_open(&to, out.at, span * out.width);
    if (!works) plim_launch_spoil(launch, out.at, span * out.width);
    for (size_t i = 0; works && i < launch->grid->y; i++) {
        struct input input = input_of(plan, &out, launch->arguments[1], i);
        struct plim_view from = {0};
        if (!input.elements) continue;
        plim_view_open(&from, input.at,
                       bytes_of(&input, &out)); /* if this fails, the input's part of the output is unknown */
        copy(&input, &out, &from, &to);
        plim_view_close(&from);
    }
    if (works) plim_view_store(&to, launch->kernel);
    if (works) plim_view_close(&to);
    return true;
}

const struct plim_row plim_rows_cat[] = {{"CatArrayBatchedCopy_vectorized<", read_vectorized, run},
                                         {"CatArrayBatchedCopy_alignedK_contig<", read, run},
                                         {"CatArrayBatchedCopy_contig<", read, run},
                                         {"CatArrayBatchedCopy_aligned16_contig<", read, run},
                                         {"CatArrayBatchedCopy<", read, run},
                                         {0}};
