/* Variables in device memory, identified by the host variable that stands for them. */
#ifndef PLIM_DEVICES_VIRTUAL_MEMORY_SYMBOL_H
#define PLIM_DEVICES_VIRTUAL_MEMORY_SYMBOL_H

#include <stddef.h>
#include <stdint.h>

void plim_symbol_register(const void *host, size_t bytes);

/* Stores the address and size of the variable on the current GPU. Returns a CUDA error code; GPU_INVALID_SYMBOL if it
 * was not registered. */
int plim_symbol_find(const void *host, uintptr_t *at, size_t *bytes);

#endif
