#include "memory.h"
#include "autotune/base/round.h"

#include <unistd.h>

#define WINDOWS_GPU "/dev/dxg" /* the GPU in WSL */

/* --- extents ---------------------------------------------------------------------------------- */

/* All arrays here are sorted by address, and their items start with it. */
static size_t place_of(const void *items, size_t count, size_t item_bytes, uint64_t address)
{
    size_t low = 0;
    while (low < count) {
        size_t middle = low + (count - low) / 2;
        uint64_t there;
        memcpy(&there, (const char *)items + middle * item_bytes, sizeof(there));
        if (there < address)
            low = middle + 1;
        else
            count = middle;
    }
    return low;
}

#define PLACE_OF(array, address)                                                                   \
    place_of((array)->items, (array)->count, sizeof(*(array)->items), (address))

/* Inserts `value`, for which there is room, at its position. */
#define INSERT(array, value)                                                                       \
    do {                                                                                           \
        size_t place_ = PLACE_OF((array), (value).address);                                        \
        memmove((array)->items + place_ + 1, (array)->items + place_,                              \
                ((array)->count - place_) * sizeof(*(array)->items));                              \
        (array)->items[place_] = (value);                                                          \
        (array)->count++;                                                                          \
    } while (0)

#define REMOVE(array, place, how_many)                                                             \
    do {                                                                                           \
        (array)->count -= (how_many);                                                              \
        memmove((array)->items + (place), (array)->items + (place) + (how_many),                   \
                ((array)->count - (place)) * sizeof(*(array)->items));                             \
    } while (0)

/* --- limits ----------------------------------------------------------------------------------- */

/* Checks whether `bytes` more may be requested from the driver. */
static enum plim_status admit(const struct plim_cuda_memory *m, int64_t bytes)
{
    int64_t limit = m->capacity_bytes - m->held_bytes;
    if (bytes > limit) return PLIM_OOM;
    if (!m->spills || bytes <= plim_cuda_context_free_bytes(m->context)) return PLIM_OK;
    m->context->refused = true;
    return PLIM_OOM;
}

/* Returns the status for the result of a call that requested memory from the driver. */
static enum plim_status check(const struct plim_cuda_memory *m, const char *call, CUresult result,
                              int64_t bytes)
{
    enum plim_status st = plim_cuda_check_allocation(m->context, call, result, bytes);
    if (st == PLIM_OOM) m->context->refused = true;
    return st;
}

/* --- segments --------------------------------------------------------------------------------- */

enum plim_status plim_cuda_segment_get(struct plim_cuda_memory *m, int64_t bytes, uint64_t *address)
{
    int64_t whole = plim_round_up(bytes, PLIM_PAGE_BYTES);
    CUdeviceptr pointer;
    enum plim_status st = admit(m, whole);
    if (st == PLIM_OK) st = PLIM_ARRAY_RESERVE(&m->segments, m->segments.count + 1);
    if (st != PLIM_OK) return st;
    CUresult result = m->context->driver->cuMemAlloc(&pointer, (size_t)bytes);
    st = check(m, "cuMemAlloc", result, bytes);
    if (st != PLIM_OK) return st;
    struct plim_cuda_extent segment = {pointer, whole};
    INSERT(&m->segments, segment);
    m->held_bytes += whole;
    *address = pointer;
    return PLIM_OK;
}

void plim_cuda_segment_return(struct plim_cuda_memory *m, uint64_t address)
{
    size_t place = PLACE_OF(&m->segments, address);
    if (place == m->segments.count || m->segments.items[place].address != address) return;
    m->held_bytes -= m->segments.items[place].bytes;
    REMOVE(&m->segments, place, 1);
    PLIM_CUDA_RELEASE(m->context, cuMemFree, address);
}

/* --- ranges ----------------------------------------------------------------------------------- */

enum plim_status plim_cuda_range_reserve(struct plim_cuda_memory *m, int64_t bytes,
                                         uint64_t *address)
{
    CUdeviceptr pointer;
    if (!m->granularity_bytes) return PLIM_UNSUPPORTED;
    enum plim_status st = PLIM_ARRAY_RESERVE(&m->ranges, m->ranges.count + 1);
    if (st != PLIM_OK) return st;
    bytes = plim_round_up(bytes, m->granularity_bytes);
    st = PLIM_CUDA_CALL(m->context, cuMemAddressReserve, &pointer, (size_t)bytes, 0, 0, 0);
    if (st != PLIM_OK) return st;
    struct plim_cuda_extent range = {pointer, bytes};
    INSERT(&m->ranges, range);
    *address = pointer;
    return PLIM_OK;
}

void plim_cuda_range_release(struct plim_cuda_memory *m, uint64_t address)
{
    size_t place = PLACE_OF(&m->ranges, address);
    if (place == m->ranges.count || m->ranges.items[place].address != address) return;
    int64_t bytes = m->ranges.items[place].bytes;
    REMOVE(&m->ranges, place, 1);
    PLIM_CUDA_RELEASE(m->context, cuMemAddressFree, address, (size_t)bytes);
}

static CUmemLocation gpu_of(const struct plim_cuda_memory *m)
{
    CUmemLocation location = {.type = CU_MEM_LOCATION_TYPE_DEVICE};
    location.id = m->context->gpu;
    return location;
}

