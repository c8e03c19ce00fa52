/* What the files of the caching allocator share. Nobody else includes this.
 *
 *     caching_allocator.c    sizes, best fit, splitting, merging, the order on failure
 *     allocator_cache.c      what goes back to the device: segments released, collected, reset
 *     expandable_segments.c  ranges of addresses that pages are mapped into
 *     allocator_config.c     PYTORCH_CUDA_ALLOC_CONF
 *     block_store, block_index   where blocks live and how free ones are found
 */
#ifndef PLIM_DEVICES_ALLOCATOR_INTERNAL_H
#define PLIM_DEVICES_ALLOCATOR_INTERNAL_H

#include "autotune/base/array.h"
#include "block_index.h"
#include "block_store.h"
#include "caching_allocator.h"

/* c10/core/AllocatorConfig.h */
#define PLIM_MIN_BLOCK ((int64_t)512)           /* every size is a multiple of it */
#define PLIM_SMALL_SIZE ((int64_t)1 << 20)      /* up to here from the small pool */
#define PLIM_SMALL_SEGMENT ((int64_t)2 << 20)   /* segment and page of the small pool */
#define PLIM_MIN_LARGE_ALLOC ((int64_t)10 << 20) /* from here a segment for each request */
#define PLIM_ROUND_LARGE ((int64_t)2 << 20)     /* which is rounded up to this */

enum plim_pool { PLIM_POOL_SMALL, PLIM_POOL_LARGE, PLIM_POOL_COUNT };

/* The free blocks of one pool and one stream: streams never share them. */
struct plim_block_list {
    int stream;
    enum plim_pool pool;
    struct plim_block *unmapped;  /* address space without memory, by address (free_next) */
    struct plim_block_index free; /* free memory, by size and address */
};

struct plim_stream_pools {
    struct plim_block_list pools[PLIM_POOL_COUNT];
};

/* The address space of one expandable segment. */
struct plim_range {
    uint64_t address;
    int64_t bytes;
    struct plim_range *next;
};

struct plim_allocator {
    struct plim_device *device;
    struct plim_allocator_config config;
    bool rounds_to_power2; /* some roundup_power2_divisions is set */
    int64_t limit_bytes;   /* what the memory fraction allows; INT64_MAX without one */
    struct plim_allocator_stats stats;
    uint32_t searches[PLIM_POOL_COUNT]; /* the clock of the free blocks' age */
    PLIM_ARRAY(struct plim_stream_pools *) streams; /* by stream number; NULL: never used */
    PLIM_ARRAY(struct plim_block *) pending;        /* freed while in use on another stream */
    struct plim_block_store store;
    struct plim_range *ranges;
    bool host_memory_ran_out; /* where nothing could report it: then every malloc does */
    plim_allocator_observer observer;
    void *observer_user;
};

/* -- caching_allocator.c ------------------------------------------------------------------- */

/* A block of `list`, in no index; NULL when the host is out of memory. */
struct plim_block *plim_allocator_block_new(struct plim_allocator *a, struct plim_block_list *list,
                                            uint64_t address, int64_t size) PLIM_MUST_CHECK;

/* Into the index of the free blocks, and out of it. */
void plim_allocator_list_insert(struct plim_allocator *a, struct plim_block *block);
void plim_allocator_list_remove(struct plim_block *block);

/* A free block that is not waiting for another stream. NULL is not. */
static inline bool plim_block_available(const struct plim_block *block)
{
    return block && !block->allocated && !block->pending;
}

/* Puts `block` into the chain of the segment of `left`, behind it; or of `right`, before it. */
static inline void plim_block_link_behind(struct plim_block *block, struct plim_block *left)
{
    block->range = left->range;
    block->prev = left;
    block->next = left->next;
    if (left->next) left->next->prev = block;
    left->next = block;
}

static inline void plim_block_link_before(struct plim_block *block, struct plim_block *right)
{
    block->range = right->range;
    block->prev = right->prev;
    block->next = right;
    if (right->prev) right->prev->next = block;
    right->prev = block;
}

/* Lets `into` take over its neighbour `from`, which is gone afterwards. Neither is in an index. */
void plim_allocator_block_absorb(struct plim_allocator *a, struct plim_block *into,
                                 struct plim_block *from);

/* Memory came from or went back to the device. `what`: S s M m. */
void plim_allocator_count_reserved(struct plim_allocator *a, char what, int64_t bytes);

/* -- allocator_cache.c --------------------------------------------------------------------- */

/* A whole new segment, as a free block of the list. */
enum plim_status plim_allocator_segment_get(struct plim_allocator *a, struct plim_block_list *list,
                                            int64_t bytes,
                                            struct plim_block **block) PLIM_MUST_CHECK;

/* Garbage collection: whole free segments of the large pool that nobody wanted for long. */
void plim_allocator_collect(struct plim_allocator *a);

/* With max_split_size: enough oversize segments of the list for a request of `size`. False when
 * that is not to be had (what was released stays released). */
bool plim_allocator_release_oversize(struct plim_allocator *a, struct plim_block_list *list,
                                     int64_t size);

/* Everything that is whole and free. */
void plim_allocator_release_all(struct plim_allocator *a);

/* -- expandable_segments.c ----------------------------------------------------------------- */

/* Maps pages until there is a free block of at least `size` in a range of the list. PLIM_OOM may
 * leave some newly mapped pages behind, as free blocks. */
enum plim_status plim_allocator_expand(struct plim_allocator *a, struct plim_block_list *list,
                                       int64_t size, struct plim_block **block) PLIM_MUST_CHECK;

/* Gives back the pages that lie wholly inside this free block, and the range if it is empty. */
void plim_allocator_unmap(struct plim_allocator *a, struct plim_block *block);

/* Gives back all pages and addresses of the range that starts with `head`. */
void plim_allocator_range_return(struct plim_allocator *a, struct plim_block *head);

#endif
