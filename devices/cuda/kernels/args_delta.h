/* Arguments of the gated delta rule's kernels (delta.cu, delta_backward.cu); operands have their names from op.h. All
 * arrays are contiguous. */
#ifndef PLIM_DEVICES_CUDA_KERNELS_ARGS_DELTA_H
#define PLIM_DEVICES_CUDA_KERNELS_ARGS_DELTA_H

#include "args_rows.h"

enum {
    PLIM_DELTA_CHUNK = 64,
    PLIM_DELTA_THREADS = 256,
    PLIM_DELTA_COLUMNS = 32,   /* columns of a state that one block carries from chunk to chunk */
    PLIM_DELTA_MOST_KEYS = 256 /* the largest key size for which such a block has room */
};

struct plim_delta_sizes {
    int64_t batch, seq, heads;
    int32_t key, value;
    int64_t chunks;  /* per row; with `ends`: at least the number of chunks of all documents */
    int64_t rows;    /* the batch, or the number of documents */
    uint64_t ends;   /* int32 (documents + 1), or 0 */
    int64_t places;  /* number of chunks of all rows for which the states have room */
};

/* chunk_sums: one thread per chunk and head */
struct plim_chunk_sums_args {
    struct plim_delta_sizes sizes;
    struct plim_cuda_flat_operand out, x;
    float scale;
    uint32_t backwards;
};

/* delta_inverse, delta_solve, delta_output and their gradients: one block per chunk and head. delta_states and its
 * gradient: one block per row or document, head and PLIM_DELTA_COLUMNS columns of the state. */
struct plim_delta_args {
    struct plim_delta_sizes sizes;
    struct plim_cuda_flat_operand q, k, v, w, u, g, beta, inverse, states, fresh, out;
    float alpha;
    uint32_t parts; /* of dg in delta_output_backward */
};

/* Backward: dfresh is also the gradient of u; `local` is the part of it from DELTA_OUTPUT_BACKWARD_FRESH. */
struct plim_delta_backward_args {
    struct plim_delta_args of;
    struct plim_cuda_flat_operand dout, dq, dk, dv, dw, dg, dbeta, dstates, dfresh, local;
};

#endif
