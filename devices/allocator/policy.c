/* The policy of PyTorch's caching allocator; see allocator.h for the rules. */
#include "segments.h"

#include <assert.h>
#include <stdlib.h>

#define EXABYTE ((int64_t)1 << 60)

/* Streams are numbered by the caller, densely from 0; this only bounds the table. */
enum { MAX_STREAMS = 4096 };

/* --- sizes ------------------------------------------------------------------------------------ */

static int log2_floor(int64_t n)
{
    int log = 0;
    while (n >>= 1) log++;
    return log;
}

/* Rounds up to the next of `divisions` equal steps between two powers of two; `divisions` is a power of two. */
static int64_t round_to_division(int64_t bytes, int64_t divisions)
{
    int64_t step = ((int64_t)1 << log2_floor(bytes)) / divisions;
    return (bytes + step - 1) / step * step;
}

static int64_t round_size(const struct plim_allocator *a, int64_t bytes)
{
    if (a->rounds_to_power2 && bytes >= PLIM_MIN_BLOCK) {
        int interval = log2_floor(bytes) - 20;
        interval = interval < 0 ? 0 : interval > 15 ? 15 : interval;
        int64_t divisions = a->config.roundup_power2_divisions[interval];
        if (divisions > 1 && bytes > PLIM_MIN_BLOCK * divisions)
            return round_to_division(bytes, divisions);
    }
    return (bytes + PLIM_MIN_BLOCK - 1) & ~(PLIM_MIN_BLOCK - 1);
}

static bool should_split(const struct plim_allocator *a, enum plim_pool pool, int64_t block_size,
                         int64_t size)
{
    int64_t remainder = block_size - size;
    if (pool == PLIM_POOL_SMALL || a->config.expandable_segments)
        return remainder >= PLIM_MIN_BLOCK;
    return size < a->config.max_split_size && remainder > PLIM_SMALL_SIZE;
}

/* --- malloc ----------------------------------------------------------------------------------- */

/* The size that a block of an expandable range would have if the memory after it were mapped. */
static int64_t growable_size(const struct plim_block *block)
{
    return block->size + (block->next && block->next->unmapped ? block->next->size : 0);
}

static struct plim_block *best_fit(struct plim_allocator *a, struct plim_block_list *list,
                                   int64_t size)
{
    a->searches[list->pool]++;
    struct plim_block *block = plim_block_index_find(&list->free, size), *next;
    if (!block) return NULL;
    if (a->config.expandable_segments) {
        while ((next = plim_block_index_next(&list->free, block)) &&
               growable_size(next) < growable_size(block))
            block = next;
    }
    int64_t max_split = a->config.max_split_size;
    if (size < max_split && block->size >= max_split) return NULL;
    if (size >= max_split && block->size - size >= a->config.max_non_split_rounding) return NULL;
    return block;
}

/* Called when no cached block fits: tries PyTorch's remedies in its order. */
static enum plim_status find_memory(struct plim_allocator *a, struct plim_block_list *list,
                                    int64_t size, struct plim_block **block)
{
    if (a->limit_bytes != INT64_MAX && a->config.garbage_collection_threshold > 0)
        plim_allocator_collect(a);
    enum plim_status st = plim_allocator_grow(a, list, size, block);
    if (st == PLIM_OOM && plim_allocator_release_oversize(a, list, size))
        st = plim_allocator_grow(a, list, size, block);
    if (st == PLIM_OOM) {
        plim_allocator_empty_cache(a);
        a->stats.retries++;
        if (a->host_memory_ran_out) return PLIM_NOMEM;
        st = plim_allocator_grow(a, list, size, block);
    }
    if (st == PLIM_OOM) a->stats.ooms++;
    return st;
}

/* Removes a free block from its list, or only its front if the block should be split. */
static struct plim_block *alloc_found_block(struct plim_allocator *a, struct plim_block *block, int64_t size)
{
    if (!should_split(a, block->list->pool, block->size, size)) {
        plim_allocator_list_remove(block);
        return block;
    }
    return plim_allocator_block_split(a, block, size);
}

enum plim_status plim_allocator_malloc(struct plim_allocator *a, int64_t bytes, int stream,
                                       struct plim_block **out)
{
    *out = NULL;
    if (bytes < 0 || stream < 0 || stream >= MAX_STREAMS) return PLIM_INVALID;
    if (bytes == 0) return PLIM_OK;
    if (bytes >= EXABYTE) return PLIM_OOM;
    if (a->host_memory_ran_out) return PLIM_NOMEM;
    if (a->pending.count) plim_allocator_process_events(a);

