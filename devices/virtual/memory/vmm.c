#define _GNU_SOURCE /* memfd_create */
#include "vmm.h"
#include "autotune/base/array.h"
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static PLIM_ARRAY(struct heap_block) reservations; /* unsorted: PyTorch has only a few */
static PLIM_ARRAY(struct plim_vmm_handle *) exported;

static bool is_whole(uintptr_t value) { return value % VMM_PAGE_BYTES == 0; }

/* --- reservations ----------------------------------------------------------------------------- */

/* Finds aligned addresses. The heap hands out addresses in ascending order, so it takes a larger range, gives it back,
 * and uses its aligned part. */
static int find_aligned(size_t bytes, size_t alignment, uintptr_t *at)
{
    struct heap_block block = {.bytes = bytes + alignment, .kind = HEAP_RESERVED};
    int failed = plim_heap_add(&block, at);
    if (failed) return failed;
    plim_heap_remove(*at, HEAP_RESERVED, NULL);
    *at = (*at + alignment - 1) & ~(alignment - 1);
    return GPU_OK;
}

int plim_vmm_reserve(size_t bytes, size_t alignment, uintptr_t *at)
{
    struct heap_block block = {.bytes = bytes, .kind = HEAP_RESERVED};
    *at = 0;
    if (!bytes || !is_whole(bytes) || (alignment & (alignment - 1))) return GPU_INVALID_VALUE;
    int failed = GPU_OK;
    if (alignment > VMM_PAGE_BYTES) failed = find_aligned(bytes, alignment, &block.at);
    if (!failed) failed = plim_heap_add(&block, &block.at);
    if (failed) return failed;
    plim_self_lock();
    failed = PLIM_ARRAY_PUSH(&reservations, block) == PLIM_OK ? GPU_OK : GPU_OUT_OF_MEMORY;
    plim_self_unlock();
    if (failed) plim_heap_remove(block.at, HEAP_RESERVED, NULL);
    else *at = block.at;
    return failed;
}

bool plim_vmm_reservation(uintptr_t at, struct heap_block *out)
{
    bool found = false;
    plim_self_lock();
    for (size_t i = 0; i < reservations.count && !found; i++) {
        const struct heap_block *block = &reservations.items[i];
        found = at >= block->at && at - block->at < block->bytes;
        if (found) *out = *block;
    }
    plim_self_unlock();
    return found;
}

static void remove_reservation(uintptr_t at)
{
    plim_self_lock();
    size_t i = 0;
    while (i < reservations.count && reservations.items[i].at != at) i++;
    if (i < reservations.count) reservations.items[i] = reservations.items[--reservations.count];
    plim_self_unlock();
}

/* True if nothing is mapped in the range. */
static bool is_free(uintptr_t at, size_t bytes)
{
    struct heap_block block;
    for (uintptr_t page = at; page < at + bytes; page += VMM_PAGE_BYTES)
        if (plim_heap_find(page, &block) && block.kind == HEAP_MAPPED) return false;
    return true;
}

int plim_vmm_unreserve(uintptr_t at, size_t bytes)
{
    struct heap_block block;
    if (!plim_vmm_reservation(at, &block) || block.at != at || block.bytes != bytes)
        return GPU_INVALID_VALUE;
    if (!is_free(at, bytes)) return GPU_INVALID_VALUE;
    plim_heap_remove(at, HEAP_RESERVED, NULL);
    remove_reservation(at);
    return GPU_OK;
}

/* --- memory ----------------------------------------------------------------------------------- */

