/* The fingerprint covers everything that the allocator's decisions depend on: of each block its size, its position
 * between its neighbours, its pool and stream, and its flags; of the free lists their order, which is that of sizes and
 * then of addresses; and where the device would place new segments among the present ones. Addresses themselves are not
 * hashed, only the order of segments: on a device that places each above all earlier ones, a segment that is freed and
 * requested again has another address, but the decisions are the same. */
#include "blocks.h"

#include <stdlib.h>

static uint64_t mix(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
    hash = (hash ^ hash >> 32) * UINT64_C(0xd6e8feb86659fd93);
    return hash ^ hash >> 32;
}

static void collect_head(void *user, struct plim_block *block)
{
    struct plim_allocator *a = user;
    if (block->prev) return;
    if (PLIM_ARRAY_PUSH(&a->heads, block) != PLIM_OK) a->host_memory_ran_out = true;
}

static int compare(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

static int by_list_and_address(const void *left, const void *right)
{
    const struct plim_block *a = *(struct plim_block *const *)left;
    const struct plim_block *b = *(struct plim_block *const *)right;
    int order = compare(a->list->stream, b->list->stream);
    if (!order) order = compare(a->list->pool, b->list->pool);
    return order ? order : (a->address > b->address) - (a->address < b->address);
}

/* Sizes are multiples of 512: the low bits are free for flags. */
static uint64_t word_of(const struct plim_block *block)
{
    return (uint64_t)block->size | block->allocated | (uint64_t)block->pending << 1 |
           (uint64_t)block->used_elsewhere << 2 | (uint64_t)block->unmapped << 3 |
           (uint64_t)(block->range != NULL) << 4 | (uint64_t)(block->next != NULL) << 5;
}

/* True if garbage collection depends on how long this free segment has been free. */
static bool is_aging(const struct plim_allocator *a, const struct plim_block *block)
{
    return a->config.garbage_collection_threshold > 0 && a->limit_bytes != INT64_MAX &&
           !block->prev && !block->next && plim_block_available(block) &&
           block->list->pool == PLIM_POOL_LARGE;
}

/* Hashes all segments, or only those of large blocks. */
static uint64_t hash_segments(struct plim_allocator *a, bool all)
{
    uint64_t hash = plim_device_placement(a->device);
    uint32_t position = 0;
    a->heads.count = 0;
    plim_block_store_visit(&a->store, collect_head, a);
    if (a->host_memory_ran_out) return 0;
    if (a->heads.count)
        qsort(a->heads.items, a->heads.count, sizeof(*a->heads.items), by_list_and_address);
    for (size_t i = 0; i < a->heads.count; i++) {
        struct plim_block *head = a->heads.items[i];
        if (!all && head->list->pool != PLIM_POOL_LARGE) continue;
        hash = mix(hash, (uint64_t)head->list->stream << 1 | (uint64_t)head->list->pool);
        for (struct plim_block *block = head; block; block = block->next) {
            hash = mix(hash, word_of(block));
            if (all && block->allocated) block->position = ++position;
        }
        if (is_aging(a, head))
            hash = mix(hash, a->searches[PLIM_POOL_LARGE] - head->free_since);
    }
    return hash ? hash : 1;
}

uint64_t plim_allocator_fingerprint(struct plim_allocator *a)
{
    return hash_segments(a, true);
}

uint64_t plim_allocator_fingerprint_large(struct plim_allocator *a)
{
    return hash_segments(a, false);
}
