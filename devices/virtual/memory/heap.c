#define _DEFAULT_SOURCE /* MAP_ANONYMOUS, MAP_NORESERVE */
#include "heap.h"
#include "shadow.h"
#include "devices/address_space.h"
#include "devices/virtual/record/torch_stream.h"
#include "devices/virtual/steps/watch.h"
#include "autotune/base/array.h"
#include "autotune/base/round.h"
#include <string.h>
#include <sys/mman.h>

/* Preferred start of device addresses: between the usual places of the heap and of shared libraries. */
#define FIRST_ADDRESS ((uintptr_t)0x300000000000)
enum { SMALL_BYTES = 1 << 20, SMALL_ALIGNMENT = 512, PLACED_ALIGNMENT = 32 << 20 };

static struct {
    uintptr_t first, next, end; /* of the reserved addresses, without those of device memory */
    uintptr_t placed_end;       /* end of the addresses of device memory, which follow the others */
    struct plim_address_space spaces[PLIM_MACHINE_GPUS];
    PLIM_ARRAY(struct heap_block) blocks; /* sorted by address; a mapped range follows the reservation it lies in */
    int64_t small_bytes[PLIM_MACHINE_GPUS]; /* in shared pages */
} heap;

/* --- addresses -------------------------------------------------------------------------------- */

/* Divides the upper half of the addresses between the GPUs, for device memory. */
static void divide(void)
{
    uintptr_t begin = plim_round_up(heap.end, PLACED_ALIGNMENT);
    uintptr_t share =
        (heap.placed_end - begin) / PLIM_MACHINE_GPUS / PLACED_ALIGNMENT * PLACED_ALIGNMENT;
    for (int i = 0; i < PLIM_MACHINE_GPUS; i++, begin += share)
        if (plim_address_space_begin(&heap.spaces[i], begin, begin + share) != PLIM_OK)
            plim_self_note("few addresses for device memory (ulimit -v?)");
}

/* Reserves address space. That costs nothing, but may be limited (ulimit -v); then reserves less. */
static bool set_aside(void)
{
    if (heap.first) return true;
    for (size_t bytes = (size_t)1 << 45; bytes >= (size_t)1 << 36; bytes /= 2) {
        void *at = mmap((void *)FIRST_ADDRESS, bytes, PROT_NONE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (at == MAP_FAILED) continue;
        heap.first = heap.next = plim_round_up((uintptr_t)at, HEAP_PAGE_BYTES);
        heap.end = heap.first + bytes / 2 / PLACED_ALIGNMENT * PLACED_ALIGNMENT;
        heap.placed_end = (uintptr_t)at + bytes;
        divide();
        return true;
    }
    plim_self_note("no address space for device memory (ulimit -v?)");
    return false;
}

bool plim_heap_is_device(uintptr_t at)
{
    return at >= heap.first && at < heap.placed_end && heap.first;
}

/* --- the sorted list of ranges ---------------------------------------------------------------- */

/* Returns the index of the first range that starts after `at`. */
static size_t upper_bound(uintptr_t at)
{
    size_t low = 0, high = heap.blocks.count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (heap.blocks.items[middle].at <= at) low = middle + 1;
        else high = middle;
    }
    return low;
}

/* Returns the first gap of `span` bytes at or after `at`; 0 if there is none. */
static uintptr_t find_gap(uintptr_t at, size_t span)
{
    for (size_t i = upper_bound(at - 1); i < heap.blocks.count; i++) {
        const struct heap_block *block = &heap.blocks.items[i];
        if (block->at >= at + span) break;
        uintptr_t end = block->at + plim_round_up(block->bytes ? block->bytes : 1, HEAP_PAGE_BYTES);
        if (end > at) at = end;
    }
    return at <= heap.end && heap.end - at >= span ? at : 0;
}

/* Finds free addresses. None are reused before all have been used once. */
static uintptr_t find_addresses(size_t bytes)
{
    size_t span = plim_round_up(bytes ? bytes : 1, HEAP_PAGE_BYTES);
    if (!set_aside()) return 0;
    uintptr_t at = find_gap(heap.next, span);
    if (!at) at = find_gap(heap.first, span);
    if (at) heap.next = at + span;
    return at;
}

/* Finds addresses for device memory: where the driver would place it, or anywhere if few addresses are available. */
static uintptr_t find_place(int device, size_t bytes)
{
    uint64_t at;
    const struct plim_machine_gpu *gpu = plim_self_gpu(device);
    if (!set_aside()) return 0;
    if (!gpu || gpu->ascending ||
        plim_address_space_reserve(&heap.spaces[device], plim_round_up(bytes, HEAP_PAGE_BYTES), false,
                                   &at) != PLIM_OK)
        return find_addresses(bytes);
    return (uintptr_t)at;
}

static void release_address(const struct heap_block *block)
{
    if (block->at >= heap.end) plim_address_space_release(&heap.spaces[block->device], block->at);
}

static int insert(const struct heap_block *block)
{
    size_t i = upper_bound(block->at);
    if (PLIM_ARRAY_PUSH(&heap.blocks, *block) != PLIM_OK) return GPU_OUT_OF_MEMORY;
    struct heap_block *items = heap.blocks.items;
    memmove(&items[i + 1], &items[i], (heap.blocks.count - 1 - i) * sizeof(*items));
    items[i] = *block;
    items[i].id = plim_self_new_id();
    return GPU_OK;
}

