/* Arguments of EMBEDDING and EMBEDDING_BACKWARD. Strides in bytes. */
#ifndef PLIM_DEVICES_CUDA_KERNELS_ARGS_EMBEDDING_H
#define PLIM_DEVICES_CUDA_KERNELS_ARGS_EMBEDDING_H

#include "args_elementwise.h"

enum { PLIM_EMBEDDING_THREADS = 256 };

/* Of the gradient by sorted tokens: bits and values of a digit, one value a thread; tokens that a block
 * sorts, and that a block sums. */
enum {
    PLIM_EMBEDDING_DIGIT_BITS = 8,
    PLIM_EMBEDDING_DIGITS = PLIM_EMBEDDING_THREADS,
    PLIM_EMBEDDING_TILE = 16 * PLIM_EMBEDDING_THREADS,
    PLIM_EMBEDDING_CHUNK = 32
};

/* The table: a matrix of `rows` x `columns`. */
struct plim_embedding_args {
    struct plim_walk walk; /* out, indices; looked up by two indices: out, i, j */
    uint64_t table;
    int64_t table_stride[2];
    uint64_t rows, columns;
    uint8_t table_dtype;
};

/* dweight is the table. The walk: dout, indices; dimension 0 is the width. */
struct plim_embedding_backward_args {
    struct plim_embedding_args e;
    uint64_t tokens;
};

/* Pairs are 64 bits, in an order by the upper 32, the index, and then by the lower, the token. */
struct plim_embedding_sorted_args {
    struct plim_embedding_backward_args b;
    uint64_t from, to; /* pairs, a token each; `from` 0: the indices as they were given */
    uint64_t counts;   /* (tiles, digits) uint32: how many there are, then where they go */
    uint64_t partials; /* (chunks, 2, columns) fp32: of the segments that began before the chunk and that
                          go on behind it */
    uint32_t shift;    /* of the digit in an index */
    uint32_t tiles;
};

#endif
