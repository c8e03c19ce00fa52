/* An arena: many small allocations that are freed at once, such as a parsed document or the samples of a search.
 *
 * Functions return NULL if host memory runs out; the arena is then unchanged. Thread safety: one thread at a time per
 * arena. */
#ifndef PLIM_BASE_ARENA_H
#define PLIM_BASE_ARENA_H

#include "status.h"
#include <stddef.h>

struct plim_arena_block;

/* Empty and ready when zeroed: `struct plim_arena arena = {0};` */
struct plim_arena {
    struct plim_arena_block *head; /* the block that is being filled, followed by older ones */
    size_t used_bytes;             /* total size of the allocations, with padding */
};

/* Returns `size` zeroed bytes, aligned for any type. A size of 0 gives a valid pointer that must not be
 * dereferenced. */
void *plim_arena_alloc(struct plim_arena *arena, size_t size) PLIM_MUST_CHECK;

/* Returns zeroed memory for `count` items of `size` bytes; NULL also if the product overflows. */
void *plim_arena_array(struct plim_arena *arena, size_t count, size_t size) PLIM_MUST_CHECK;

/* Returns a terminated copy of `length` bytes of `text`. */
char *plim_arena_text(struct plim_arena *arena, const char *text, size_t length) PLIM_MUST_CHECK;

/* Frees all memory; the arena is empty and ready again. NULL is allowed. */
void plim_arena_finish(struct plim_arena *arena);

#endif
