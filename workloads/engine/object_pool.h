/* Objects of one size, taken and given back one at a time, released all at once; and blocks of any size, likewise.
 *
 * A zeroed pool is empty and ready. Objects are not cleared.
 */
#ifndef PLIM_ENGINE_OBJECT_POOL_H
#define PLIM_ENGINE_OBJECT_POOL_H

#include <stddef.h>

struct pool {
    size_t size; /* of an object; of the first pool_take() */
    void *free;  /* list through the first word */
    struct pool_slab *slabs;
};

/* NULL: no host memory. `size` is the same in every call and no less than a pointer's. */
void *pool_take(struct pool *p, size_t size);
void pool_give(struct pool *p, void *object);
/* Takes every object back; their memory stays for the next. */
void pool_reset(struct pool *p);
/* Gives the memory back. */
void pool_finish(struct pool *p);

struct block;
/* A block of as many bytes or more, not cleared; NULL: no host memory. For few at a time: all are looked through. */
void *block_take(struct block **all, size_t bytes);
void block_give(void *block);
void block_reset(struct block *all);
void block_finish(struct block **all);

#endif
