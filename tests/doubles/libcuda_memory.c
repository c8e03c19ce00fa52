#define _DEFAULT_SOURCE /* MAP_ANONYMOUS, MAP_NORESERVE */
#include "libcuda.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define STEP_BYTES ((size_t)2 << 20)

enum kind { SEGMENT, RANGE, MAPPING, PHYSICAL };

/* Everything that was given out: segments, ranges of addresses, what is mapped into them, and
 * physical memory, which has a number instead of an address. */
struct extent {
    struct extent *next;
    enum kind kind;
    int gpu;
    uint64_t address;
    size_t bytes;
    uint64_t handle; /* MAPPING: what is mapped */
    bool accessible;
};

static struct extent *extents;

static struct extent *find(enum kind kind, uint64_t address)
{
    struct extent *e = extents;
    while (e && (e->kind != kind || e->address != address)) e = e->next;
    return e;
}

static struct extent *around(enum kind kind, uint64_t address, size_t bytes)
{
    struct extent *e = extents;
    while (e &&
           (e->kind != kind || address < e->address || address + bytes > e->address + e->bytes))
        e = e->next;
    return e;
}

static struct extent *any_within(enum kind kind, uint64_t address, size_t bytes)
{
    struct extent *e = extents;
    while (e &&
           (e->kind != kind || e->address >= address + bytes || e->address + e->bytes <= address))
        e = e->next;
    return e;
}

static struct extent *add(enum kind kind, uint64_t address, size_t bytes)
{
    struct extent *e = calloc(1, sizeof(*e));
    if (!e) abort();
    *e = (struct extent){
        .next = extents, .kind = kind, .gpu = double_current->gpu, .address = address};
    e->bytes = bytes;
    extents = e;
    return e;
}

static void drop(struct extent *e)
{
    struct extent **at = &extents;
    while (*at != e) at = &(*at)->next;
    *at = e->next;
    free(e);
}