int plim_vmm_create(int device, size_t bytes, unsigned shareable, struct plim_vmm_handle **out)
{
    *out = NULL;
    int failed = plim_self_use(device);
    if (failed) return failed;
    if (shareable & ~(unsigned)VMM_SHARE_DESCRIPTOR) return GPU_NOT_SUPPORTED;
    if (!bytes || !is_whole(bytes)) return GPU_INVALID_VALUE;
    struct plim_vmm_handle *handle = calloc(1, sizeof(*handle));
    if (!handle) return GPU_OUT_OF_MEMORY;
    *handle = (struct plim_vmm_handle){
        .device = device, .bytes = bytes, .shareable = shareable, .references = 1};
    plim_self_lock();
    bool paid = bytes <= HEAP_MOST_BYTES && plim_self_allocate(device, (int64_t)bytes);
    if (paid) plim_self_process()->allocations++;
    plim_self_unlock();
    if (paid) *out = handle;
    else free(handle);
    return paid ? GPU_OK : GPU_OUT_OF_MEMORY;
}

static void refer_to(struct plim_vmm_handle *handle)
{
    plim_self_lock();
    handle->references++;
    plim_self_unlock();
}

/* The caller holds the lock. */
static void remove_exported(const struct plim_vmm_handle *handle)
{
    size_t i = 0;
    while (i < exported.count && exported.items[i] != handle) i++;
    if (i < exported.count) exported.items[i] = exported.items[--exported.count];
}

static void release_handle(struct plim_vmm_handle *handle)
{
    plim_self_lock();
    bool is_last = --handle->references == 0;
    if (is_last && handle->exported) remove_exported(handle);
    if (is_last && !handle->is_imported) {
        plim_self_free(handle->device, (int64_t)handle->bytes);
        plim_self_process()->frees++;
    }
    plim_self_unlock();
    if (is_last) free(handle);
}

int plim_vmm_release(struct plim_vmm_handle *handle)
{
    if (!handle) return GPU_INVALID_VALUE;
    release_handle(handle);
    return GPU_OK;
}

/* --- mapping ---------------------------------------------------------------------------------- */

int plim_vmm_map(uintptr_t at, size_t bytes, struct plim_vmm_handle *handle)
{
    struct heap_block range;
    if (!handle || !bytes || !is_whole(at) || !is_whole(bytes) || bytes > handle->bytes)
        return GPU_INVALID_VALUE;
    if (!plim_vmm_reservation(at, &range) || bytes > range.bytes - (at - range.at))
        return GPU_INVALID_VALUE;
    if (!is_free(at, bytes)) return GPU_INVALID_VALUE;
    struct heap_block block = {.at = at, .bytes = bytes, .kind = HEAP_MAPPED,
                               .device = handle->device, .owner = handle};
    refer_to(handle);
    int failed = plim_heap_add(&block, NULL);
    if (failed) release_handle(handle);
    return failed;
}

/* Calls `visit`, if not NULL, for each mapping of the range. Returns false if the range does not consist of whole
 * mappings. */
static bool each_mapping(uintptr_t at, size_t bytes, void (*visit)(const struct heap_block *))
{
    struct heap_block block;
    uintptr_t end = at + bytes;
    while (at < end) {
        if (!plim_heap_find(at, &block) || block.kind != HEAP_MAPPED || block.at != at ||
            block.bytes > end - at)
            return false;
        if (visit) visit(&block);
        at += block.bytes;
    }
    return bytes > 0;
}

static void unmap_one(const struct heap_block *block)
{
    if (plim_heap_remove(block->at, HEAP_MAPPED, NULL)) release_handle(block->owner);
}

int plim_vmm_unmap(uintptr_t at, size_t bytes)
{
    if (!each_mapping(at, bytes, NULL)) return GPU_INVALID_VALUE;
    each_mapping(at, bytes, unmap_one);
    return GPU_OK;
}

static struct plim_vmm_handle *mapped_at(uintptr_t at, struct heap_block *block)
{
    bool is_mapped = plim_heap_find(at, block) && block->kind == HEAP_MAPPED;
    return is_mapped ? block->owner : NULL;
}

int plim_vmm_set_access(uintptr_t at, size_t bytes, int device, uint8_t flags)
{
    struct heap_block block;
    if (!plim_self_gpu(device)) return GPU_INVALID_DEVICE;
    if (!bytes || !is_whole(at) || !is_whole(bytes)) return GPU_INVALID_VALUE;
    for (uintptr_t next = at; next < at + bytes; next = block.at + block.bytes)
        if (!mapped_at(next, &block)) return GPU_INVALID_VALUE;
    for (uintptr_t next = at; next < at + bytes; next = block.at + block.bytes)
        mapped_at(next, &block)->access[device] = flags;
    return GPU_OK;
}

