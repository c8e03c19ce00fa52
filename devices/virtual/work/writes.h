/* What a launch may have written that is not understood: every block whose address stands in its
 * parameters. Pointers to const are read; what a structure has in it is looked through for
 * addresses, of which FlashAttention's ends of sequences are read too. */
#ifndef PLIM_DEVICES_VIRTUAL_WORK_WRITES_H
#define PLIM_DEVICES_VIRTUAL_WORK_WRITES_H

#include "kernel.h"

enum { PLIM_WRITES = 4224 }; /* as many addresses as 32 KiB of parameters and a list of them hold */

/* Fills `out` with addresses in the GPU's memory, at most PLIM_WRITES; returns how many there are.
 * `arguments` NULL: not seen, and none. */
size_t plim_writes_find(const struct plim_kernel *kernel, const struct gpu_dim3 *grid, void *const *arguments,
                        uintptr_t *out);

/* Those that pointers among the parameters themselves hold: at most 32. */
size_t plim_writes_plain(const struct plim_kernel *kernel, void *const *arguments,
                         uintptr_t out[32]);

/* What it reads and writes, each number in its place, as `weight += step * gradient` does; 0: nothing is
 * known to be so. */
uintptr_t plim_writes_in_place(const struct plim_kernel *kernel, void *const *arguments);

/* Makes all blocks unknown that these lie in. */
void plim_writes_spoil(const uintptr_t *written, size_t count, const char *writer);

#endif