static void *pages(void *at, size_t bytes, int protection)
{
    void *memory = mmap(at, bytes, protection,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | (at ? MAP_FIXED : 0), -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

static size_t whole(size_t bytes)
{
    return (bytes + STEP_BYTES - 1) / STEP_BYTES * STEP_BYTES;
}

/* --- segments --------------------------------------------------------------------------------- */

static CUresult take(size_t bytes)
{
    int gpu = double_current->gpu;
    if (gpu_fault(GPU_FAULT_OOM)) return CUDA_ERROR_OUT_OF_MEMORY;
    if (gpu_free_bytes(gpu) - (int64_t)bytes < INT64_C(1) << 30 &&
        gpu_fault(GPU_FAULT_DISGUISED))
        return CUDA_ERROR_SHARED_OBJECT_INIT_FAILED;
    if ((int64_t)bytes > double_free_bytes(gpu)) return CUDA_ERROR_OUT_OF_MEMORY;
    return gpu_take(gpu, (int64_t)bytes) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuMemAlloc(CUdeviceptr *address, size_t bytes)
{
    ENTER(NEEDS_CONTEXT);
    if (!bytes) return CUDA_ERROR_INVALID_VALUE;
    CUresult result = take(whole(bytes));
    if (result != CUDA_SUCCESS) return result;
    void *memory = pages(NULL, whole(bytes), PROT_READ | PROT_WRITE);
    if (!memory) {
        gpu_give_back(double_current->gpu, (int64_t)whole(bytes));
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *address = (CUdeviceptr)(uintptr_t)memory;
    add(SEGMENT, *address, whole(bytes));
    return CUDA_SUCCESS;
}

CUresult cuMemFree(CUdeviceptr address)
{
    ENTER(NEEDS_CONTEXT);
    CUresult result = double_wait();
    struct extent *e = find(SEGMENT, address);
    if (result != CUDA_SUCCESS) return result;
    if (!e) return CUDA_ERROR_INVALID_VALUE;
    munmap((void *)(uintptr_t)address, e->bytes);
    gpu_give_back(e->gpu, (int64_t)e->bytes);
    drop(e);
    return CUDA_SUCCESS;
}

CUresult cuMemGetInfo(size_t *free_bytes, size_t *total_bytes)
{
    ENTER(NEEDS_CONTEXT);
    *free_bytes = (size_t)double_free_bytes(double_current->gpu);
    *total_bytes = (size_t)gpu_total_bytes(double_current->gpu);
    return CUDA_SUCCESS;
}

/* --- ranges and physical memory --------------------------------------------------------------- */

CUresult cuMemGetAllocationGranularity(size_t *bytes, const CUmemAllocationProp *kind,
                                       CUmemAllocationGranularity_flags option)
{
    (void)kind, (void)option;
    ENTER(NEEDS_INIT);
    *bytes = STEP_BYTES;
    return CUDA_SUCCESS;
}

CUresult cuMemAddressReserve(CUdeviceptr *address, size_t bytes, size_t alignment, CUdeviceptr wish,
                             unsigned long long flags)
{
    (void)alignment, (void)wish, (void)flags;
    ENTER(NEEDS_CONTEXT);
    if (!bytes || bytes % STEP_BYTES) return CUDA_ERROR_INVALID_VALUE;
    char *memory = pages(NULL, bytes + STEP_BYTES, PROT_NONE);
    if (!memory) return CUDA_ERROR_OUT_OF_MEMORY;
    size_t skipped = (STEP_BYTES - (uintptr_t)memory % STEP_BYTES) % STEP_BYTES;
    if (skipped) munmap(memory, skipped);
    munmap(memory + skipped + bytes, STEP_BYTES - skipped);
    *address = (CUdeviceptr)(uintptr_t)(memory + skipped);
    add(RANGE, *address, bytes);
    return CUDA_SUCCESS;
}

CUresult cuMemAddressFree(CUdeviceptr address, size_t bytes)
{
    ENTER(NEEDS_CONTEXT);
    struct extent *range = find(RANGE, address);
    if (!range || range->bytes != bytes || any_within(MAPPING, address, bytes))
        return CUDA_ERROR_INVALID_VALUE;
    munmap((void *)(uintptr_t)address, bytes);
    drop(range);
    return CUDA_SUCCESS;
}

CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t bytes,
                     const CUmemAllocationProp *kind, unsigned long long flags)
{
    static uint64_t last;
    (void)flags;
    ENTER(NEEDS_CONTEXT);
    if (!bytes || bytes % STEP_BYTES || kind->type != CU_MEM_ALLOCATION_TYPE_PINNED ||
        kind->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = take(bytes);
    if (result != CUDA_SUCCESS) return result;
    *handle = ++last;
    add(PHYSICAL, *handle, bytes);
    return CUDA_SUCCESS;
}

/* What is still mapped stays until it is unmapped. */
CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
    ENTER(NEEDS_CONTEXT);
    struct extent *physical = find(PHYSICAL, handle);
    if (!physical) return CUDA_ERROR_INVALID_VALUE;
    for (struct extent *e = extents; e; e = e->next)
        if (e->kind == MAPPING && e->handle == handle) return CUDA_SUCCESS;
    gpu_give_back(physical->gpu, (int64_t)physical->bytes);
    drop(physical);
    return CUDA_SUCCESS;
}

CUresult cuMemMap(CUdeviceptr address, size_t bytes, size_t offset,
                  CUmemGenericAllocationHandle handle, unsigned long long flags)
{
    (void)flags;
    ENTER(NEEDS_CONTEXT);
    const struct extent *physical = find(PHYSICAL, handle);
    if (!physical || physical->bytes != bytes || offset || address % STEP_BYTES ||
        !around(RANGE, address, bytes))
        return CUDA_ERROR_INVALID_VALUE;
    if (any_within(MAPPING, address, bytes)) return CUDA_ERROR_ALREADY_MAPPED;
    add(MAPPING, address, bytes)->handle = handle;
    return CUDA_SUCCESS;
}

/* Whole mappings only; pages lose their contents. */
CUresult cuMemUnmap(CUdeviceptr address, size_t bytes)
{
    ENTER(NEEDS_CONTEXT);
    struct extent *e = find(MAPPING, address);
    if (!e || e->bytes != bytes) return CUDA_ERROR_INVALID_VALUE;
    pages((void *)(uintptr_t)address, bytes, PROT_NONE);
    drop(e);
    return CUDA_SUCCESS;
}

CUresult cuMemSetAccess(CUdeviceptr address, size_t bytes, const CUmemAccessDesc *access,
                        size_t count)
{
    ENTER(NEEDS_CONTEXT);
    size_t seen = 0;
    if (count != 1 || access->flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
        return CUDA_ERROR_INVALID_VALUE;
    for (struct extent *e = extents; e; e = e->next)
        if (e->kind == MAPPING && e->address >= address &&
            e->address + e->bytes <= address + bytes) {
            seen += e->bytes;
            e->accessible = true;
        }
    if (seen != bytes) return CUDA_ERROR_INVALID_VALUE;
    mprotect((void *)(uintptr_t)address, bytes, PROT_READ | PROT_WRITE);
    return CUDA_SUCCESS;
}

/* --- all of it -------------------------------------------------------------------------------- */

bool double_is_memory(CUdeviceptr address, size_t bytes)
{
    if (around(SEGMENT, address, bytes)) return true;
    while (bytes) {
        const struct extent *e = around(MAPPING, address, 1);
        if (!e || !e->accessible) return false;
        size_t here = e->address + e->bytes - address;
        if (here > bytes) here = bytes;
        address += here;
        bytes -= here;
    }
    return true;
}

void double_forget_memory(int gpu)
{
    struct extent *next;
    for (struct extent *e = extents; e; e = next) {
        next = e->next;
        if (e->gpu != gpu) continue;
        if (e->kind == SEGMENT || e->kind == RANGE) munmap((void *)(uintptr_t)e->address, e->bytes);
        if (e->kind == SEGMENT || e->kind == PHYSICAL) gpu_give_back(gpu, (int64_t)e->bytes);
        drop(e);
    }
}
