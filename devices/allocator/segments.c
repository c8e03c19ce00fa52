/* A segment can be returned only if it is one free block, unless everything is released. */
#include "segments.h"

#include "expandable.h"
#include <assert.h>

/* --- requesting memory from the device -------------------------------------------------------- */

static enum plim_status segment_get(struct plim_allocator *a, struct plim_block_list *list,
                                    int64_t bytes, struct plim_block **block)
{
    uint64_t address;
    struct plim_block *b = plim_allocator_block_new(a, list, 0, bytes);
    if (!b) return PLIM_NOMEM;
    enum plim_status st = plim_device_segment_get(a->device, bytes, &address);
    if (st != PLIM_OK) {
        plim_block_recycle(&a->store, b);
        return st;
    }
    b->address = address;
    plim_allocator_list_insert(a, b);
    plim_allocator_count_reserved(a, 'S', bytes);
    *block = b;
    return PLIM_OK;
}

int64_t plim_allocator_segment_bytes(const struct plim_allocator_config *config, int64_t size)
{
    if (size <= PLIM_SMALL_SIZE) return PLIM_SMALL_SEGMENT;
    if (size < PLIM_MIN_LARGE_ALLOC) return config->large_segment_size;
    return (size + PLIM_ROUND_LARGE - 1) & ~(PLIM_ROUND_LARGE - 1);
}

enum plim_status plim_allocator_grow(struct plim_allocator *a, struct plim_block_list *list,
                                     int64_t size, struct plim_block **block)
{
    int64_t bytes = plim_allocator_segment_bytes(&a->config, size);
    if (bytes > a->limit_bytes - a->stats.reserved) return PLIM_OOM;
    if (a->config.expandable_segments) return plim_allocator_expand(a, list, size, block);
    return segment_get(a, list, bytes, block);
}

/* --- returning memory to the device ----------------------------------------------------------- */

static bool is_whole(const struct plim_block *block)
{
    return !block->prev && !block->next;
}

static void release_segment(struct plim_allocator *a, struct plim_block *block)
{
    assert(is_whole(block) && !block->range);
    plim_allocator_list_remove(block);
    plim_device_segment_return(a->device, block->address, block->size);
    plim_allocator_count_reserved(a, 's', block->size);
    plim_block_recycle(&a->store, block);
}

static struct plim_block *first_free(struct plim_allocator *a, size_t stream, enum plim_pool pool)
{
    struct plim_stream_pools *pools = a->streams.items[stream];
    return pools ? plim_block_index_find(&pools->pools[pool].free, 0) : NULL;
}

/* Returns the age of a block: the number of searches in its pool since it became free. */
static uint32_t age_of(const struct plim_allocator *a, const struct plim_block *block)
{
    return a->searches[block->list->pool] - block->free_since;
}

struct candidates {
    uint64_t count, age; /* number of candidates, and the sum of their ages */
};

static struct candidates count_candidates(struct plim_allocator *a)
{
    struct candidates sum = {0};
    for (size_t s = 0; s < a->streams.count; s++) {
        const struct plim_block *block = first_free(a, s, PLIM_POOL_LARGE);
        for (; block; block = plim_block_index_next(&block->list->free, block)) {
            if (!is_whole(block)) continue;
            sum.count++;
            sum.age += age_of(a, block);
        }
    }
    return sum;
}

/* One pass over the large pool: frees blocks that are at least as old as the average at its start. */
static int64_t collect_round(struct plim_allocator *a, struct candidates *left)
{
    double threshold = (double)left->age / (double)left->count;
    int64_t reclaimed = 0;
    for (size_t s = 0; s < a->streams.count; s++) {
        struct plim_block *block = first_free(a, s, PLIM_POOL_LARGE), *next;
        for (; block; block = next) {
            next = plim_block_index_next(&block->list->free, block);
            if (!is_whole(block) || block->range || (double)age_of(a, block) < threshold) continue;
            reclaimed += block->size;
            left->age -= age_of(a, block);
            left->count--;
            release_segment(a, block);
        }
    }
    return reclaimed;
}

void plim_allocator_collect(struct plim_allocator *a)
{
    int64_t threshold =
        (int64_t)(a->config.garbage_collection_threshold * (double)a->limit_bytes);
    int64_t target = a->stats.reserved - threshold, reclaimed = 0;
    struct candidates left = {0};
    if (target > 0) left = count_candidates(a);
    while (reclaimed < target && left.count > 0) {
        int64_t freed = collect_round(a, &left);
        if (freed == 0) break;
        reclaimed += freed;
    }
}

bool plim_allocator_release_oversize(struct plim_allocator *a, struct plim_block_list *list,
                                     int64_t size)
{
    int64_t oversize = a->config.max_split_size;
    if (oversize == INT64_MAX) return false;
    const struct plim_block_index *index = &list->free;
    int64_t wanted = size < oversize ? oversize : size, released = 0;
    struct plim_block *block = plim_block_index_find(index, wanted), *smaller;
    if (block && !block->range) {
        release_segment(a, block);
        return true;
    }
    /* No single block is large enough: frees several, the largest first. */
    block = block ? plim_block_index_previous(index, block) : plim_block_index_last(index);
    for (; block && released < wanted && block->size >= oversize; block = smaller) {
        smaller = plim_block_index_previous(index, block);
        if (block->range) continue;
        released += block->size;
        release_segment(a, block);
    }
    return released >= wanted;
}

/* The parts of a free block that remain next to an unmapped page are smaller than the block, so they sort before the
 * position where the walk continues. */
static void release_pool(struct plim_allocator *a, enum plim_pool pool)
{
    for (size_t s = 0; s < a->streams.count; s++) {
        for (struct plim_block *block = first_free(a, s, pool), *next; block; block = next) {
            next = plim_block_index_next(&block->list->free, block);
            if (block->range) plim_allocator_unmap(a, block);
            else if (is_whole(block)) release_segment(a, block);
        }
    }
}

void plim_allocator_release_free(struct plim_allocator *a)
{
    release_pool(a, PLIM_POOL_LARGE);
    release_pool(a, PLIM_POOL_SMALL);
}

static void return_segment(void *user, struct plim_block *head)
{
    struct plim_allocator *a = user;
    if (head->prev) return;
    if (head->range) {
        plim_allocator_range_return(a, head);
        return;
    }
    int64_t bytes = 0;
    for (const struct plim_block *b = head; b; b = b->next) bytes += b->size;
    plim_device_segment_return(a->device, head->address, bytes);
}

void plim_allocator_release_segments(struct plim_allocator *a)
{
    plim_block_store_visit(&a->store, return_segment, a);
}