static void erase(size_t i)
{
    struct heap_block *items = heap.blocks.items;
    memmove(&items[i], &items[i + 1], (heap.blocks.count - 1 - i) * sizeof(*items));
    heap.blocks.count--;
}

/* Returns the index of the range of this kind that starts at `at`, or -1. */
static ptrdiff_t index_of(uintptr_t at, enum heap_kind kind)
{
    for (size_t i = upper_bound(at); i > 0 && heap.blocks.items[i - 1].at == at; i--)
        if (heap.blocks.items[i - 1].kind == kind) return (ptrdiff_t)i - 1;
    return -1;
}

int plim_heap_add(const struct heap_block *block, uintptr_t *at)
{
    struct heap_block added = *block;
    plim_self_lock();
    if (!added.at) added.at = find_addresses(added.bytes);
    int failed = added.at ? insert(&added) : GPU_OUT_OF_MEMORY;
    plim_self_unlock();
    if (!failed && at) *at = added.at;
    return failed;
}

bool plim_heap_remove(uintptr_t at, enum heap_kind kind, struct heap_block *out)
{
    plim_self_lock();
    ptrdiff_t i = index_of(at, kind);
    if (i >= 0) {
        struct heap_block block = heap.blocks.items[i];
        if (out) *out = block;
        erase((size_t)i);
        plim_shadow_clear_locked(block.at, block.bytes);
    }
    plim_self_unlock();
    return i >= 0;
}

bool plim_heap_find(uintptr_t at, struct heap_block *out)
{
    bool found = false;
    plim_self_lock();
    for (size_t i = upper_bound(at); i-- > 0 && !found;) {
        const struct heap_block *block = &heap.blocks.items[i];
        found = at < block->at + block->bytes || (!block->bytes && at == block->at);
        if (found) *out = *block;
        else if (block->kind != HEAP_MAPPED) break; /* only reservations contain other ranges */
    }
    plim_self_unlock();
    return found;
}

/* --- device memory ---------------------------------------------------------------------------- */

/* Changes the total of small requests of a GPU; takes or gives back whole pages as it crosses their boundaries. */
static bool change_small(int device, int64_t bytes)
{
    int64_t *sum = &heap.small_bytes[device];
    int64_t before = plim_round_up(*sum, HEAP_PAGE_BYTES);
    int64_t after = plim_round_up(*sum + bytes, HEAP_PAGE_BYTES);
    if (after > before && !plim_self_allocate(device, after - before)) return false;
    if (after < before) plim_self_free(device, before - after);
    *sum += bytes;
    return true;
}

int plim_heap_allocate(int device, size_t bytes, uintptr_t *at)
{
    *at = 0;
    if (!bytes) return GPU_OK;
    if (bytes > HEAP_MOST_BYTES) return GPU_OUT_OF_MEMORY;
    struct heap_block block = {.bytes = bytes, .kind = HEAP_DEVICE, .device = device};
    int64_t small = plim_round_up((int64_t)bytes, SMALL_ALIGNMENT);
    bool shares = bytes <= SMALL_BYTES;
    if (!shares) block.cost_bytes = plim_round_up((int64_t)bytes, HEAP_PAGE_BYTES);
    int cuda_stream = plim_torch_stream(device);
    plim_self_lock();
    bool paid = shares ? change_small(device, small) : plim_self_allocate(device, block.cost_bytes);
    if (paid) block.at = find_place(device, bytes);
    int failed = block.at ? insert(&block) : GPU_OUT_OF_MEMORY;
    if (failed && block.at) release_address(&block);
    if (failed && paid && shares) change_small(device, -small);
    if (failed && paid && !shares) plim_self_free(device, block.cost_bytes);
    if (!failed) plim_watch_allocation(device, block.at, (int64_t)bytes, cuda_stream);
    plim_self_unlock();
    *at = failed ? 0 : block.at;
    return failed;
}

static void pay_back(const struct heap_block *block)
{
    if (block->cost_bytes) plim_self_free(block->device, block->cost_bytes);
    else change_small(block->device, -plim_round_up((int64_t)block->bytes, SMALL_ALIGNMENT));
}

int plim_heap_free(uintptr_t at)
{
    struct heap_block block;
    if (!at) return GPU_OK;
    if (!plim_heap_remove(at, HEAP_DEVICE, &block)) return GPU_INVALID_VALUE;
    plim_self_lock();
    release_address(&block);
    pay_back(&block);
    plim_watch_free(block.device, at, (int64_t)block.bytes);
    plim_self_unlock();
    return GPU_OK;
}

void plim_heap_drop(int device)
{
    plim_self_lock();
    for (size_t i = heap.blocks.count; i-- > 0;) {
        struct heap_block block = heap.blocks.items[i];
        if (block.device != device || block.kind != HEAP_DEVICE) continue;
        erase(i);
        plim_shadow_clear_locked(block.at, block.bytes);
        release_address(&block);
        pay_back(&block);
    }
    plim_self_unlock();
}
