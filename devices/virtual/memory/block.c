#include "block.h"
#include "autotune/base/array.h"
#include "heap.h"
#include "shadow.h"
#include <string.h>

static PLIM_ARRAY(struct plim_block) blocks; /* sorted by address; they do not overlap */

/* Returns the index of the first block that starts after `at`. */
static size_t upper_bound(uintptr_t at)
{
    size_t low = 0, high = blocks.count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (blocks.items[middle].at <= at)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Removes the blocks that start in a range. */
static void erase(uintptr_t at, size_t bytes)
{
    size_t first = upper_bound(at - 1), end = first;
    while (end < blocks.count && blocks.items[end].at < at + bytes) end++;
    memmove(&blocks.items[first], &blocks.items[end], (blocks.count - end) * sizeof(*blocks.items));
    blocks.count -= end - first;
}

void plim_block_allocated(uintptr_t at, size_t bytes)
{
    if (!bytes || !plim_heap_is_device(at)) return;
    plim_self_lock();
    if (blocks.count) erase(at, bytes);
    size_t i = upper_bound(at);
    if (PLIM_ARRAY_PUSH(&blocks, ((struct plim_block){at, bytes})) == PLIM_OK) {
        memmove(&blocks.items[i + 1], &blocks.items[i],
                (blocks.count - 1 - i) * sizeof(*blocks.items));
        blocks.items[i] = (struct plim_block){at, bytes};
    }
    plim_shadow_clear_locked(at, bytes);
    plim_self_unlock();
}

void plim_block_freed(uintptr_t at)
{
    plim_self_lock();
    size_t i = upper_bound(at);
    if (i > 0 && blocks.items[i - 1].at == at) {
        plim_shadow_clear_locked(at, blocks.items[i - 1].bytes);
        erase(at, 1);
    }
    plim_self_unlock();
}

struct plim_block plim_block_find(uintptr_t at)
{
    struct heap_block heap;
    uintptr_t from = 0, to = UINTPTR_MAX;
    plim_self_lock();
    size_t i = upper_bound(at);
    struct plim_block before = i > 0 ? blocks.items[i - 1] : (struct plim_block){0};
    if (i < blocks.count) to = blocks.items[i].at;
    plim_self_unlock();
    if (before.bytes && at < before.at + before.bytes) return before;
    if (before.bytes) from = before.at + before.bytes;
    if (!plim_heap_find(at, &heap)) return (struct plim_block){at, 0};
    if (from < heap.at) from = heap.at;
    if (to > heap.at + heap.bytes) to = heap.at + heap.bytes;
    return (struct plim_block){from, to > from ? to - from : 0};
}
