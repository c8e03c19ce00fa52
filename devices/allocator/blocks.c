#include "blocks.h"

#include <stdlib.h>

/* --- lists ------------------------------------------------------------------------------------ */

struct plim_block_list *plim_allocator_list(struct plim_allocator *a, int stream,
                                            enum plim_pool pool)
{
    size_t number = (size_t)stream;
    if (number < a->streams.count && a->streams.items[number])
        return &a->streams.items[number]->pools[pool];
    while (a->streams.count <= number) {
        if (PLIM_ARRAY_PUSH(&a->streams, NULL) != PLIM_OK) return NULL;
    }
    struct plim_stream_pools *pools = calloc(1, sizeof(*pools));
    if (!pools) return NULL;
    for (int p = 0; p < PLIM_POOL_COUNT; p++) {
        pools->pools[p].stream = stream;
        pools->pools[p].pool = (enum plim_pool)p;
    }
    a->streams.items[number] = pools;
    return &pools->pools[pool];
}

void plim_allocator_list_insert(struct plim_allocator *a, struct plim_block *block)
{
    block->free_since = a->searches[block->list->pool];
    plim_block_index_insert(&block->list->free, block);
}

void plim_allocator_list_remove(struct plim_block *block)
{
    plim_block_index_remove(&block->list->free, block);
}

/* --- blocks ----------------------------------------------------------------------------------- */

struct plim_block *plim_allocator_block_new(struct plim_allocator *a, struct plim_block_list *list,
                                            uint64_t address, int64_t size)
{
    struct plim_block *block = plim_block_new(&a->store);
    if (!block) return NULL;
    block->list = list;
    block->address = address;
    block->size = size;
    return block;
}

struct plim_block *plim_allocator_block_split(struct plim_allocator *a, struct plim_block *block,
                                              int64_t size)
{
    struct plim_block *front = plim_allocator_block_new(a, block->list, block->address, size);
    if (!front) return NULL;
    plim_block_link_before(front, block);
    plim_allocator_list_remove(block);
    block->address += (uint64_t)size;
    block->size -= size;
    plim_allocator_list_insert(a, block);
    return front;
}

void plim_allocator_block_absorb(struct plim_allocator *a, struct plim_block *into,
                                 struct plim_block *from)
{
    if (into->prev == from) {
        into->address = from->address;
        into->prev = from->prev;
        if (into->prev) into->prev->next = into;
    } else {
        into->next = from->next;
        if (into->next) into->next->prev = into;
    }
    into->size += from->size;
    plim_block_recycle(&a->store, from);
}

static void absorb_if_free(struct plim_allocator *a, struct plim_block *block,
                           struct plim_block *neighbour)
{
    if (!plim_block_available(neighbour) || neighbour->unmapped) return;
    plim_allocator_list_remove(neighbour);
    plim_allocator_block_absorb(a, block, neighbour);
}

void plim_allocator_block_free(struct plim_allocator *a, struct plim_block *block)
{
    absorb_if_free(a, block, block->prev);
    absorb_if_free(a, block, block->next);
    plim_allocator_list_insert(a, block);
}

uint32_t plim_block_position(const struct plim_block *block)
{
    return block->position;
}

uint64_t plim_block_address(const struct plim_block *block)
{
    return block ? block->address : 0;
}

int64_t plim_block_bytes(const struct plim_block *block)
{
    return block ? block->size : 0;
}

/* --- statistics ------------------------------------------------------------------------------- */

static void increase(int64_t *counter, int64_t *peak, int64_t by)
{
    *counter += by;
    if (*counter > *peak) *peak = *counter;
}

void plim_allocator_count_allocated(struct plim_allocator *a, const struct plim_block *block)
{
    increase(&a->stats.allocated, &a->stats.allocated_peak, block->size);
    increase(&a->stats.requested, &a->stats.requested_peak, block->requested);
}

void plim_allocator_count_reserved(struct plim_allocator *a, char what, int64_t bytes)
{
    bool gets = what == 'S' || what == 'M';
    increase(&a->stats.reserved, &a->stats.reserved_peak, gets ? bytes : -bytes);
    if (a->observer) a->observer(a->observer_user, what, bytes);
}

const struct plim_allocator_stats *plim_allocator_statistics(const struct plim_allocator *a)
{
    return &a->stats;
}

void plim_allocator_reset_peaks(struct plim_allocator *a)
{
    a->stats.allocated_peak = a->stats.allocated;
    a->stats.reserved_peak = a->stats.reserved;
    a->stats.requested_peak = a->stats.requested;
}

void plim_allocator_observe(struct plim_allocator *a, plim_allocator_observer observer, void *user)
{
    a->observer = observer;
    a->observer_user = user;
}
