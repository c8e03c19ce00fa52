/* Access to the arguments of PyTorch's kernels; see plan.h. */
#include "devices/virtual/memory/block.h"
#include "devices/virtual/memory/shadow.h"
#include "plan.h"
#include <string.h>

uintptr_t plim_launch_pointer(const struct plim_launch *launch, int i, size_t at)
{
    uintptr_t value;
    memcpy(&value, (const char *)launch->arguments[i] + at, sizeof(value));
    return value;
}

uintptr_t plim_launch_address(const struct plim_launch *launch, int i)
{
    return plim_launch_pointer(launch, i, 0);
}

int64_t plim_launch_long(const struct plim_launch *launch, int i)
{
    return (int64_t)plim_launch_address(launch, i);
}

int32_t plim_launch_int(const struct plim_launch *launch, int i)
{
    int32_t value;
    memcpy(&value, launch->arguments[i], sizeof(value));
    return value;
}

/* The size is clipped to the block: if a function is not known, neither is the type of its result, so `bytes` may be
 * too large. */
void plim_launch_spoil(const struct plim_launch *launch, uintptr_t at, size_t bytes)
{
    struct plim_block block = plim_block_find(at);
    size_t room = block.at + block.bytes - at;
    plim_shadow_spoil(at, block.bytes && bytes > room ? room : bytes, launch->kernel);
}

void plim_launch_spoil_block(const struct plim_launch *launch, uintptr_t at)
{
    struct plim_block block = plim_block_find(at);
    plim_shadow_spoil(block.at, block.bytes, launch->kernel);
}

size_t plim_offsets_bytes(int operands)
{
    return sizeof(struct plim_offsets) + sizeof(uint32_t) * PLIM_DIMENSIONS * (size_t)operands;
}

bool plim_offsets_check(const struct plim_offsets *offsets, size_t elements)
{
    size_t product = 1;
    if (offsets->dimensions < 0 || offsets->dimensions > PLIM_DIMENSIONS) return false;
    for (int d = 0; d < offsets->dimensions; d++) product *= offsets->sizes[d][0];
    return product == elements;
}

size_t plim_offsets_of(const struct plim_offsets *offsets, size_t index, int operand, int operands)
{
    size_t sum = 0;
    for (int d = 0; d < offsets->dimensions; d++) {
        sum += index % offsets->sizes[d][0] * offsets->strides[d * operands + operand];
        index /= offsets->sizes[d][0];
    }
    return sum;
}

/* Advances the index like an odometer instead of dividing for every element. */
void plim_offsets_row(const struct plim_offsets *offsets, size_t first, size_t count, int operand,
                      int operands, size_t *out)
{
    size_t at[PLIM_DIMENSIONS], place = plim_offsets_of(offsets, first, operand, operands);
    for (int d = 0; d < offsets->dimensions; d++) {
        at[d] = first % offsets->sizes[d][0];
        first /= offsets->sizes[d][0];
    }
    for (size_t k = 0; k < count; k++) {
        out[k] = place;
        for (int d = 0; d < offsets->dimensions; d++) {
            size_t stride = offsets->strides[d * operands + operand];
            place += stride;
            if (++at[d] < offsets->sizes[d][0]) break;
            place -= at[d] * stride;
            at[d] = 0;
        }
    }
}

size_t plim_offsets_last(const struct plim_offsets *offsets, int operand, int operands)
{
    size_t sum = 0;
    for (int d = 0; d < offsets->dimensions; d++)
        sum += (size_t)(offsets->sizes[d][0] - 1) * offsets->strides[d * operands + operand];
    return sum;
}

static int64_t index_at(const char *at, size_t i, size_t index_bytes)
{
    int64_t value = 0;
    uint32_t word;
    memcpy(&word, at + i * index_bytes, sizeof(word));
    memcpy(&value, at + i * index_bytes, index_bytes);
    return index_bytes == sizeof(word) ? (int64_t)word : value;
}

bool plim_tensor_read(const void *argument, size_t index_bytes, struct plim_tensor *out)
{
    const char *sizes = (const char *)argument + sizeof(uintptr_t),
               *strides = sizes + PLIM_DIMENSIONS * index_bytes;
    int32_t dimensions;
    memcpy(&out->at, argument, sizeof(out->at));
    memcpy(&dimensions, strides + PLIM_DIMENSIONS * index_bytes, sizeof(dimensions));
    out->dimensions = dimensions;
    if (dimensions < 0 || dimensions > PLIM_DIMENSIONS) return false;
    for (int d = 0; d < dimensions; d++) {
        out->sizes[d] = index_at(sizes, (size_t)d, index_bytes);
        out->strides[d] = index_at(strides, (size_t)d, index_bytes);
        if (out->sizes[d] <= 0 || out->sizes[d] > INT32_MAX || out->strides[d] < 0 ||
            out->strides[d] > INT32_MAX)
            return false;
    }
    return true;
}

size_t plim_tensor_span(const struct plim_tensor *tensor)
{
    size_t span = 1;
    for (int d = 0; d < tensor->dimensions; d++)
        span += (size_t)(tensor->sizes[d] - 1) * (size_t)tensor->strides[d];
    return span;
}

size_t plim_tensor_offset(const struct plim_tensor *tensor, size_t index)
{
    size_t offset = 0;
    for (int d = tensor->dimensions; d-- > 0;) {
        offset += index % (size_t)tensor->sizes[d] * (size_t)tensor->strides[d];
        index /= (size_t)tensor->sizes[d];
    }
    return offset;
}