int plim_vmm_get_access(uintptr_t at, int device, uint8_t *flags)
{
    struct heap_block block;
    const struct plim_vmm_handle *handle = mapped_at(at, &block);
    if (!plim_self_gpu(device)) return GPU_INVALID_DEVICE;
    if (!handle) return GPU_INVALID_VALUE;
    *flags = handle->access[device];
    return GPU_OK;
}

int plim_vmm_retain(uintptr_t at, struct plim_vmm_handle **out)
{
    struct heap_block block;
    *out = mapped_at(at, &block);
    if (!*out) return GPU_INVALID_VALUE;
    refer_to(*out);
    return GPU_OK;
}

/* --- between processes ------------------------------------------------------------------------ */

struct content {
    char magic[8];
    int32_t owner, gpu; /* process id; index of the GPU in the machine */
    uint64_t bytes, number;
};

static const char MAGIC[8] = "plimvmm";

static int number_of(struct plim_vmm_handle *handle, uint64_t *number)
{
    int failed = GPU_OK;
    plim_self_lock();
    if (!handle->exported) {
        if (PLIM_ARRAY_PUSH(&exported, handle) != PLIM_OK) failed = GPU_OUT_OF_MEMORY;
        else handle->exported = plim_self_new_id();
    }
    *number = handle->exported;
    plim_self_unlock();
    return failed;
}

int plim_vmm_export(struct plim_vmm_handle *handle, int *fd)
{
    *fd = -1;
    if (!handle || !(handle->shareable & VMM_SHARE_DESCRIPTOR)) return GPU_INVALID_VALUE;
    struct content content = {.owner = getpid(), .bytes = handle->bytes,
                              .gpu = plim_self_machine_index(handle->device)};
    memcpy(content.magic, MAGIC, sizeof(MAGIC));
    int failed = number_of(handle, &content.number);
    if (failed) return failed;
    int file = memfd_create("plimsoll-memory", MFD_CLOEXEC);
    if (file < 0) return GPU_OUT_OF_MEMORY;
    if (write(file, &content, sizeof(content)) != (ssize_t)sizeof(content)) {
        close(file);
        return GPU_OUT_OF_MEMORY;
    }
    *fd = file;
    return GPU_OK;
}

static struct plim_vmm_handle *find_exported(uint64_t number)
{
    struct plim_vmm_handle *found = NULL;
    plim_self_lock();
    for (size_t i = 0; i < exported.count && !found; i++)
        if (exported.items[i]->exported == number) found = exported.items[i];
    if (found) found->references++;
    plim_self_unlock();
    return found;
}

int plim_vmm_import(int fd, struct plim_vmm_handle **out)
{
    struct content content;
    int device = 0, failed = plim_self_use_current();
    *out = NULL;
    if (failed) return failed;
    if (pread(fd, &content, sizeof(content), 0) != (ssize_t)sizeof(content) ||
        memcmp(content.magic, MAGIC, sizeof(MAGIC)) != 0)
        return GPU_INVALID_VALUE;
    if (content.owner == getpid()) {
        *out = find_exported(content.number);
        return *out ? GPU_OK : GPU_INVALID_VALUE;
    }
    while (plim_self_gpu(device) && plim_self_machine_index(device) != content.gpu) device++;
    if (!plim_self_gpu(device)) return GPU_INVALID_DEVICE;
    struct plim_vmm_handle *handle = calloc(1, sizeof(*handle));
    if (!handle) return GPU_OUT_OF_MEMORY;
    *handle = (struct plim_vmm_handle){.device = device, .bytes = content.bytes, .references = 1,
                                       .shareable = VMM_SHARE_DESCRIPTOR, .is_imported = true};
    *out = handle;
    return GPU_OK;
}
