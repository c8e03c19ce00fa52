#include "ipc.h"
#include "heap.h"
#include <string.h>
#include <unistd.h>

struct content {
    char magic[8];
    int32_t owner, gpu; /* process id; index of the GPU in the machine */
    uint64_t at, bytes;
};

static const char MAGIC[8] = "plimipc";
_Static_assert(sizeof(struct content) <= sizeof(struct plim_ipc_handle), "it has to fit");

int plim_ipc_export(uintptr_t at, struct plim_ipc_handle *out)
{
    struct heap_block block;
    if (!plim_heap_find(at, &block) || block.kind != HEAP_DEVICE) return GPU_INVALID_VALUE;
    struct content content = {.owner = getpid(), .gpu = plim_self_machine_index(block.device),
                              .at = block.at, .bytes = block.bytes};
    memcpy(content.magic, MAGIC, sizeof(MAGIC));
    memset(out, 0, sizeof(*out));
    memcpy(out, &content, sizeof(content));
    return GPU_OK;
}

int plim_ipc_import(const struct plim_ipc_handle *handle, uintptr_t *at)
{
    struct content content;
    int device = 0, failed = plim_self_use_current();
    memcpy(&content, handle, sizeof(content));
    if (failed) return failed;
    if (memcmp(content.magic, MAGIC, sizeof(MAGIC)) != 0) return GPU_INVALID_VALUE;
    if (content.owner == getpid()) return GPU_INVALID_CONTEXT;
    while (plim_self_gpu(device) && plim_self_machine_index(device) != content.gpu) device++;
    if (!plim_self_gpu(device)) return GPU_INVALID_DEVICE;
    struct heap_block block = {.bytes = content.bytes, .kind = HEAP_IMPORTED, .device = device};
    return plim_heap_add(&block, at);
}

int plim_ipc_close(uintptr_t at)
{
    return plim_heap_remove(at, HEAP_IMPORTED, NULL) ? GPU_OK : GPU_INVALID_VALUE;
}

int plim_ipc_event_export(const void *event, struct plim_ipc_handle *out)
{
    struct content content = {.owner = getpid()};
    if (!event) return GPU_INVALID_HANDLE;
    memcpy(content.magic, MAGIC, sizeof(MAGIC));
    memset(out, 0, sizeof(*out));
    memcpy(out, &content, sizeof(content));
    return GPU_OK;
}
