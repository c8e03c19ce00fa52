#define _DEFAULT_SOURCE /* MAP_ANONYMOUS, MAP_NORESERVE */
#include "host_memory.h"
#include "heap.h"
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static size_t pages(size_t bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    return (bytes + page - 1) / page * page;
}

/* Maps zeroed memory; the machine provides pages only when they are touched. */
static void *map(size_t bytes)
{
    void *at = mmap(NULL, pages(bytes), PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return at == MAP_FAILED ? NULL : at;
}

static int add(void *at, size_t bytes, enum heap_kind kind, int device, unsigned flags)
{
    struct heap_block block = {
        .at = (uintptr_t)at, .bytes = bytes, .kind = kind, .device = device, .flags = flags};
    return plim_heap_add(&block, NULL);
}

int plim_host_allocate(size_t bytes, unsigned flags, void **out)
{
    int failed = plim_self_use_current();
    *out = NULL;
    if (failed || !bytes) return failed;
    void *at = map(bytes);
    if (!at) return GPU_OUT_OF_MEMORY;
    failed = add(at, bytes, HEAP_HOST, plim_self_device(), flags);
    if (failed) munmap(at, pages(bytes));
    else *out = at;
    return failed;
}

enum { REGISTERED = 1u << 31 }; /* the program owns the memory */

int plim_host_free(void *at)
{
    struct heap_block block;
    if (!at) return GPU_OK;
    if (!plim_heap_find((uintptr_t)at, &block) || block.kind != HEAP_HOST ||
        block.at != (uintptr_t)at || block.flags & REGISTERED)
        return GPU_INVALID_VALUE;
    plim_heap_remove(block.at, HEAP_HOST, NULL);
    munmap(at, pages(block.bytes));
    return GPU_OK;
}

int plim_host_register(void *at, size_t bytes, unsigned flags)
{
    struct heap_block block;
    int failed = plim_self_use_current();
    if (failed) return failed;
    if (!at || !bytes) return GPU_INVALID_VALUE;
    if (plim_heap_find((uintptr_t)at, &block)) return GPU_HOST_MEMORY_ALREADY_REGISTERED;
    return add(at, bytes, HEAP_HOST, plim_self_device(), flags | REGISTERED);
}

int plim_host_unregister(void *at)
{
    struct heap_block block;
    if (!plim_heap_find((uintptr_t)at, &block) || !(block.flags & REGISTERED) ||
        !plim_heap_remove((uintptr_t)at, HEAP_HOST, NULL))
        return GPU_HOST_MEMORY_NOT_REGISTERED;
    return GPU_OK;
}

int plim_managed_allocate(int device, size_t bytes, uintptr_t *out)
{
    int failed = plim_self_use(device);
    *out = 0;
    if (failed) return failed;
    if (!bytes) return GPU_INVALID_VALUE;
    plim_self_note("managed memory is in use; it is not counted against the GPU");
    void *at = map(bytes);
    if (!at) return GPU_OUT_OF_MEMORY;
    failed = add(at, bytes, HEAP_MANAGED, device, 0);
    if (failed) munmap(at, pages(bytes));
    else *out = (uintptr_t)at;
    return failed;
}

bool plim_managed_free(uintptr_t at)
{
    struct heap_block block;
    if (!plim_heap_remove(at, HEAP_MANAGED, &block)) return false;
    munmap((void *)block.at, pages(block.bytes));
    return true;
}
