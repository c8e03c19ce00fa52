/* The blocks that a framework's own allocator cuts from the memory it took from the GPU: the range that a
 * kernel may have written when only an address is known.
 *
 * PyTorch takes segments of 2 to 20 MiB and more, and the driver does not see how it divides them;
 * it reports each block to its profiler (process/torch_blocks.c). Where nothing is reported, a block is a
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

/* A block is handed out, or given back. Its previous contents are lost. */
void plim_block_take(uintptr_t at, size_t bytes);
void plim_block_give(uintptr_t at);

/* The block that contains an address; between blocks: the gap, within the allocation. */
struct plim_block plim_block_find(uintptr_t at);

#endif
