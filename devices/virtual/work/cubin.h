/* What a cubin tells of its kernels and variables. It is an ELF file of 64 bits; that its sections
 * ".text.NAME" are kernels and what is in ".nv.info.NAME" was read off the output of ptxas 11.8 to
 * 13.0. Nothing outside of it is read, whatever its tables say: a cut or damaged one has no kernels.
 */
#ifndef PLIM_DEVICES_VIRTUAL_WORK_CUBIN_H
#define PLIM_DEVICES_VIRTUAL_WORK_CUBIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The size of the file that begins at `image`, of which `room` bytes are there (PLIM_UNKNOWN_BYTES: a
 * driver's loader is not told); 0: it is no whole cubin. */
size_t plim_cubin_bytes(const void *image, size_t room);

/* How many parameters a kernel has, -1: there is no such kernel. `pointers` has a bit for each of
 * the first 32 that may be one, being of eight bytes. */
int plim_cubin_kernel(const void *image, size_t bytes, const char *name, uint32_t *pointers);

/* The size of a variable in device memory; false: there is none of that name. */
bool plim_cubin_variable(const void *image, size_t bytes, const char *name, size_t *size);

#endif
