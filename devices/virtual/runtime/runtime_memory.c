/* The CUDA runtime: memory. */
#include "runtime.h"
#include "devices/virtual/machine/version.h"
#include "devices/virtual/memory/heap.h"
#include "devices/virtual/memory/host_memory.h"
#include "devices/virtual/memory/ipc.h"
#include "devices/virtual/memory/pool.h"
#include "devices/virtual/memory/symbol.h"
#include "devices/virtual/work/stream.h"
#include <string.h>

/* --- device memory ---------------------------------------------------------------------------- */

ANSWER int cudaMalloc(void **out, size_t bytes)
{
    uintptr_t at = 0;
    int failed = out ? plim_self_use_current() : GPU_INVALID_VALUE;
    if (!failed) failed = plim_heap_allocate(plim_self_device(), bytes, &at);
    if (!failed) *out = (void *)at;
    return plim_self_error(failed);
}

ANSWER int cudaFree(void *at)
{
    int failed = plim_self_use_current();
    if (!failed && at && !plim_managed_free((uintptr_t)at)) failed = plim_pool_free((uintptr_t)at);
    return plim_self_error(failed);
}

ANSWER int cudaMallocPitch(void **out, size_t *pitch, size_t width, size_t height)
{
    *pitch = (width + 511) / 512 * 512;
    return cudaMalloc(out, *pitch * height);
}

ANSWER int cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes)
{
    int device = plim_self_device(), failed = plim_self_use(device);
    if (failed) return plim_self_error(failed);
    *free_bytes = (size_t)plim_machine_free_bytes(plim_self_machine(),
                                                  plim_self_machine_index(device));
    *total_bytes = (size_t)plim_self_gpu(device)->total_bytes;
    return GPU_OK;
}

ANSWER int cudaMallocManaged(void **out, size_t bytes, unsigned flags)
{
    uintptr_t at = 0;
    (void)flags;
    int failed = plim_managed_allocate(plim_self_device(), bytes, &at);
    if (!failed) *out = (void *)at;
    return plim_self_error(failed);
}

/* --- stream-ordered memory -------------------------------------------------------------------- */

ANSWER int cudaMallocAsync(void **out, size_t bytes, void *stream)
{
    uintptr_t at = 0;
    int device = plim_stream_of(stream)->device;
    int failed = plim_pool_allocate(plim_pool_current(device), bytes, &at);
    if (!failed) *out = (void *)at;
    return plim_self_error(failed);
}
PER_THREAD(cudaMallocAsync, _ptsz)

ANSWER int cudaMallocFromPoolAsync(void **out, size_t bytes, void *pool, void *stream)
{
    uintptr_t at = 0;
    (void)stream;
    int failed = plim_pool_allocate(pool, bytes, &at);
    if (!failed) *out = (void *)at;
    return plim_self_error(failed);
}
PER_THREAD(cudaMallocFromPoolAsync, _ptsz)

ANSWER int cudaFreeAsync(void *at, void *stream)
{
    (void)stream;
    return plim_self_error(plim_pool_free((uintptr_t)at));
}
PER_THREAD(cudaFreeAsync, _ptsz)

ANSWER int cudaDeviceGetDefaultMemPool(void **pool, int device)
{
    *pool = plim_pool_default(device);
    return plim_self_error(*pool ? GPU_OK : GPU_INVALID_DEVICE);
}

ANSWER int cudaDeviceGetMemPool(void **pool, int device)
{
    *pool = plim_pool_current(device);
    return plim_self_error(*pool ? GPU_OK : GPU_INVALID_DEVICE);
}

ANSWER int cudaDeviceSetMemPool(int device, void *pool)
{
    return plim_self_error(plim_pool_set_current(device, pool));
}

/* cudaMemPoolProps starts with allocType, handleTypes, location {type, id}. */
ANSWER int cudaMemPoolCreate(void **pool, const int *properties)
{
    if (!plim_self_gpu(properties[3])) return plim_self_error(GPU_INVALID_VALUE);
    *pool = plim_pool_create(properties[3]);
    return plim_self_error(*pool ? GPU_OK : GPU_OUT_OF_MEMORY);
}

ANSWER int cudaMemPoolDestroy(void *pool) { return plim_self_error(plim_pool_destroy(pool)); }

ANSWER int cudaMemPoolTrimTo(void *pool, size_t keep)
{
    return plim_self_error(plim_pool_trim(pool, keep));
}

ANSWER int cudaMemPoolGetAttribute(void *pool, int attribute, void *value)
{
    return plim_self_error(plim_pool_get(pool, (enum gpu_pool_attribute)attribute, value));
}

ANSWER int cudaMemPoolSetAttribute(void *pool, int attribute, void *value)
{
    return plim_self_error(plim_pool_set(pool, (enum gpu_pool_attribute)attribute, value));
}

ANSWER int cudaMemPoolSetAccess(void *pool, const void *access, size_t count)
{
    (void)access;
    (void)count;
    return plim_self_error(pool ? GPU_OK : GPU_INVALID_VALUE);
}

