#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include "host.h"

#include "devices/uri.h"
#include "reference.h"
#include "autotune/base/round.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define DEFAULT_BYTES (INT64_C(4) << 30)

enum { UNWRITTEN = 0xff };

/* A segment, or a reserved range. */
struct region {
    uint64_t address;
    int64_t bytes;
};

struct host {
    struct plim_device device; /* must be first: the start of every device */
    int64_t held_bytes, limit_bytes;
    struct region *regions;
    size_t count, capacity;
    struct timespec opened;
};

static struct host *host_of(struct plim_device *device)
{
    return (struct host *)device;
}

static void *pointer(uint64_t address)
{
    return (void *)(uintptr_t)address;
}

/* --- address space ---------------------------------------------------------------------------- */

/* Reserves addresses without memory, starting at a multiple of PLIM_PAGE_BYTES: maps more, and unmaps both ends. */
static enum plim_status reserve(struct host *host, int64_t bytes, uint64_t *address)
{
    if (host->count == host->capacity) {
        size_t capacity = host->capacity ? 2 * host->capacity : 16;
        struct region *regions = realloc(host->regions, capacity * sizeof(*regions));
        if (!regions) return PLIM_NOMEM;
        host->regions = regions;
        host->capacity = capacity;
    }
    if (bytes > INT64_MAX - PLIM_PAGE_BYTES) return PLIM_OOM;
    size_t size = (size_t)bytes + PLIM_PAGE_BYTES;
    void *base = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED) return PLIM_OOM;
    uint64_t from = (uint64_t)(uintptr_t)base, mask = PLIM_PAGE_BYTES - 1;
    uint64_t start = (from + mask) & ~mask, end = start + (uint64_t)bytes;
    if (start > from) munmap(base, start - from);
    if (from + size > end) munmap(pointer(end), from + size - end);
    host->regions[host->count++] = (struct region){start, bytes};
    *address = start;
    return PLIM_OK;
}

static void release(struct host *host, uint64_t address)
{
    for (size_t i = 0; i < host->count; i++) {
        if (host->regions[i].address != address) continue;
        munmap(pointer(address), (size_t)host->regions[i].bytes);
        host->regions[i] = host->regions[--host->count];
        return;
    }
}

static bool lies_in_a_region(const struct host *host, uint64_t address, int64_t bytes)
{
    for (size_t i = 0; i < host->count; i++) {
        const struct region *r = &host->regions[i];
        if (address < r->address || address - r->address > (uint64_t)r->bytes) continue;
        if (bytes >= 0 && bytes <= r->bytes - (int64_t)(address - r->address)) return true;
    }
    return false;
}

/* Provides memory at addresses that have none. */
static enum plim_status back(struct host *host, uint64_t address, int64_t bytes)
{
    if (bytes > host->limit_bytes - host->held_bytes) return PLIM_OOM;
    if (mprotect(pointer(address), (size_t)bytes, PROT_READ | PROT_WRITE) != 0) return PLIM_OOM;
    memset(pointer(address), UNWRITTEN, (size_t)bytes);
    host->held_bytes += bytes;
    return PLIM_OK;
}

/* --- memory ----------------------------------------------------------------------------------- */

static int64_t whole_pages(int64_t bytes)
{
    return plim_round_up(bytes, PLIM_PAGE_BYTES);
}

static enum plim_status segment_get(struct plim_device *device, int64_t bytes, uint64_t *address)
{
    struct host *host = host_of(device);
    uint64_t start;
    if (whole_pages(bytes) > host->limit_bytes - host->held_bytes) return PLIM_OOM;
    enum plim_status st = reserve(host, whole_pages(bytes), &start);
    if (st != PLIM_OK) return st;
    st = back(host, start, whole_pages(bytes));
    if (st == PLIM_OK)
        *address = start;
    else
        release(host, start);
    return st;
}

static void segment_return(struct plim_device *device, uint64_t address, int64_t bytes)
{
    release(host_of(device), address);
    host_of(device)->held_bytes -= whole_pages(bytes);
}

static enum plim_status range_reserve(struct plim_device *device, int64_t bytes, uint64_t *address)
{
    return reserve(host_of(device), whole_pages(bytes), address);
}

static void range_release(struct plim_device *device, uint64_t address, int64_t bytes)
{
    (void)bytes;
    release(host_of(device), address);
}

static enum plim_status range_map(struct plim_device *device, uint64_t address, int64_t bytes,
                                  int64_t page_bytes)
{
    (void)page_bytes; /* any part can be unmapped */
    struct host *host = host_of(device);
    if (!lies_in_a_region(host, address, bytes)) return PLIM_INVALID;
    return back(host, address, bytes);
}

