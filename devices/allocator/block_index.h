/* Free blocks in order of (size, address): the search structure of the caching allocator.
 *
 * Blocks are linked into bins by size, eight bins per power of two; a bitmap marks the bins in use. Within a bin they
 * are sorted. Best fit reads one bin or the first block of the next one in use; removing a block needs no search;
 * nothing is ever allocated. (A sorted array was measured too: a quarter as fast, since every merge has to search for
 * its neighbours.) */
#ifndef PLIM_DEVICES_BLOCK_INDEX_H
#define PLIM_DEVICES_BLOCK_INDEX_H

#include "block_store.h"

enum {
    PLIM_BIN_STEPS = 8,                     /* bins for each power of two */
    PLIM_BIN_COUNT = 50 * PLIM_BIN_STEPS,   /* blocks up to 2^60 bytes */
    PLIM_BIN_WORDS = (PLIM_BIN_COUNT + 63) / 64
};

/* A zeroed index is empty and ready, and may be zeroed again at any time. A block in it is linked by its `free_prev`,
 * `free_next`; its size and address must not change meanwhile. */
struct plim_block_index {
    struct {
        struct plim_block *first, *last;
    } bins[PLIM_BIN_COUNT];
    uint64_t used[PLIM_BIN_WORDS];
};

void plim_block_index_insert(struct plim_block_index *index, struct plim_block *block);
void plim_block_index_remove(struct plim_block_index *index, struct plim_block *block);

/* Returns the first block of at least `size` bytes (so the smallest, at the lowest address), or NULL. */
struct plim_block *plim_block_index_find(const struct plim_block_index *index, int64_t size);

/* Return the block after or before this one in order, or NULL. */
struct plim_block *plim_block_index_next(const struct plim_block_index *index,
                                         const struct plim_block *block);
struct plim_block *plim_block_index_previous(const struct plim_block_index *index,
                                             const struct plim_block *block);

/* Returns the last block in order, or NULL. */
struct plim_block *plim_block_index_last(const struct plim_block_index *index);

#endif
