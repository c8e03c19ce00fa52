/* Host memory that the GPU may access: pinned, registered, managed.
 *
 * Pinned and managed memory is real. Managed memory is not counted against the GPU: the driver moves its pages in and
 * out as kernels touch them, and no kernel runs here; a note says so. */
#ifndef PLIM_DEVICES_VIRTUAL_MEMORY_HOST_MEMORY_H
#define PLIM_DEVICES_VIRTUAL_MEMORY_HOST_MEMORY_H

#include "devices/virtual/machine/self.h"

int plim_host_allocate(size_t bytes, unsigned flags, void **out);
int plim_host_free(void *at);
int plim_host_register(void *at, size_t bytes, unsigned flags);
int plim_host_unregister(void *at);
int plim_managed_allocate(int device, size_t bytes, uintptr_t *out);
bool plim_managed_free(uintptr_t at); /* false: not managed memory */

#endif
