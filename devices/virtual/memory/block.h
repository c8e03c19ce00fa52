/* The blocks that a framework's own allocator hands out of what it took from the GPU: what a kernel
 * may have written that was given an address and nothing more.
 *
 * PyTorch takes segments of 2 to 20 MiB and more, and a driver does not see what it makes of them;
 * it tells its profiler of each block (process/torch_blocks.c). Where nothing is told, a block is a
 * whole allocation.
 */
#ifndef PLIM_DEVICES_VIRTUAL_MEMORY_BLOCK_H
#define PLIM_DEVICES_VIRTUAL_MEMORY_BLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct plim_block {
    uintptr_t at;
    size_t bytes; /* 0: the address is in no memory of the GPU */
};

/* A block is handed out, or given back. What was there has no value any more. */
void plim_block_take(uintptr_t at, size_t bytes);
void plim_block_give(uintptr_t at);

/* The block around an address; between blocks the gap, as far as the allocation goes. */
struct plim_block plim_block_find(uintptr_t at);

#endif
