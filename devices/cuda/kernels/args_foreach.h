/* Arguments of the kernels over lists of tensors (foreach.cu, optimizer.cu). A launch has as many tensors as fit; each
 * is divided into chunks, and a block processes one chunk.
 *
 * A tensor is a record of 64-bit words: elements, the number of chunks before it in this launch, then the address of
 * its array in every list. Arrays have no gaps, and those of a record have their elements in the same order. */
#ifndef PLIM_DEVICES_CUDA_KERNELS_ARGS_FOREACH_H
#define PLIM_DEVICES_CUDA_KERNELS_ARGS_FOREACH_H

#include "args_rows.h"

enum {
    PLIM_FOREACH_CHUNK = 65536, /* elements; also per partial sum (op.h) */
    PLIM_FOREACH_THREADS = 512,
    PLIM_FOREACH_MAX_LISTS = 5,
    PLIM_FOREACH_WORDS = 496,
    PLIM_RECORD_SIZE = 0,
    PLIM_RECORD_CHUNKS = 1,
    PLIM_RECORD_DATA = 2
};

struct plim_cuda_tensor_lists {
    uint32_t tensors, lists;
    uint32_t dtype[PLIM_FOREACH_MAX_LISTS], unused;
    uint64_t word[PLIM_FOREACH_WORDS];
};

/* foreach_map: ADD to SQRT of enum plim_foreach. foreach_unscale takes the same. */
struct plim_foreach_args {
    struct plim_cuda_tensor_lists lists;
    struct plim_cuda_flat_operand factor; /* MUL, UNSCALE; may be absent for MUL */
    struct plim_cuda_flat_operand found;  /* UNSCALE: set to 1 if something is not finite */
    uint32_t function;
    float alpha;
};

/* Lists: tensors, norms. foreach_norm_chunks: partial[first + chunk of the launch] = sum of squares.
 * foreach_norm_finish: one block per tensor adds its chunks, in a fixed order. */
struct plim_foreach_norm_args {
    struct plim_cuda_tensor_lists lists;
    uint64_t partial; /* fp32 */
    int64_t first;    /* chunks of the launches before this one */
};

#endif
