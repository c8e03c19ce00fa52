/* The CUDA driver: device memory, host memory, pools, sharing between processes; properties of addresses. */
#include "driver_context.h"
#include "devices/virtual/memory/heap.h"
#include "devices/virtual/memory/host_memory.h"
#include "devices/virtual/memory/ipc.h"
#include "devices/virtual/memory/pool.h"
#include "devices/virtual/memory/vmm.h"
#include <string.h>

/* --- device memory ---------------------------------------------------------------------------- */

LIKE_RUNTIME(cuMemGetInfo_v2, cudaMemGetInfo, (size_t *free_bytes, size_t *total_bytes),
             (free_bytes, total_bytes))

ANSWER int cuMemAlloc_v2(uintptr_t *out, size_t bytes)
{
    int failed = plim_driver_enter();
    if (failed) return failed;
    return bytes ? plim_heap_allocate(plim_self_device(), bytes, out) : GPU_INVALID_VALUE;
}

ANSWER int cuMemAllocPitch_v2(uintptr_t *out, size_t *pitch, size_t width, size_t height,
                              unsigned element_bytes)
{
    (void)element_bytes;
    *pitch = (width + 511) / 512 * 512;
    return cuMemAlloc_v2(out, *pitch * height);
}

LIKE_RUNTIME(cuMemFree_v2, cudaFree, (void *at), (at))

ANSWER int cuMemAllocManaged(uintptr_t *out, size_t bytes, unsigned flags)
{
    int failed = plim_driver_enter();
    (void)flags;
    return failed ? failed : plim_managed_allocate(plim_self_device(), bytes, out);
}

ANSWER int cuMemGetAddressRange_v2(uintptr_t *base, size_t *bytes, uintptr_t at)
{
    struct heap_block block;
    int failed = plim_driver_enter();
    if (failed) return failed;
    if (!plim_heap_find(at, &block)) return GPU_NOT_FOUND;
    if (base) *base = block.at;
    if (bytes) *bytes = block.bytes;
    return GPU_OK;
}

/* Advice has no effect, since nothing is paged. */
ANSWER int cuMemAdvise(void) { return plim_driver_enter(); }
ALSO(cuMemAdvise, cuMemAdvise_v2)
ANSWER int cuMemPrefetchAsync(void) { return plim_driver_enter(); }
PER_THREAD(cuMemPrefetchAsync, _ptsz)
ALSO(cuMemPrefetchAsync, cuMemPrefetchAsync_v2)
ALSO(cuMemPrefetchAsync, cuMemPrefetchAsync_v2_ptsz)

/* --- pools ------------------------------------------------------------------------------------ */

LIKE_RUNTIME(cuMemAllocAsync, cudaMallocAsync, (void **out, size_t bytes, void *stream),
             (out, bytes, stream))
PER_THREAD(cuMemAllocAsync, _ptsz)
LIKE_RUNTIME(cuMemAllocFromPoolAsync, cudaMallocFromPoolAsync,
             (void **out, size_t bytes, void *pool, void *stream), (out, bytes, pool, stream))
PER_THREAD(cuMemAllocFromPoolAsync, _ptsz)
LIKE_RUNTIME(cuMemFreeAsync, cudaFreeAsync, (void *at, void *stream), (at, stream))
PER_THREAD(cuMemFreeAsync, _ptsz)

LIKE_RUNTIME_ANYWHERE(cuDeviceGetDefaultMemPool, cudaDeviceGetDefaultMemPool,
                      (void **pool, int device), (pool, device))
LIKE_RUNTIME_ANYWHERE(cuDeviceGetMemPool, cudaDeviceGetMemPool, (void **pool, int device),
                      (pool, device))
LIKE_RUNTIME_ANYWHERE(cuDeviceSetMemPool, cudaDeviceSetMemPool, (int device, void *pool),
                      (device, pool))
LIKE_RUNTIME_ANYWHERE(cuMemPoolCreate, cudaMemPoolCreate, (void **pool, const int *properties),
                      (pool, properties))
LIKE_RUNTIME_ANYWHERE(cuMemPoolDestroy, cudaMemPoolDestroy, (void *pool), (pool))
LIKE_RUNTIME_ANYWHERE(cuMemPoolTrimTo, cudaMemPoolTrimTo, (void *pool, size_t keep), (pool, keep))
LIKE_RUNTIME_ANYWHERE(cuMemPoolGetAttribute, cudaMemPoolGetAttribute,
                      (void *pool, int attribute, void *value), (pool, attribute, value))