ANSWER int cudaMemPoolGetAccess(int *flags, void *pool, const void *location)
{
    (void)location;
    *flags = 3; /* read and write */
    return plim_self_error(pool ? GPU_OK : GPU_INVALID_VALUE);
}

/* --- host memory ------------------------------------------------------------------------------ */

ANSWER int cudaHostAlloc(void **out, size_t bytes, unsigned flags)
{
    return plim_self_error(plim_host_allocate(bytes, flags, out));
}

ANSWER int cudaMallocHost(void **out, size_t bytes)
{
    return plim_self_error(plim_host_allocate(bytes, 0, out));
}

ANSWER int cudaFreeHost(void *at) { return plim_self_error(plim_host_free(at)); }

ANSWER int cudaHostRegister(void *at, size_t bytes, unsigned flags)
{
    return plim_self_error(plim_host_register(at, bytes, flags));
}

ANSWER int cudaHostUnregister(void *at) { return plim_self_error(plim_host_unregister(at)); }

ANSWER int cudaHostGetDevicePointer(void **out, void *at, unsigned flags)
{
    struct heap_block block;
    (void)flags;
    if (!plim_heap_find((uintptr_t)at, &block)) return plim_self_error(GPU_INVALID_VALUE);
    *out = at;
    return GPU_OK;
}

ANSWER int cudaHostGetFlags(unsigned *flags, void *at)
{
    struct heap_block block;
    if (!plim_heap_find((uintptr_t)at, &block)) return plim_self_error(GPU_INVALID_VALUE);
    *flags = block.flags;
    return GPU_OK;
}

/* --- properties of addresses ------------------------------------------------------------------ */

static enum gpu_memory_type type_of(enum heap_kind kind)
{
    return kind == HEAP_HOST ? GPU_MEMORY_HOST
           : kind == HEAP_MANAGED ? GPU_MEMORY_MANAGED : GPU_MEMORY_DEVICE;
}

ANSWER int cudaPointerGetAttributes(void *out, const void *at)
{
    /* Equal in CUDA 11 and 12; 13 adds eight reserved words. */
    struct { int type, device; const void *on_device, *on_host; } result = {0};
    struct heap_block block;
    int failed = plim_self_use_current();
    if (failed) return plim_self_error(failed);
    if (plim_heap_find((uintptr_t)at, &block)) {
        result.type = type_of(block.kind);
        result.device = block.device;
        result.on_device = at;
        result.on_host = result.type == GPU_MEMORY_DEVICE ? NULL : at;
    } else {
        result.device = -2; /* cudaInvalidDeviceId */
        result.on_host = at;
    }
    if (plim_version_runtime() >= 13000) memset(out, 0, sizeof(result) + 8 * sizeof(long));
    memcpy(out, &result, sizeof(result));
    return GPU_OK;
}

ANSWER int cudaGetSymbolAddress(void **out, const void *symbol)
{
    uintptr_t at = 0;
    size_t bytes;
    int failed = plim_symbol_find(symbol, &at, &bytes);
    *out = (void *)at;
    return plim_self_error(failed);
}

ANSWER int cudaGetSymbolSize(size_t *bytes, const void *symbol)
{
    uintptr_t at;
    return plim_self_error(plim_symbol_find(symbol, &at, bytes));
}

/* Only a description; there are no arrays here. */
struct channel { int x, y, z, w, kind; };

ANSWER struct channel cudaCreateChannelDesc(int x, int y, int z, int w, int kind)
{
    return (struct channel){x, y, z, w, kind};
}

/* --- advice ----------------------------------------------------------------------------------- */

/* No effect, since nothing is paged. The arguments differ between versions and are not read. */
ANSWER int cudaMemAdvise(void) { return GPU_OK; }
ANSWER int cudaMemAdvise_v2(void) { return GPU_OK; }
ANSWER int cudaMemPrefetchAsync(void) { return GPU_OK; }
PER_THREAD(cudaMemPrefetchAsync, _ptsz)
ANSWER int cudaMemPrefetchAsync_v2(void) { return GPU_OK; }
PER_THREAD(cudaMemPrefetchAsync_v2, _ptsz)
ANSWER int cudaStreamAttachMemAsync(void) { return GPU_OK; }
PER_THREAD(cudaStreamAttachMemAsync, _ptsz)

/* --- sharing between processes ---------------------------------------------------------------- */

ANSWER int cudaIpcGetMemHandle(void *handle, void *at)
{
    return plim_self_error(plim_ipc_export((uintptr_t)at, handle));
}

/* A handle is a structure of 64 bytes that is passed by value, on the stack. */
ANSWER int cudaIpcOpenMemHandle(void **out, struct plim_ipc_handle handle, unsigned flags)
{
    uintptr_t at = 0;
    (void)flags;
    int failed = plim_ipc_import(&handle, &at);
    *out = (void *)at;
    return plim_self_error(failed);
}

ANSWER int cudaIpcCloseMemHandle(void *at)
{
    return plim_self_error(plim_ipc_close((uintptr_t)at));
}
