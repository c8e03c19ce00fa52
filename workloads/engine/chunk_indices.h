/* The chunks of the documents of one row, as flash-linear-attention numbers them (fla/ops/utils/index.py of 0.6.0):
 * small tensors, which it caches for the last calls (tensor_cache of fla/utils/decorators.py). */
#ifndef PLIM_ENGINE_CHUNK_INDICES_H
#define PLIM_ENGINE_CHUNK_INDICES_H

#include <stdint.h>

struct engine;
struct tensor;

/* The results of a function for its last arguments, the oldest first. Zeroed: empty. */
struct memo {
    struct {
        struct tensor *argument, *result;
    } entry[4];
    int count;
};

enum { CHUNK_TOKENS = 64 };

/* Returns the number of chunks of a document of `tokens` tokens. */
static inline int64_t chunks_of_tokens(int64_t tokens)
{
    return (tokens + CHUNK_TOKENS - 1) / CHUNK_TOKENS;
}

struct chunk_memos {
    struct memo lengths, indices, offsets;
};

/* For documents with the boundaries `ends` (documents + 1) int32, lent. chunk_indices() returns for each chunk its
 * document and its index in the document, (chunks, 2) int32; chunk_offsets() the number of chunks before each document,
 * (documents + 1) int64. The same `ends` give the same tensor again. Both are named. */
struct tensor *chunk_indices(struct engine *e, struct tensor *ends, int64_t chunks);
struct tensor *chunk_offsets(struct engine *e, struct tensor *ends);

#endif
