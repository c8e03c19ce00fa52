/* A range is a chain of blocks from end to end; blocks without memory are `unmapped` and kept in a separate list. */
#include "expandable.h"

#include <assert.h>
#include <stdlib.h>

static int64_t page_of(const struct plim_allocator *a, const struct plim_block_list *list)
{
    return list->pool == PLIM_POOL_SMALL ? PLIM_SMALL_SEGMENT : a->config.large_segment_size;
}

static void unmapped_insert(struct plim_block *block)
{
    struct plim_block *left = NULL, *right = block->list->unmapped;
    for (; right && right->address < block->address; right = right->free_next) left = right;
    block->free_prev = left;
    block->free_next = right;
    if (right) right->free_prev = block;
    if (left) left->free_next = block;
    else block->list->unmapped = block;
}

static void unmapped_remove(struct plim_block *block)
{
    struct plim_block *left = block->free_prev, *right = block->free_next;
    if (right) right->free_prev = left;
    if (left) left->free_next = right;
    else block->list->unmapped = right;
}

/* Merges with a neighbour in the same state; `block` itself is in no index. */
static void merge(struct plim_allocator *a, struct plim_block *block, struct plim_block *neighbour)
{
    if (!plim_block_available(neighbour) || neighbour->unmapped != block->unmapped) return;
    if (neighbour->unmapped) unmapped_remove(neighbour);
    else plim_allocator_list_remove(neighbour);
    plim_allocator_block_absorb(a, block, neighbour);
}

/* The size of a range on a GPU without a memory limit: each pool of each stream has a range, and addresses are
 * finite. */
#define MOST_ROOM_BYTES (INT64_C(1) << 57)

/* Creates a range as one unmapped block. It has room for 9/8 of the GPU, so that pages unmapped in its middle can be
 * mapped again at its end. */
static enum plim_status range_new(struct plim_allocator *a, struct plim_block_list *list,
                                  struct plim_block **block)
{
    int64_t page = page_of(a, list), total = a->device->info.total_bytes;
    if (total > MOST_ROOM_BYTES) total = MOST_ROOM_BYTES;
    int64_t bytes = (total + total / 8 + page - 1) / page * page;
    struct plim_range *range = malloc(sizeof(*range));
    struct plim_block *b = plim_allocator_block_new(a, list, 0, bytes);
    uint64_t address;
    enum plim_status st = PLIM_NOMEM;
    if (!range || !b) goto out;
    PLIM_TRY(plim_device_range_reserve(a->device, bytes, &address));
    *range = (struct plim_range){.address = address, .bytes = bytes, .next = a->ranges};
    a->ranges = range;
    b->address = address;
    b->range = range;
    b->unmapped = true;
    unmapped_insert(b);
    *block = b;
out:
    if (st != PLIM_OK) {
        free(range);
        if (b) plim_block_recycle(&a->store, b);
    }
    return st;
}

static void range_delete(struct plim_allocator *a, struct plim_range *range)
{
    plim_device_range_release(a->device, range->address, range->bytes);
    struct plim_range **link = &a->ranges;
    while (*link != range) link = &(*link)->next;
    *link = range->next;
    free(range);
}

/* True if at least `size` bytes from this block on are free, mapped or unmapped. */
static bool has_room(const struct plim_block *block, int64_t size)
{
    int64_t bytes = 0;
    for (; bytes < size && plim_block_available(block); block = block->next) bytes += block->size;
    return bytes >= size;
}

/* Finds the lowest place with room: an unmapped block, or the free block before it. */
static enum plim_status find_room(struct plim_allocator *a, struct plim_block_list *list,
                                  int64_t size, struct plim_block **block)
{
    for (struct plim_block *u = list->unmapped; u; u = u->free_next) {
        struct plim_block *b = plim_block_available(u->prev) ? u->prev : u;
        if (has_room(b, size)) {
            *block = b;
            return PLIM_OK;
        }
    }
    return range_new(a, list, block);
}

/* Maps the front of an unmapped block, `size` bytes rounded up to whole pages. It becomes a free block, merged with its
 * free neighbours. */
