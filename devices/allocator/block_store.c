/* Chunks of block descriptions, filled in order; see block_store.h. */
#include "block_store.h"

#include <stdlib.h>

enum { CHUNK_BLOCKS = 1023 };

struct plim_block_chunk {
    struct plim_block_chunk *next;
    struct plim_block blocks[CHUNK_BLOCKS];
};

static bool advance(struct plim_block_store *store)
{
    struct plim_block_chunk *next = store->current ? store->current->next : store->first;
    if (!next) {
        next = malloc(sizeof(*next));
        if (!next) return false;
        next->next = NULL;
        if (store->current) store->current->next = next;
        else store->first = next;
    }
    store->current = next;
    store->used = 0;
    return true;
}

struct plim_block *plim_block_new(struct plim_block_store *store)
{
    struct plim_block *block = store->recycled;
    if (block) {
        store->recycled = block->next;
    } else {
        if ((!store->current || store->used == CHUNK_BLOCKS) && !advance(store)) return NULL;
        block = &store->current->blocks[store->used++];
    }
    *block = (struct plim_block){0};
    return block;
}

void plim_block_recycle(struct plim_block_store *store, struct plim_block *block)
{
    block->list = NULL;
    block->next = store->recycled;
    store->recycled = block;
}

void plim_block_store_visit(struct plim_block_store *store,
                            void (*visit)(void *user, struct plim_block *block), void *user)
{
    if (!store->current) return;
    for (struct plim_block_chunk *chunk = store->first;; chunk = chunk->next) {
        size_t used = chunk == store->current ? store->used : CHUNK_BLOCKS;
        for (size_t i = 0; i < used; i++) {
            if (chunk->blocks[i].list) visit(user, &chunk->blocks[i]);
        }
        if (chunk == store->current) return;
    }
}

void plim_block_store_reset(struct plim_block_store *store)
{
    store->current = NULL;
    store->used = 0;
    store->recycled = NULL;
}

void plim_block_store_finish(struct plim_block_store *store)
{
    for (struct plim_block_chunk *chunk = store->first, *next; chunk; chunk = next) {
        next = chunk->next;
        free(chunk);
    }
    *store = (struct plim_block_store){0};
}