LIKE_RUNTIME_ANYWHERE(cuMemPoolSetAttribute, cudaMemPoolSetAttribute,
                      (void *pool, int attribute, void *value), (pool, attribute, value))
LIKE_RUNTIME_ANYWHERE(cuMemPoolSetAccess, cudaMemPoolSetAccess,
                      (void *pool, const void *access, size_t count), (pool, access, count))
LIKE_RUNTIME_ANYWHERE(cuMemPoolGetAccess, cudaMemPoolGetAccess,
                      (int *flags, void *pool, const void *location), (flags, pool, location))

/* --- host memory ------------------------------------------------------------------------------ */

ANSWER int cuMemHostAlloc(void **out, size_t bytes, unsigned flags)
{
    int failed = plim_driver_enter();
    return failed ? failed : plim_host_allocate(bytes, flags, out);
}

ANSWER int cuMemAllocHost_v2(void **out, size_t bytes) { return cuMemHostAlloc(out, bytes, 0); }
ALSO(cuMemAllocHost_v2, cuMemAllocHost)

LIKE_RUNTIME(cuMemFreeHost, cudaFreeHost, (void *at), (at))
LIKE_RUNTIME(cuMemHostRegister_v2, cudaHostRegister, (void *at, size_t bytes, unsigned flags),
             (at, bytes, flags))
ALSO(cuMemHostRegister_v2, cuMemHostRegister)
LIKE_RUNTIME(cuMemHostUnregister, cudaHostUnregister, (void *at), (at))
LIKE_RUNTIME(cuMemHostGetDevicePointer_v2, cudaHostGetDevicePointer,
             (void **out, void *at, unsigned flags), (out, at, flags))
LIKE_RUNTIME(cuMemHostGetFlags, cudaHostGetFlags, (unsigned *flags, void *at), (flags, at))

/* --- properties of addresses ------------------------------------------------------------------ */

enum pointer_attribute { /* CUpointer_attribute */
    CONTEXT = 1, MEMORY_TYPE = 2, DEVICE_POINTER = 3, HOST_POINTER = 4, SYNC_MEMOPS = 6,
    BUFFER_ID = 7, IS_MANAGED = 8, ORDINAL = 9, IS_IPC_CAPABLE = 10, RANGE_START = 11,
    RANGE_BYTES = 12, IS_MAPPED = 13, HANDLE_TYPES = 14, IS_RDMA_CAPABLE = 15, ACCESS_FLAGS = 16,
    POOL = 17, MAPPING_BYTES = 18, MAPPING_START = 19, BLOCK_ID = 20,
};
enum { TYPE_HOST = 1, TYPE_DEVICE = 2, READ_WRITE = 3 }; /* CUmemorytype, CUmemAccess_flags */

static void put32(void *out, uint32_t value) { memcpy(out, &value, sizeof(value)); }
static void put64(void *out, uint64_t value) { memcpy(out, &value, sizeof(value)); }

static uint64_t handle_types(const struct heap_block *block)
{
    const struct plim_vmm_handle *handle = block->kind == HEAP_MAPPED ? block->owner : NULL;
    return handle ? handle->shareable : 0;
}

/* The range of a mapping is the reservation around it. */
static struct heap_block range_of(const struct heap_block *block)
{
    struct heap_block range = *block;
    if (block->kind == HEAP_MAPPED) plim_vmm_reservation(block->at, &range);
    return range;
}

