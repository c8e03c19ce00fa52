/* The GPU's memory: segments, ranges of addresses, and the chunks that are mapped into them.
 *
 * All allocations are recorded, so that all can be freed even if the caller has lost track of them. Contracts and
 * statuses are those of the device functions of the same names (device.h). */
#ifndef PLIM_DEVICES_CUDA_MEMORY_H
#define PLIM_DEVICES_CUDA_MEMORY_H

#include "autotune/base/array.h"
#include "context.h"

/* A part of device memory, or of device addresses. */
struct plim_cuda_extent {
    uint64_t address;
    int64_t bytes;
};

/* Physical memory mapped at an address. */
struct plim_cuda_chunk {
    uint64_t address;
    int64_t bytes;
    CUmemGenericAllocationHandle handle;
};

struct plim_cuda_memory {
    struct plim_cuda_context *context; /* lent */
    int64_t capacity_bytes;            /* maximum that may be held, whatever the GPU has left */
    int64_t held_bytes;                /* segments, rounded like the driver does, and chunks */
    int64_t free_bytes_at_open;
    int64_t granularity_bytes; /* of physical memory; 0: this GPU cannot map pages */
    bool spills; /* Windows: when the GPU is full, the driver moves memory to the host instead of failing */
    PLIM_ARRAY(struct plim_cuda_extent) segments; /* all three arrays are sorted by address */
    PLIM_ARRAY(struct plim_cuda_extent) ranges;
    PLIM_ARRAY(struct plim_cuda_chunk) chunks;
};

/* `capacity_bytes`: at most what the GPU has. `context` must be open and must not move. */
enum plim_status plim_cuda_memory_open(struct plim_cuda_memory *memory,
                                       struct plim_cuda_context *context,
                                       int64_t capacity_bytes) PLIM_MUST_CHECK;
/* Frees everything that is held and keeps the arrays. */
void plim_cuda_memory_clear(struct plim_cuda_memory *memory);
void plim_cuda_memory_close(struct plim_cuda_memory *memory); /* zeroed is allowed */

enum plim_status plim_cuda_segment_get(struct plim_cuda_memory *memory, int64_t bytes,
                                       uint64_t *address) PLIM_MUST_CHECK;
void plim_cuda_segment_return(struct plim_cuda_memory *memory, uint64_t address);
enum plim_status plim_cuda_range_reserve(struct plim_cuda_memory *memory, int64_t bytes,
                                         uint64_t *address) PLIM_MUST_CHECK;
void plim_cuda_range_release(struct plim_cuda_memory *memory, uint64_t address);
enum plim_status plim_cuda_range_map(struct plim_cuda_memory *memory, uint64_t address,
                                     int64_t bytes, int64_t page_bytes) PLIM_MUST_CHECK;
void plim_cuda_range_unmap(struct plim_cuda_memory *memory, uint64_t address, int64_t bytes);

#endif
