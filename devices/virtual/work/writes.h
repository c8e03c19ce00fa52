/* Finds what a launch of an unsupported kernel may have written: every block whose address occurs in its parameters.
 * Pointers to const are only read. Structures are searched for addresses (except for FlashAttention's sequence offsets,
 * which are only read). */
#ifndef PLIM_DEVICES_VIRTUAL_WORK_WRITES_H
#define PLIM_DEVICES_VIRTUAL_WORK_WRITES_H

#include "kernel.h"

enum { PLIM_WRITES = 4224 }; /* as many addresses as 32 KiB of parameters and a list of them can hold */

/* Stores the addresses in GPU memory, at most PLIM_WRITES; returns how many there are. `arguments` NULL: unknown, so
 * there are none. */
size_t plim_writes_find(const struct plim_kernel *kernel, const struct gpu_dim3 *grid, void *const *arguments,
                        uintptr_t *out);

/* Same, only for parameters that are pointers themselves: at most 32. */
size_t plim_writes_plain(const struct plim_kernel *kernel, void *const *arguments,
                         uintptr_t out[32]);

/* Returns the address that the kernel updates in place, element by element, as `weight += step * gradient` does; 0 if
 * none is known. */
uintptr_t plim_writes_in_place(const struct plim_kernel *kernel, void *const *arguments);

/* Marks the blocks that contain these addresses as unknown. */
void plim_writes_spoil(const uintptr_t *written, size_t count, const char *writer);

#endif
