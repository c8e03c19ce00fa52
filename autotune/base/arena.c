#include "arena.h"

#include <stdalign.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct plim_arena_block {
    struct plim_arena_block *next;
    size_t capacity, used; /* in bytes, without the header */
    alignas(max_align_t) unsigned char bytes[];
};

/* Blocks double, so that a small document costs little and a large one few calls. */
enum { FIRST_BLOCK_BYTES = 4 << 10, LARGEST_BLOCK_BYTES = 1 << 20 };

static struct plim_arena_block *block_new(const struct plim_arena_block *previous, size_t needed)
{
    size_t capacity = previous ? previous->capacity * 2 : FIRST_BLOCK_BYTES;
    if (capacity > LARGEST_BLOCK_BYTES) capacity = LARGEST_BLOCK_BYTES;
    if (capacity < needed) capacity = needed;
    if (capacity > PTRDIFF_MAX - sizeof(struct plim_arena_block)) return NULL;

    struct plim_arena_block *block = malloc(sizeof(*block) + capacity);
    if (!block) return NULL;
    block->next = NULL;
    block->capacity = capacity;
    block->used = 0;
    return block;
}

void *plim_arena_alloc(struct plim_arena *arena, size_t size)
{
    const size_t mask = alignof(max_align_t) - 1;
    if (size > SIZE_MAX - mask) return NULL;
    size_t padded = (size + mask) & ~mask;
    if (padded == 0) padded = mask + 1;

    struct plim_arena_block *block = arena->head;
    if (!block || block->capacity - block->used < padded) {
        block = block_new(arena->head, padded);
        if (!block) return NULL;
        block->next = arena->head;
        arena->head = block;
    }
    void *memory = block->bytes + block->used;
    block->used += padded;
    arena->used_bytes += padded;
    return memset(memory, 0, padded);
}

void *plim_arena_array(struct plim_arena *arena, size_t count, size_t size)
{
    if (size != 0 && count > SIZE_MAX / size) return NULL;
    return plim_arena_alloc(arena, count * size);
}

char *plim_arena_text(struct plim_arena *arena, const char *text, size_t length)
{
    if (length == SIZE_MAX) return NULL;
    char *copy = plim_arena_alloc(arena, length + 1);
    if (copy && length) memcpy(copy, text, length);
    return copy;
}

static void blocks_free(struct plim_arena_block *block)
{
    while (block) {
        struct plim_arena_block *next = block->next;
        free(block);
        block = next;
    }
}

void plim_arena_finish(struct plim_arena *arena)
{
    if (!arena) return;
    blocks_free(arena->head);
    *arena = (struct plim_arena){0};
}
