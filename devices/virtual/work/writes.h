/* What a launch of a kernel that is not understood may have written: every block whose address occurs in its
 * parameters. Pointers to const are only read; structures are searched for
 * addresses (except FlashAttention's ends of sequences, which are only read). */
#ifndef PLIM_DEVICES_VIRTUAL_WORK_WRITES_H
#define PLIM_DEVICES_VIRTUAL_WORK_WRITES_H

#include "kernel.h"

enum { PLIM_WRITES = 4224 }; /* as many addresses as 32 KiB of parameters and a list of them hold */

/* Fills `out` with addresses in the GPU's memory, at most PLIM_WRITES; returns how many there are.
 * `arguments` NULL: not known; then there are none. */
size_t plim_writes_find(const struct plim_kernel *kernel, const struct gpu_dim3 *grid, void *const *arguments,
                        uintptr_t *out);

/* Only the addresses in parameters that are pointers themselves: at most 32. */
size_t plim_writes_plain(const struct plim_kernel *kernel, void *const *arguments,
                         uintptr_t out[32]);

/* The address that it updates in place, element by element, as `weight += step * gradient` does; 0: none is
 * known. */
uintptr_t plim_writes_in_place(const struct plim_kernel *kernel, void *const *arguments);

/* Marks all blocks that contain these addresses as unknown. */
void plim_writes_spoil(const uintptr_t *written, size_t count, const char *writer);

#endif