    int64_t size = round_size(a, bytes);
    enum plim_pool pool = size <= PLIM_SMALL_SIZE ? PLIM_POOL_SMALL : PLIM_POOL_LARGE;
    struct plim_block_list *list = plim_allocator_list(a, stream, pool);
    if (!list) return PLIM_NOMEM;
    struct plim_block *block = best_fit(a, list, size);
    if (!block) {
        enum plim_status st = find_memory(a, list, size, &block);
        if (st != PLIM_OK) return st;
    }
    block = alloc_found_block(a, block, size);
    if (!block) return PLIM_NOMEM;
    block->allocated = true;
    block->requested = bytes;
    plim_allocator_count_allocated(a, block);
    *out = block;
    return PLIM_OK;
}

/* --- free ------------------------------------------------------------------------------------- */

static void make_available(struct plim_allocator *a, struct plim_block *block)
{
    a->stats.requested -= block->requested;
    plim_allocator_block_free(a, block);
}

void plim_allocator_free(struct plim_allocator *a, struct plim_block *block)
{
    if (!block) return;
    assert(block->allocated);
    block->allocated = false;
    a->stats.allocated -= block->size;
    if (block->used_elsewhere) {
        block->used_elsewhere = false;
        if (PLIM_ARRAY_PUSH(&a->pending, block) == PLIM_OK) {
            block->pending = true;
            return;
        }
        a->host_memory_ran_out = true;
    }
    make_available(a, block);
}

void plim_allocator_record_stream(struct plim_allocator *a, struct plim_block *block, int stream)
{
    (void)a;
    if (block && stream != block->list->stream) block->used_elsewhere = true;
}

void plim_allocator_process_events(struct plim_allocator *a)
{
    for (size_t i = 0; i < a->pending.count; i++) {
        a->pending.items[i]->pending = false;
        make_available(a, a->pending.items[i]);
    }
    a->pending.count = 0;
}

void plim_allocator_empty_cache(struct plim_allocator *a)
{
    plim_allocator_process_events(a);
    plim_allocator_release_free(a);
}

/* --- creation, reset and statistics ----------------------------------------------------------- */

enum plim_status plim_allocator_create(struct plim_device *device,
                                       const struct plim_allocator_config *config,
                                       struct plim_allocator **out, struct plim_error *err)
{
    *out = NULL;
    struct plim_allocator *a = calloc(1, sizeof(*a));
    if (!a) return plim_fail(err, PLIM_NOMEM, "no host memory for the caching allocator");
    a->device = device;
    a->config = config ? *config : PLIM_ALLOCATOR_CONFIG_DEFAULT;
    for (int i = 0; i < 16; i++) {
        if (a->config.roundup_power2_divisions[i] > 1) a->rounds_to_power2 = true;
    }
    double fraction = a->config.memory_fraction;
    a->limit_bytes = INT64_MAX;
    if (fraction > 0 && fraction < 1)
        a->limit_bytes = (int64_t)(fraction * (double)device->info.total_bytes);
    *out = a;
    return PLIM_OK;
}

void plim_allocator_reset(struct plim_allocator *a)
{
    plim_allocator_release_segments(a);
    plim_block_store_reset(&a->store);
    for (size_t s = 0; s < a->streams.count; s++) {
        for (int p = 0; a->streams.items[s] && p < PLIM_POOL_COUNT; p++) {
            struct plim_block_list *list = &a->streams.items[s]->pools[p];
            list->unmapped = NULL;
            list->free = (struct plim_block_index){0};
        }
    }
    for (int p = 0; p < PLIM_POOL_COUNT; p++) a->searches[p] = 0;
    a->pending.count = 0;
    a->host_memory_ran_out = false;
    a->stats = (struct plim_allocator_stats){0};
}

void plim_allocator_destroy(struct plim_allocator **allocator)
{
    struct plim_allocator *a = allocator ? *allocator : NULL;
    if (!a) return;
    plim_allocator_reset(a);
    plim_block_store_finish(&a->store);
    for (size_t s = 0; s < a->streams.count; s++) free(a->streams.items[s]);
    PLIM_ARRAY_FINISH(&a->streams);
    PLIM_ARRAY_FINISH(&a->pending);
    PLIM_ARRAY_FINISH(&a->heads);
    free(a);
    *allocator = NULL;
}
