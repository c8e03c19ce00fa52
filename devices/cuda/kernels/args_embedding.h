/* Arguments of EMBEDDING and EMBEDDING_BACKWARD. Strides in bytes. */
#ifndef PLIM_DEVICES_CUDA_KERNELS_ARGS_EMBEDDING_H
#define PLIM_DEVICES_CUDA_KERNELS_ARGS_EMBEDDING_H

#include "args_elementwise.h"

enum { PLIM_EMBEDDING_THREADS = 256 };

/* The gradient from sorted tokens: bits of a radix digit; values of a digit, one per thread; tokens sorted by a block;
 * tokens summed by a block. */
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

/* A pair is 64 bits: the index in the upper 32, the token in the lower 32; pairs are sorted as integers. */
struct plim_embedding_sorted_args {
    struct plim_embedding_backward_args b;
    uint64_t from, to; /* pairs, one per token; `from` 0: read the indices as given */
    uint64_t counts;   /* (tiles, digits) uint32: first the counts, then the positions they are written to */
    uint64_t partials; /* (chunks, 2, columns) fp32: sums of the segment that starts before the chunk and of the one
                        * that continues after it */
    uint32_t shift;    /* the position of the digit in an index, in bits */
    uint32_t tiles;
};

#endif
