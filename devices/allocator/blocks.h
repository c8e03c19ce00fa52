/* The state of the caching allocator and its blocks: free lists, splitting, merging, statistics.
 *
 * The files of this folder, each calling only those below it:
 *
 *     policy.c       malloc and free: sizes, best fit, what is tried in which order when memory is short
 *     segments.c     segments from the device and back: growing, garbage collection, empty_cache
 *     expandable.c   ranges of addresses that pages are mapped into
 *     fingerprint.c  the whole state as one hash
 *     blocks.c       this header
 *     block_index.c, block_store.c   search for free blocks, and memory of blocks
 *
 * config.c reads PYTORCH_CUDA_ALLOC_CONF. Only these files and their tests include this header. */
#ifndef PLIM_DEVICES_ALLOCATOR_BLOCKS_H
#define PLIM_DEVICES_ALLOCATOR_BLOCKS_H

#include "allocator.h"
#include "autotune/base/array.h"
#include "block_index.h"
#include "block_store.h"

/* c10/core/AllocatorConfig.h */
#define PLIM_MIN_BLOCK ((int64_t)512)           /* every size is a multiple of it */
#define PLIM_SMALL_SIZE ((int64_t)1 << 20)      /* requests up to this size use the small pool */
#define PLIM_SMALL_SEGMENT ((int64_t)2 << 20)   /* segment and page of the small pool */
#define PLIM_MIN_LARGE_ALLOC ((int64_t)10 << 20) /* a request of this size or more gets a segment of its own size, */
#define PLIM_ROUND_LARGE ((int64_t)2 << 20)     /* rounded up to a multiple of this */

enum plim_pool { PLIM_POOL_SMALL, PLIM_POOL_LARGE, PLIM_POOL_COUNT };

/* The free blocks of one pool and one stream; streams never share them. */
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
    int64_t limit_bytes;   /* from the memory fraction; INT64_MAX without one */
    struct plim_allocator_stats stats;
    uint32_t searches[PLIM_POOL_COUNT]; /* number of searches, the clock for the age of free blocks */
    PLIM_ARRAY(struct plim_stream_pools *) streams; /* by stream number; NULL: never used */
    PLIM_ARRAY(struct plim_block *) pending;        /* freed while in use on another stream */
    PLIM_ARRAY(struct plim_block *) heads;          /* room for the fingerprint */
    struct plim_block_store store;
    struct plim_range *ranges;
    bool host_memory_ran_out; /* in a call that cannot report it: every later malloc fails */
    plim_allocator_observer observer;
    void *observer_user;
};

/* -- lists --------------------------------------------------------------------------------- */

/* Returns the list of this stream and pool, created at its first use; NULL without host memory. */
struct plim_block_list *plim_allocator_list(struct plim_allocator *a, int stream,
                                            enum plim_pool pool) PLIM_MUST_CHECK;

/* Insert a block into the index of free blocks of its list, and remove it. */
void plim_allocator_list_insert(struct plim_allocator *a, struct plim_block *block);
void plim_allocator_list_remove(struct plim_block *block);

/* -- blocks -------------------------------------------------------------------------------- */

/* Returns a new block of `list`, in no index; NULL without host memory. */
struct plim_block *plim_allocator_block_new(struct plim_allocator *a, struct plim_block_list *list,
                                            uint64_t address, int64_t size) PLIM_MUST_CHECK;

/* True if this is a free block that is not waiting for another stream. False for NULL. */
static inline bool plim_block_available(const struct plim_block *block)
{
    return block && !block->allocated && !block->pending;
}

/* Links `block` into the segment of `left`, after it; or of `right`, before it. */
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

/* Splits `size` bytes off the front of a free block, whose rest stays in the index, and returns the front, which is in
 * no index. Returns NULL, with nothing changed, without host memory. */
struct plim_block *plim_allocator_block_split(struct plim_allocator *a, struct plim_block *block,
                                              int64_t size) PLIM_MUST_CHECK;

/* Merges the neighbour `from` into `into`; `from` no longer exists afterwards. Neither is in an index. */
void plim_allocator_block_absorb(struct plim_allocator *a, struct plim_block *into,
                                 struct plim_block *from);

/* Inserts a block that is no longer used into the index, merged with its free neighbours. */
void plim_allocator_block_free(struct plim_allocator *a, struct plim_block *block);

/* -- statistics ---------------------------------------------------------------------------- */

/* Counts a block that was allocated for a request of block->requested bytes. */
void plim_allocator_count_allocated(struct plim_allocator *a, const struct plim_block *block);

/* Counts memory allocated from or returned to the device. `what`: as in plim_allocator_observer. */
void plim_allocator_count_reserved(struct plim_allocator *a, char what, int64_t bytes);

#endif
