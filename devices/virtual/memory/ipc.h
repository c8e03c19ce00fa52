/* Sharing device memory between processes: cudaIpcMemHandle_t and CUipcMemHandle.
 *
 * A handle contains the owner, the GPU, and the address and size of the whole allocation. A process that opens it gets
 * addresses of its own; the memory is counted only for the owner. Shadows (shadow.h) are not shared. */
#ifndef PLIM_DEVICES_VIRTUAL_MEMORY_IPC_H
#define PLIM_DEVICES_VIRTUAL_MEMORY_IPC_H

#include "devices/virtual/machine/self.h"

struct plim_ipc_handle {
    char bytes[64];
};

int plim_ipc_export(uintptr_t at, struct plim_ipc_handle *out);
/* Opens a handle. GPU_INVALID_CONTEXT in the process that exported it, as in CUDA. */
int plim_ipc_import(const struct plim_ipc_handle *handle, uintptr_t *at);
int plim_ipc_close(uintptr_t at);

/* Events shared between processes always count as completed. */
int plim_ipc_event_export(const void *event, struct plim_ipc_handle *out);

#endif
