/* The kernels and variables in a cubin, a 64-bit ELF file. The meaning of its sections ".text.NAME" (kernels) and
 * ".nv.info.NAME" was inferred from the output of ptxas 11.8 to 13.0. Nothing outside the image is read, whatever its
 * tables say: a truncated or damaged image has no kernels. */
#ifndef PLIM_DEVICES_VIRTUAL_WORK_CUBIN_H
#define PLIM_DEVICES_VIRTUAL_WORK_CUBIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Returns the size of the file that starts at `image`, of which `room` bytes may be read (PLIM_UNKNOWN_BYTES: the
 * driver's loader is not told the size); 0 if it is not a complete cubin. */
size_t plim_cubin_bytes(const void *image, size_t room);

/* Returns the number of parameters of a kernel, or -1 if there is no such kernel. `pointers` is a bit mask of the first
 * 32 parameters: those that may be pointers because they have eight bytes. */
int plim_cubin_kernel(const void *image, size_t bytes, const char *name, uint32_t *pointers);

/* Stores the size of a variable in device memory. Returns false if there is none of that name. */
bool plim_cubin_variable(const void *image, size_t bytes, const char *name, size_t *size);

#endif