static CUmemAllocationProp physical_memory(const struct plim_cuda_memory *m)
{
    return (CUmemAllocationProp){.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = gpu_of(m)};
}

static enum plim_status map_chunk(struct plim_cuda_memory *m, uint64_t address, int64_t bytes)
{
    CUmemAllocationProp kind = physical_memory(m);
    struct plim_cuda_chunk chunk = {.address = address, .bytes = bytes};
    enum plim_status st = PLIM_ARRAY_RESERVE(&m->chunks, m->chunks.count + 1);
    if (st != PLIM_OK) return st;
    CUresult result = m->context->driver->cuMemCreate(&chunk.handle, (size_t)bytes, &kind, 0);
    st = check(m, "cuMemCreate", result, bytes);
    if (st != PLIM_OK) return st;
    st = PLIM_CUDA_CALL(m->context, cuMemMap, address, (size_t)bytes, 0, chunk.handle, 0);
    if (st != PLIM_OK) {
        PLIM_CUDA_RELEASE(m->context, cuMemRelease, chunk.handle);
        return st;
    }
    INSERT(&m->chunks, chunk);
    m->held_bytes += bytes;
    return PLIM_OK;
}

/* Unmaps `count` chunks starting with `first`. */
static void unmap_chunks(struct plim_cuda_memory *m, size_t first, size_t count)
{
    for (size_t i = first; i < first + count; i++) {
        const struct plim_cuda_chunk *chunk = &m->chunks.items[i];
        PLIM_CUDA_RELEASE(m->context, cuMemUnmap, chunk->address, (size_t)chunk->bytes);
        PLIM_CUDA_RELEASE(m->context, cuMemRelease, chunk->handle);
        m->held_bytes -= chunk->bytes;
    }
    if (count) REMOVE(&m->chunks, first, count); /* an empty array has no address */
}

/* Unmaps all chunks inside the extent. */
static void unmap_extent(struct plim_cuda_memory *m, uint64_t address, int64_t bytes)
{
    size_t first = PLACE_OF(&m->chunks, address), end = first;
    while (end < m->chunks.count &&
           m->chunks.items[end].address + (uint64_t)m->chunks.items[end].bytes <=
               address + (uint64_t)bytes)
        end++;
    unmap_chunks(m, first, end - first);
}

/* What is mapped together can only be unmapped together: a page is a chunk of its own. */
enum plim_status plim_cuda_range_map(struct plim_cuda_memory *m, uint64_t address, int64_t bytes,
                                     int64_t page_bytes)
{
    CUmemAccessDesc access = {.location = gpu_of(m), .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    if (!m->granularity_bytes) return PLIM_UNSUPPORTED;
    if (page_bytes % m->granularity_bytes) return PLIM_INVALID;
    enum plim_status st = admit(m, bytes);
    for (int64_t done = 0; st == PLIM_OK && done < bytes; done += page_bytes)
        st = map_chunk(m, address + (uint64_t)done, page_bytes);
    if (st == PLIM_OK)
        st = PLIM_CUDA_CALL(m->context, cuMemSetAccess, address, (size_t)bytes, &access, 1);
    if (st != PLIM_OK) unmap_extent(m, address, bytes);
    return st;
}

void plim_cuda_range_unmap(struct plim_cuda_memory *m, uint64_t address, int64_t bytes)
{
    int64_t held = m->held_bytes;
    PLIM_CUDA_RELEASE(m->context, cuStreamSynchronize,
                      m->context->stream); /* unlike cuMemFree, no wait */
    unmap_extent(m, address, bytes);
    if (held - m->held_bytes != bytes) m->context->suspect = true;
}

/* --- clear and close -------------------------------------------------------------------------- */

enum plim_status plim_cuda_memory_open(struct plim_cuda_memory *m,
                                       struct plim_cuda_context *context, int64_t capacity_bytes)
{
    *m = (struct plim_cuda_memory){.context = context, .capacity_bytes = capacity_bytes};
    CUmemAllocationProp kind = physical_memory(m);
    int can_map;
    size_t granularity = 0;
    enum plim_status st =
        PLIM_CUDA_CALL(context, cuDeviceGetAttribute, &can_map,
                       CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, context->gpu);
    if (st == PLIM_OK && can_map)
        st = PLIM_CUDA_CALL(context, cuMemGetAllocationGranularity, &granularity, &kind,
                            CU_MEM_ALLOC_GRANULARITY_MINIMUM);
    m->granularity_bytes = (int64_t)granularity;
    m->free_bytes_at_open = plim_cuda_context_free_bytes(context);
    m->spills = access(WINDOWS_GPU, F_OK) == 0;
    return st;
}

void plim_cuda_memory_clear(struct plim_cuda_memory *m)
{
    unmap_chunks(m, 0, m->chunks.count);
    while (m->ranges.count)
        plim_cuda_range_release(m, m->ranges.items[m->ranges.count - 1].address);
    while (m->segments.count)
        plim_cuda_segment_return(m, m->segments.items[m->segments.count - 1].address);
}

void plim_cuda_memory_close(struct plim_cuda_memory *m)
{
    plim_cuda_memory_clear(m);
    PLIM_ARRAY_FINISH(&m->segments);
    PLIM_ARRAY_FINISH(&m->ranges);
    PLIM_ARRAY_FINISH(&m->chunks);
}
