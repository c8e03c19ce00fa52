/* Blocks, into which segments are divided, and the memory of their descriptions.
 *
 * A store hands out descriptions from chunks that it keeps, so neither a malloc or free of the allocator nor the start
 * of the next replay touches the host's heap. */
#ifndef PLIM_DEVICES_BLOCK_STORE_H
#define PLIM_DEVICES_BLOCK_STORE_H

#include "autotune/base/status.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct plim_block_list;
struct plim_block_chunk;
struct plim_range;

/* A part of a segment. The blocks of a segment are linked in order of address; a block without neighbours is a whole
 * segment. */
struct plim_block {
    uint64_t address;
    int64_t size;
    int64_t requested;              /* of an allocated block: the requested bytes */
    struct plim_block *prev, *next; /* neighbours in the segment */
    struct plim_block *free_prev, *free_next; /* of a free or unmapped block: links in its index */
    struct plim_block_list *list;   /* pool and stream it belongs to; NULL: not in use */
    struct plim_range *range;       /* expandable range that contains it; NULL: an ordinary segment */
    union {
        uint32_t free_since; /* of a free block: number of searches when it became free */
        uint32_t position;   /* of an allocated block: plim_block_position() */
    };
    bool allocated;
    bool pending;                   /* freed, but work on another stream may still use it */
    bool used_elsewhere;            /* record_stream was called on it */
    bool unmapped;                  /* a part of an expandable range without memory */
};

/* Zeroed: empty and ready. */
struct plim_block_store {
    struct plim_block_chunk *first, *current;
    size_t used;                 /* blocks of the current chunk; earlier chunks are fully used */
    struct plim_block *recycled; /* linked by `next` */
};

/* Returns a zeroed block, or NULL without host memory. */
struct plim_block *plim_block_new(struct plim_block_store *store) PLIM_MUST_CHECK;
void plim_block_recycle(struct plim_block_store *store, struct plim_block *block);

/* Calls `visit` for every block that is in use. */
void plim_block_store_visit(struct plim_block_store *store,
                            void (*visit)(void *user, struct plim_block *block), void *user);

void plim_block_store_reset(struct plim_block_store *store);  /* drops all blocks, keeps the memory */
void plim_block_store_finish(struct plim_block_store *store); /* frees the memory */

#endif
