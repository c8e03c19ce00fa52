/* Pools of objects of one size, which are allocated and freed one at a time and all together; and blocks of any size.
 *
 * A zeroed pool is empty and ready for use. Objects are not cleared. */
#ifndef PLIM_ENGINE_OBJECT_POOL_H
#define PLIM_ENGINE_OBJECT_POOL_H

#include <stddef.h>

struct pool {
    size_t size; /* of an object, set by the first pool_allocate() */
    void *free;  /* list, linked through the first word of each object */
    struct pool_slab *slabs;
};

/* Returns NULL without host memory. `size` must be the same in every call and at least that of a pointer. */
void *pool_allocate(struct pool *p, size_t size);
void pool_free(struct pool *p, void *object);
/* Returns all objects to the pool; keeps the memory for later use. */
void pool_reset(struct pool *p);
/* Frees the memory. */
void pool_finish(struct pool *p);

struct block;
/* Returns a block of at least `bytes`, not cleared; NULL without host memory. For few blocks at a time: it searches all
 * of them. */
void *block_allocate(struct block **all, size_t bytes);
void block_free(void *block);
void block_reset(struct block *all);
void block_finish(struct block **all);

#endif