static enum plim_status map(struct plim_allocator *a, struct plim_block *block, int64_t size)
{
    struct plim_block_list *list = block->list;
    int64_t page = page_of(a, list), bytes = (size + page - 1) / page * page;
    struct plim_block *rest = NULL;
    assert(block->unmapped && bytes <= block->size);
    if (bytes < block->size) {
        rest = plim_allocator_block_new(a, list, block->address + (uint64_t)bytes,
                                        block->size - bytes);
        if (!rest) return PLIM_NOMEM;
    }
    enum plim_status st = plim_device_range_map(a->device, block->address, bytes, page);
    if (st != PLIM_OK) {
        if (rest) plim_block_recycle(&a->store, rest);
        return st;
    }
    unmapped_remove(block);
    block->unmapped = false;
    if (rest) {
        rest->unmapped = true;
        plim_block_link_behind(rest, block);
        unmapped_insert(rest);
        block->size = bytes;
    }
    merge(a, block, block->prev);
    merge(a, block, block->next);
    plim_allocator_list_insert(a, block);
    plim_allocator_count_reserved(a, 'M', bytes);
    return PLIM_OK;
}

enum plim_status plim_allocator_expand(struct plim_allocator *a, struct plim_block_list *list,
                                       int64_t size, struct plim_block **block)
{
    struct plim_block *b = NULL; /* gcc -O1 does not see that find_room sets it */
    enum plim_status st = find_room(a, list, size, &b);
    if (st != PLIM_OK) return st;
    if (b->unmapped) {
        st = map(a, b, b->size < size ? b->size : size);
        if (st != PLIM_OK) return st;
    }
    while (b->size < size) {
        struct plim_block *next = b->next;
        if (!next) return PLIM_OOM; /* more than the range has room for */
        int64_t missing = size - b->size;
        st = map(a, next, next->size < missing ? next->size : missing);
        if (st != PLIM_OK) return st;
        b = next; /* the previous block was merged into it */
    }
    *block = b;
    return PLIM_OK;
}

void plim_allocator_unmap(struct plim_allocator *a, struct plim_block *block)
{
    struct plim_block_list *list = block->list;
    struct plim_range *range = block->range;
    int64_t page = page_of(a, list), offset = (int64_t)(block->address - range->address);
    int64_t before = (page - offset % page) % page, after = (offset + block->size) % page;
    int64_t bytes = block->size - before - after;
    if (bytes <= 0) return;

    /* Without host memory for the blocks next to the pages, the pages stay mapped and malloc fails. */
    struct plim_block *left = NULL, *right = NULL;
    uint64_t end = block->address + (uint64_t)block->size;
    if (before > 0) left = plim_allocator_block_new(a, list, block->address, before);
    if (after > 0) right = plim_allocator_block_new(a, list, end - (uint64_t)after, after);
    if ((before > 0 && !left) || (after > 0 && !right)) {
        if (left) plim_block_recycle(&a->store, left);
        if (right) plim_block_recycle(&a->store, right);
        a->host_memory_ran_out = true;
        return;
    }
    plim_allocator_list_remove(block);
    if (left) {
        plim_block_link_before(left, block);
        plim_allocator_list_insert(a, left);
    }
    if (right) {
        plim_block_link_behind(right, block);
        plim_allocator_list_insert(a, right);
    }
    block->address += (uint64_t)before;
    block->size = bytes;
    block->unmapped = true;
    plim_device_range_unmap(a->device, block->address, bytes);
    merge(a, block, block->prev);
    merge(a, block, block->next);
    unmapped_insert(block);
    plim_allocator_count_reserved(a, 'm', bytes);

    if (!block->prev && !block->next) { /* the whole range is empty */
        unmapped_remove(block);
        plim_block_recycle(&a->store, block);
        range_delete(a, range);
    }
}

void plim_allocator_range_return(struct plim_allocator *a, struct plim_block *head)
{
    for (const struct plim_block *b = head; b;) {
        uint64_t start = b->address;
        bool unmapped = b->unmapped;
        int64_t bytes = 0;
        for (; b && b->unmapped == unmapped; b = b->next) bytes += b->size;
        if (!unmapped) plim_device_range_unmap(a->device, start, bytes);
    }
    range_delete(a, head->range);
}
