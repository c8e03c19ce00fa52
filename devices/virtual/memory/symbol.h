/* Variables in device memory, by the host variable that stands for them. */
#ifndef PLIM_DEVICES_VIRTUAL_MEMORY_SYMBOL_H
#define PLIM_DEVICES_VIRTUAL_MEMORY_SYMBOL_H

#include <stddef.h>
#include <stdint.h>

void plim_symbol_register(const void *host, size_t bytes);

/* The variable's address on the current GPU. A CUDA error code; GPU_INVALID_SYMBOL: never registered. */
int plim_symbol_find(const void *host, uintptr_t *at, size_t *bytes);

#endif
