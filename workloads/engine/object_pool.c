#include "object_pool.h"
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { SLAB_BYTES = 128 << 10, ALIGNMENT = 16 };

struct pool_slab {
    struct pool_slab *next;
    _Alignas(ALIGNMENT) unsigned char objects[];
};

static size_t slab_objects(const struct pool *p)
{
    return p->size < SLAB_BYTES ? SLAB_BYTES / p->size : 1;
}

static void slab_to_list(struct pool *p, struct pool_slab *slab)
{
    for (size_t i = slab_objects(p); i-- > 0;) pool_free(p, slab->objects + i * p->size);
}

void *pool_allocate(struct pool *p, size_t size)
{
    if (!p->free) {
        p->size = (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
        struct pool_slab *slab = malloc(sizeof *slab + slab_objects(p) * p->size);
        if (!slab) return NULL;
        slab->next = p->slabs;
        p->slabs = slab;
        slab_to_list(p, slab);
    }
    void *object = p->free;
    memcpy(&p->free, object, sizeof p->free);
    return object;
}

void pool_free(struct pool *p, void *object)
{
    memcpy(object, &p->free, sizeof p->free);
    p->free = object;
}

void pool_reset(struct pool *p)
{
    p->free = NULL;
    for (struct pool_slab *slab = p->slabs; slab; slab = slab->next) slab_to_list(p, slab);
}

void pool_finish(struct pool *p)
{
    while (p->slabs) {
        struct pool_slab *next = p->slabs->next;
        free(p->slabs);
        p->slabs = next;
    }
    p->free = NULL;
}

struct block {
    struct block *next; /* list of all blocks */
    size_t bytes;       /* after this header */
    bool taken;
};

void *block_allocate(struct block **all, size_t bytes)
{
    struct block *block = *all;
    while (block && (block->taken || block->bytes < bytes)) block = block->next;
    if (!block) {
        block = malloc(sizeof *block + bytes);
        if (!block) return NULL;
        *block = (struct block){.next = *all, .bytes = bytes};
        *all = block;
    }
    block->taken = true;
    return block + 1;
}

void block_free(void *block)
{
    ((struct block *)block - 1)->taken = false;
}

void block_reset(struct block *all)
{
    for (struct block *block = all; block; block = block->next) block->taken = false;
}

void block_finish(struct block **all)
{
    while (*all) {
        struct block *block = *all;
        *all = block->next;
        free(block);
    }
}