static int store_attribute(void *out, enum pointer_attribute attribute, uintptr_t at,
                           const struct heap_block *block)
{
    bool is_managed = block->kind == HEAP_MANAGED, is_host = block->kind == HEAP_HOST;
    switch (attribute) {
    case CONTEXT: put64(out, (uintptr_t)plim_driver_context(block->device)); break;
    case MEMORY_TYPE: put32(out, is_host ? TYPE_HOST : TYPE_DEVICE); break;
    case DEVICE_POINTER: put64(out, at); break;
    case HOST_POINTER:
        if (!is_host && !is_managed) return GPU_INVALID_VALUE;
        put64(out, at);
        break;
    case SYNC_MEMOPS: put32(out, 0); break;
    case IS_MANAGED: put32(out, is_managed); break;
    case ORDINAL: put32(out, (uint32_t)block->device); break;
    case IS_IPC_CAPABLE: put32(out, block->kind == HEAP_DEVICE); break;
    case RANGE_START: put64(out, range_of(block).at); break;
    case RANGE_BYTES: put64(out, range_of(block).bytes); break;
    case IS_MAPPED: put32(out, block->kind != HEAP_RESERVED); break;
    case HANDLE_TYPES: put64(out, handle_types(block)); break;
    case IS_RDMA_CAPABLE: put32(out, 0); break;
    case ACCESS_FLAGS: put64(out, READ_WRITE); break;
    case POOL: put64(out, block->kind == HEAP_POOL ? (uintptr_t)block->owner : 0); break;
    case MAPPING_BYTES: put64(out, block->bytes); break;
    case MAPPING_START: put64(out, block->at); break;
    case BUFFER_ID:
    case BLOCK_ID: put64(out, block->id); break;
    default: return GPU_INVALID_VALUE;
    }
    return GPU_OK;
}

ANSWER int cuPointerGetAttribute(void *out, int attribute, uintptr_t at)
{
    struct heap_block block;
    int failed = plim_driver_ready();
    if (failed) return failed;
    if (!out || !plim_heap_find(at, &block)) return GPU_INVALID_VALUE;
    return store_attribute(out, (enum pointer_attribute)attribute, at, &block);
}

static size_t bytes_of(int attribute)
{
    static const unsigned words =
        1u << MEMORY_TYPE | 1u << SYNC_MEMOPS | 1u << IS_MANAGED | 1u << ORDINAL |
        1u << IS_IPC_CAPABLE | 1u << IS_MAPPED | 1u << IS_RDMA_CAPABLE;
    return words >> attribute & 1 ? sizeof(uint32_t) : sizeof(uint64_t);
}

/* Unlike cuPointerGetAttribute(), does not fail for an address outside all allocations: all attributes are zero then,
 * and the GPU is CU_DEVICE_INVALID. */
ANSWER int cuPointerGetAttributes(unsigned count, const int *attributes, void **out, uintptr_t at)
{
    struct heap_block block;
    int failed = plim_driver_ready();
    if (failed) return failed;
    bool is_known = plim_heap_find(at, &block);
    for (unsigned i = 0; i < count; i++) {
        if (attributes[i] <= 0 || attributes[i] > BLOCK_ID) return GPU_INVALID_VALUE;
        memset(out[i], 0, bytes_of(attributes[i]));
        if (is_known) store_attribute(out[i], (enum pointer_attribute)attributes[i], at, &block);
        else if (attributes[i] == ORDINAL) put32(out[i], (uint32_t)-2);
    }
    return GPU_OK;
}

/* Only CU_POINTER_ATTRIBUTE_SYNC_MEMOPS can be set; it always holds. */
ANSWER int cuPointerSetAttribute(const void *value, int attribute, uintptr_t at)
{
    struct heap_block block;
    int failed = plim_driver_enter();
    (void)value;
    if (failed) return failed;
    return attribute == SYNC_MEMOPS && plim_heap_find(at, &block) ? GPU_OK : GPU_INVALID_VALUE;
}

/* --- sharing between processes ---------------------------------------------------------------- */

LIKE_RUNTIME(cuIpcGetMemHandle, cudaIpcGetMemHandle, (void *handle, void *at), (handle, at))
LIKE_RUNTIME(cuIpcOpenMemHandle_v2, cudaIpcOpenMemHandle,
             (void **out, struct plim_ipc_handle handle, unsigned flags), (out, handle, flags))
ALSO(cuIpcOpenMemHandle_v2, cuIpcOpenMemHandle)
LIKE_RUNTIME(cuIpcCloseMemHandle, cudaIpcCloseMemHandle, (void *at), (at))
LIKE_RUNTIME(cuIpcGetEventHandle, cudaIpcGetEventHandle, (void *handle, void *event),
             (handle, event))
LIKE_RUNTIME(cuIpcOpenEventHandle, cudaIpcOpenEventHandle,
             (void **event, struct plim_ipc_handle handle), (event, handle))
