/* The blocks into which a framework's own allocator divides the memory it takes from the GPU: the range that a kernel
 * may have written when only an address is known.
 *
 * PyTorch allocates segments of 2 to 20 MiB and more, and the driver does not see how it divides them; PyTorch reports
 * each block to its profiler (process/torch_blocks.c). Where nothing is reported, a block is a whole allocation. */
#ifndef PLIM_DEVICES_VIRTUAL_MEMORY_BLOCK_H
#define PLIM_DEVICES_VIRTUAL_MEMORY_BLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct plim_block {
    uintptr_t at;
    size_t bytes; /* 0: the address is not in GPU memory */
};

/* The framework's allocator allocated or freed a block. Its previous contents become "never written". */
void plim_block_allocated(uintptr_t at, size_t bytes);
void plim_block_freed(uintptr_t at);

/* Returns the block that contains an address; between blocks, the gap within the allocation. */
struct plim_block plim_block_find(uintptr_t at);

#endif
