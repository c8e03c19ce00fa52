/* Arguments of EMBEDDING and EMBEDDING_BACKWARD. Strides in bytes. */
#ifndef PLIM_DEVICES_CUDA_KERNELS_ARGS_EMBEDDING_H
#define PLIM_DEVICES_CUDA_KERNELS_ARGS_EMBEDDING_H

#include "args_elementwise.h"

enum { PLIM_EMBEDDING_THREADS = 256 };

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

#endif
