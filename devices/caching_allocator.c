/* The policy of PyTorch's caching allocator; see caching_allocator.h for the rules. */
#include "allocator_internal.h"

#include <assert.h>
#include <stdlib.h>

#define EXABYTE ((int64_t)1 << 60)

/* Streams are numbered by the caller, from 0 and densely: this only bounds the table. */
enum { MAX_STREAMS = 4096 };

/* ---- blocks ---- */

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

void plim_allocator_list_insert(struct plim_allocator *a, struct plim_block *block)
{
    block->free_since = a->searches[block->list->pool];
    plim_block_index_insert(&block->list->free, block);
}

void plim_allocator_list_remove(struct plim_block *block)
{
    plim_block_index_remove(&block->list->free, block);
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

/* ---- statistics ---- */

static void increase(int64_t *counter, int64_t *peak, int64_t by)
{
    *counter += by;
    if (*counter > *peak) *peak = *counter;
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

/* ---- sizes ---- */

static int log2_floor(int64_t n)
{
    int log = 0;
    while (n >>= 1) log++;
    return log;
}

/* Up to the next of `divisions` equal steps between two powers of two; `divisions` is one too. */
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

static int64_t segment_size(const struct plim_allocator *a, int64_t size)
{
    if (size <= PLIM_SMALL_SIZE) return PLIM_SMALL_SEGMENT;
    if (size < PLIM_MIN_LARGE_ALLOC) return a->config.large_segment_size;
    return (size + PLIM_ROUND_LARGE - 1) & ~(PLIM_ROUND_LARGE - 1);
}

static bool should_split(const struct plim_allocator *a, enum plim_pool pool, int64_t block_size,
                         int64_t size)
{
    int64_t remainder = block_size - size;
    if (pool == PLIM_POOL_SMALL || a->config.expandable_segments)
        return remainder >= PLIM_MIN_BLOCK;
    return size < a->config.max_split_size && remainder > PLIM_SMALL_SIZE;
}

/* ---- malloc ---- */

static struct plim_block_list *list_of(struct plim_allocator *a, int stream, enum plim_pool pool)
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

/* What a block of an expandable range could become by mapping what follows it. */
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

/* New memory from the device, as a free block of the list. */
static enum plim_status grow(struct plim_allocator *a, struct plim_block_list *list, int64_t size,
                             struct plim_block **block)
{
    int64_t bytes = segment_size(a, size);
    if (bytes > a->limit_bytes - a->stats.reserved) return PLIM_OOM;
    if (a->config.expandable_segments) return plim_allocator_expand(a, list, size, block);
    return plim_allocator_segment_get(a, list, bytes, block);
}

/* Nothing cached fits: PyTorch's order of doing something about it. */
static enum plim_status find_memory(struct plim_allocator *a, struct plim_block_list *list,
                                    int64_t size, struct plim_block **block)
{
    if (a->limit_bytes != INT64_MAX && a->config.garbage_collection_threshold > 0)
        plim_allocator_collect(a);
    enum plim_status st = grow(a, list, size, block);
    if (st == PLIM_OOM && plim_allocator_release_oversize(a, list, size))
        st = grow(a, list, size, block);
    if (st == PLIM_OOM) {
        plim_allocator_release_all(a);
        a->stats.retries++;
        if (a->host_memory_ran_out) return PLIM_NOMEM;
        st = grow(a, list, size, block);
    }
    if (st == PLIM_OOM) a->stats.ooms++;
    return st;
}

/* Takes a free block out of its list: its front, when it is worth splitting. */
static struct plim_block *take(struct plim_allocator *a, struct plim_block *block, int64_t size)
{
    if (!should_split(a, block->list->pool, block->size, size)) {
        plim_allocator_list_remove(block);
        return block;
    }
    struct plim_block *front = plim_allocator_block_new(a, block->list, block->address, size);
    if (!front) return NULL;
    plim_block_link_before(front, block);
    plim_allocator_list_remove(block);
    block->address += (uint64_t)size;
    block->size -= size;
    plim_allocator_list_insert(a, block);
    return front;
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
    struct plim_block_list *list = list_of(a, stream, pool);
    if (!list) return PLIM_NOMEM;
    struct plim_block *block = best_fit(a, list, size);
    if (!block) {
        enum plim_status st = find_memory(a, list, size, &block);
        if (st != PLIM_OK) return st;
    }
    block = take(a, block, size);
    if (!block) return PLIM_NOMEM;
    block->allocated = true;
    block->requested = bytes;
    increase(&a->stats.allocated, &a->stats.allocated_peak, block->size);
    increase(&a->stats.requested, &a->stats.requested_peak, bytes);
    *out = block;
    return PLIM_OK;
}

/* ---- free ---- */

static void absorb_if_free(struct plim_allocator *a, struct plim_block *block,
                           struct plim_block *neighbour)
{
    if (!plim_block_available(neighbour) || neighbour->unmapped) return;
    plim_allocator_list_remove(neighbour);
    plim_allocator_block_absorb(a, block, neighbour);
}

static void make_available(struct plim_allocator *a, struct plim_block *block)
{
    a->stats.requested -= block->requested;
    absorb_if_free(a, block, block->prev);
    absorb_if_free(a, block, block->next);
    plim_allocator_list_insert(a, block);
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
    plim_allocator_release_all(a);
}

uint64_t plim_block_address(const struct plim_block *block)
{
    return block ? block->address : 0;
}

int64_t plim_block_bytes(const struct plim_block *block)
{
    return block ? block->size : 0;
}

/* ---- life ---- */

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

void plim_allocator_reset(struct plim_allocator *a)
{
    plim_block_store_visit(&a->store, return_segment, a);
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
    free(a);
    *allocator = NULL;
}
