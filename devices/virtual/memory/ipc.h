/* Device memory of one process in another: cudaIpcMemHandle_t and CUipcMemHandle.
 *
 * A handle contains the owner, the GPU and the size of the whole allocation; a process that opens it gets
 * its own addresses for it, and the memory is counted only for the owner. Shadows (shadow.h) are not shared.
 */
#ifndef PLIM_DEVICES_VIRTUAL_MEMORY_IPC_H
#define PLIM_DEVICES_VIRTUAL_MEMORY_IPC_H

#include "devices/virtual/machine/self.h"

struct plim_ipc_handle {
    char bytes[64];
};

int plim_ipc_export(uintptr_t at, struct plim_ipc_handle *out);
/* GPU_INVALID_CONTEXT in the process that made the handle, as in CUDA. */
int plim_ipc_import(const struct plim_ipc_handle *handle, uintptr_t *at);
int plim_ipc_close(uintptr_t at);

/* Events shared between processes: all of them count as completed. */
int plim_ipc_event_export(const void *event, struct plim_ipc_handle *out);

#endif
