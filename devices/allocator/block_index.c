/* Bins of sorted lists; see block_index.h. */
#include "block_index.h"

#define NO_BIN PLIM_BIN_COUNT

/* Sizes are multiples of 512. The first bins hold one size each; above them a bin is determined by the highest bit of
 * the size and the three bits below it. */
static size_t bin_of(int64_t size)
{
    uint64_t units = (uint64_t)size / 512;
    if (units < PLIM_BIN_STEPS) return units;
    unsigned shift = 63u - 3u - (unsigned)__builtin_clzll(units);
    return shift * PLIM_BIN_STEPS + (units >> shift);
}

/* Returns the first bin in use at or after `bin`. */
static size_t bin_from(const struct plim_block_index *index, size_t bin)
{
    size_t word = bin / 64;
    if (bin >= PLIM_BIN_COUNT) return NO_BIN;
    uint64_t bits = index->used[word] & (~(uint64_t)0 << bin % 64);
    while (!bits) {
        if (++word == PLIM_BIN_WORDS) return NO_BIN;
        bits = index->used[word];
    }
    return word * 64 + (size_t)__builtin_ctzll(bits);
}

static struct plim_block *first_from(const struct plim_block_index *index, size_t bin)
{
    bin = bin_from(index, bin);
    return bin == NO_BIN ? NULL : index->bins[bin].first;
}

static struct plim_block *last_before(const struct plim_block_index *index, size_t bin)
{
    while (bin-- > 0)
        if (index->bins[bin].last) return index->bins[bin].last;
    return NULL;
}

static bool is_before(const struct plim_block *a, const struct plim_block *b)
{
    return a->size < b->size || (a->size == b->size && a->address < b->address);
}

/* Blocks of one size are often freed in the order of their addresses, so the end of the list is
 * tried first. */
void plim_block_index_insert(struct plim_block_index *index, struct plim_block *block)
{
    size_t bin = bin_of(block->size);
    struct plim_block *left = index->bins[bin].last, *right = NULL;
    if (left && is_before(block, left)) {
        left = NULL;
        right = index->bins[bin].first;
        for (; is_before(right, block); right = right->free_next) left = right;
    }
    block->free_prev = left;
    block->free_next = right;
    if (left) left->free_next = block;
    else index->bins[bin].first = block;
    if (right) right->free_prev = block;
    else index->bins[bin].last = block;
    index->used[bin / 64] |= (uint64_t)1 << bin % 64;
}

void plim_block_index_remove(struct plim_block_index *index, struct plim_block *block)
{
    struct plim_block *left = block->free_prev, *right = block->free_next;
    if (left && right) {
        left->free_next = right;
        right->free_prev = left;
        return;
    }
    size_t bin = bin_of(block->size);
    if (left) left->free_next = right;
    else index->bins[bin].first = right;
    if (right) right->free_prev = left;
    else index->bins[bin].last = left;
    if (!left && !right) index->used[bin / 64] &= ~((uint64_t)1 << bin % 64);
}

struct plim_block *plim_block_index_find(const struct plim_block_index *index, int64_t size)
{
    size_t bin = bin_of(size);
    for (struct plim_block *block = index->bins[bin].first; block; block = block->free_next)
        if (block->size >= size) return block;
    return first_from(index, bin + 1);
}

struct plim_block *plim_block_index_next(const struct plim_block_index *index,
                                         const struct plim_block *block)
{
    return block->free_next ? block->free_next : first_from(index, bin_of(block->size) + 1);
}

struct plim_block *plim_block_index_previous(const struct plim_block_index *index,
                                             const struct plim_block *block)
{
    return block->free_prev ? block->free_prev : last_before(index, bin_of(block->size));
}

struct plim_block *plim_block_index_last(const struct plim_block_index *index)
{
    return last_before(index, PLIM_BIN_COUNT);
}
