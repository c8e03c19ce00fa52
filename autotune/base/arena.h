/* An arena: many small allocations that live together and are freed at once.
 *
 * For the metadata of one job (a parsed document, a plan, the samples of a search). Not for objects
 * with a lifetime of their own.
 *
 * Errors: NULL when the host is out of memory, and then nothing has changed.
 * Thread safety: one thread at a time per arena.
 */
#ifndef PLIM_BASE_ARENA_H
#define PLIM_BASE_ARENA_H

#include "status.h"
#include <stddef.h>

struct plim_arena_block;

/* Zeroed is empty and ready: `struct plim_arena arena = {0};` */
struct plim_arena {
    struct plim_arena_block *head; /* the block that is being filled; older ones behind it */
    size_t used_bytes;             /* handed out since the last reset, padding included */
};

/* `size` zeroed bytes, aligned for any type. A size of 0 gives a valid, unusable pointer. */
void *plim_arena_alloc(struct plim_arena *arena, size_t size) PLIM_MUST_CHECK;

/* Zeroed memory for `count` items of `size` bytes; NULL also when the product overflows. */
void *plim_arena_array(struct plim_arena *arena, size_t count, size_t size) PLIM_MUST_CHECK;

/* A terminated copy of `length` bytes of `text`. */
char *plim_arena_text(struct plim_arena *arena, const char *text, size_t length) PLIM_MUST_CHECK;

/* Gives all memory back; the arena is empty and ready again. NULL is fine. */
void plim_arena_finish(struct plim_arena *arena);

#endif
