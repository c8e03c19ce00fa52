/* Device memory of one process in another: cudaIpcMemHandle_t and CUipcMemHandle.
 *
 * A handle tells the owner, the GPU and the size of the whole allocation; whoever opens it gets
 * addresses of its own for it and pays nothing. Shadows do not travel.
 */
#ifndef PLIM_DEVICES_VIRTUAL_MEMORY_IPC_H
#define PLIM_DEVICES_VIRTUAL_MEMORY_IPC_H

#include "devices/virtual/machine/self.h"

struct plim_ipc_handle {
    char bytes[64];
};

int plim_ipc_export(uintptr_t at, struct plim_ipc_handle *out);
/* GPU_INVALID_CONTEXT in the process that made it, as CUDA. */
int plim_ipc_import(const struct plim_ipc_handle *handle, uintptr_t *at);
int plim_ipc_close(uintptr_t at);

/* Events between processes: all of them have happened. */
int plim_ipc_event_export(const void *event, struct plim_ipc_handle *out);

#endif
