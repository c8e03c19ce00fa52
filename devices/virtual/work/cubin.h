/* What a cubin tells of its kernels and variables. It is an ELF file of 64 bits; that its sections
 * ".text.NAME" are kernels and what is in ".nv.info.NAME" was read off the output of ptxas 11.8 to
 * 13.0. Offsets in it are believed, as a driver's loader is handed no size either.
 */
#ifndef PLIM_DEVICES_VIRTUAL_WORK_CUBIN_H
#define PLIM_DEVICES_VIRTUAL_WORK_CUBIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The size of the file; 0: it is no cubin. */
size_t plim_cubin_bytes(const void *image);

/* How many parameters a kernel has, -1: there is no such kernel. `pointers` has a bit for each of
 * the first 32 that may be one, being of eight bytes. */
int plim_cubin_kernel(const void *image, const char *name, uint32_t *pointers);

/* The size of a variable in device memory; false: there is none of that name. */
bool plim_cubin_variable(const void *image, const char *name, size_t *bytes);

#endif