/* Replaces the mapping by a new one: protecting the pages would keep them. */
static void range_unmap(struct plim_device *device, uint64_t address, int64_t bytes)
{
    struct host *host = host_of(device);
    if (!lies_in_a_region(host, address, bytes)) return;
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
    (void)!mmap(pointer(address), (size_t)bytes, PROT_NONE, flags, -1, 0);
    host->held_bytes -= bytes;
}

static void limit(struct plim_device *device, int64_t bytes)
{
    host_of(device)->limit_bytes =
        bytes < device->info.total_bytes ? bytes : device->info.total_bytes;
}

static int64_t free_bytes(struct plim_device *device)
{
    return device->info.total_bytes - host_of(device)->held_bytes;
}

static enum plim_status read_memory(struct plim_device *device, uint64_t address, void *to,
                                    size_t bytes)
{
    if (!lies_in_a_region(host_of(device), address, (int64_t)bytes)) return PLIM_INVALID;
    memcpy(to, pointer(address), bytes);
    return PLIM_OK;
}

static enum plim_status write_memory(struct plim_device *device, uint64_t address, const void *from,
                                     size_t bytes)
{
    if (!lies_in_a_region(host_of(device), address, (int64_t)bytes)) return PLIM_INVALID;
    memcpy(pointer(address), from, bytes);
    return PLIM_OK;
}

/* --- work and time ---------------------------------------------------------------------------- */

static enum plim_status launch(struct plim_device *device, const struct plim_op *op)
{
    (void)device;
    return plim_reference_run(op);
}

static enum plim_status now(struct plim_device *device, double *seconds)
{
    const struct timespec *start = &host_of(device)->opened;
    struct timespec t;
    if (clock_gettime(CLOCK_MONOTONIC, &t) != 0) return PLIM_INTERNAL;
    *seconds = (double)(t.tv_sec - start->tv_sec) + 1e-9 * (double)(t.tv_nsec - start->tv_nsec);
    return PLIM_OK;
}

static enum plim_status reset(struct plim_device *device)
{
    struct host *host = host_of(device);
    while (host->count > 0) release(host, host->regions[0].address);
    host->held_bytes = 0;
    return clock_gettime(CLOCK_MONOTONIC, &host->opened) == 0 ? PLIM_OK : PLIM_INTERNAL;
}

static void close_host(struct plim_device *device)
{
    struct host *host = host_of(device);
    (void)reset(device);
    free(host->regions);
    free(host);
}

static const struct plim_device_ops host_ops = {
    .close = close_host,
    .segment_get = segment_get,
    .segment_return = segment_return,
    .range_reserve = range_reserve,
    .range_release = range_release,
    .range_map = range_map,
    .range_unmap = range_unmap,
    .limit = limit,
    .free_bytes = free_bytes,
    .launch = launch,
    .now = now,
    .read = read_memory,
    .write = write_memory,
    .reset = reset,
};

static void describe(struct plim_device_info *info, int64_t memory_bytes)
{
    char memory[32];
    snprintf(info->name, sizeof(info->name), "host");
    info->compute_capability = 80;
    info->multiprocessors = 108;
    info->threads_per_multiprocessor = 2048;
    info->total_bytes = memory_bytes > 0 ? memory_bytes : DEFAULT_BYTES;
    plim_uri_format_bytes(info->total_bytes, memory, sizeof(memory));
    if (info->total_bytes == DEFAULT_BYTES)
        snprintf(info->uri, sizeof(info->uri), "host");
    else
        snprintf(info->uri, sizeof(info->uri), "host,memory=%s", memory);
}

enum plim_status plim_host_open(const char *uri_tail, struct plim_device **out,
                                struct plim_error *err)
{
    int64_t memory_bytes;
    *out = NULL;
    enum plim_status st = plim_uri_read_memory(uri_tail, &memory_bytes, err);
    if (st != PLIM_OK) return st;
    struct host *host = calloc(1, sizeof(*host));
    if (!host) return plim_fail(err, PLIM_NOMEM, "no memory for a host device");
    host->device.ops = &host_ops;
    describe(&host->device.info, memory_bytes);
    host->limit_bytes = host->device.info.total_bytes;
    st = reset(&host->device);
    if (st != PLIM_OK) {
        free(host);
        return plim_fail(err, st, "this machine has no monotonic clock");
    }
    *out = &host->device;
    return PLIM_OK;
}
