/* The chunks of the documents of one row, as flash-linear-attention counts them (fla/ops/utils/index.py of 0.6.0):
 * small tensors, which it keeps of the last calls (tensor_cache of fla/utils/decorators.py). */
#ifndef PLIM_ENGINE_CHUNK_INDICES_H
#define PLIM_ENGINE_CHUNK_INDICES_H

#include <stdint.h>

struct engine;
struct tensor;

/* What a function has returned for its last arguments, the oldest first. Zeroed: nothing. */
struct memo {
    struct {
        struct tensor *argument, *result;
    } entry[4];
    int count;
};

enum { CHUNK_TOKENS = 64 };

/* Of so many tokens of a document */
static inline int64_t chunks_of_tokens(int64_t tokens)
{
    return (tokens + CHUNK_TOKENS - 1) / CHUNK_TOKENS;
}

struct chunk_memos {
    struct memo lengths, indices, offsets;
};

/* Of documents that end where `ends` (documents + 1) int32 says, lent: which document a chunk is of and which of its
 * chunks it is, (chunks, 2) int32; and how many chunks lie before each document, (documents + 1) int64. The same tensor
 * for the same `ends` again. Both named, for the caller to drop. */
struct tensor *chunk_indices(struct engine *e, struct tensor *ends, int64_t chunks);
struct tensor *chunk_offsets(struct engine *e, struct tensor *ends);

#endif
