/* Shapes of the attention kernels on tensor cores (flash.cu, flash_backward.cu), whose arguments are those of
 * args_attention.h. Operands have one type; their rows are multiples of 16 bytes.
 *
 * A block has 32 * `warps` threads and a tile of 16 rows per warp: of queries (flash, flash_dq), or of keys (flash_dkv,
 * with the heads of k). It loops over the keys, `keys` at a time, or over the queries, `queries` at a time; `stages`
 * tiles of these are in shared memory or being copied there. */
#ifndef PLIM_DEVICES_CUDA_KERNELS_ARGS_FLASH_H
#define PLIM_DEVICES_CUDA_KERNELS_ARGS_FLASH_H

#include "args_attention.h"

/* X(type, bytes of an element, head sizes up to, warps, keys, keys of flash_dq, queries, stages, wide, columns)
 *
 * A block writes `wide` columns of out or dq, and flash_dkv `columns` of dk and dv; blockIdx.y says which.
 * Each block recomputes the scores of its rows: there are fewer columns where accumulators would fill the registers. */
#define PLIM_FLASH_MAP(X)                                                                          \
    X(bf16, 2, 64, 4, 64, 64, 64, 2, 64, 64)                                                       \
    X(bf16, 2, 128, 4, 64, 32, 32, 2, 128, 128)                                                    \
    X(bf16, 2, 256, 4, 16, 16, 16, 2, 256, 128)                                                    \
    X(fp16, 2, 64, 4, 64, 64, 64, 2, 64, 64)                                                       \
    X(fp16, 2, 128, 4, 64, 32, 32, 2, 128, 128)                                                    \
    X(fp16, 2, 256, 4, 16, 16, 16, 2, 256, 128)                                                    \
    X(tf32, 4, 64, 4, 32, 32, 32, 2, 64, 64)                                                       \
    X(tf32, 4, 128, 4, 16, 16, 16, 2, 128, 64)                                                     \
    X(tf32, 4, 256, 2, 16, 16, 16, 1, 128, 64)                                                     \
    X(turing, 2, 64, 4, 64, 64, 32, 2, 64, 64)                                                     \
    X(turing, 2, 128, 4, 64, 32, 16, 2, 128, 128)                                                  \
    X(turing, 2, 256, 2, 16, 16, 16, 1, 256, 128)

/* The lowest compute capability for which a type is compiled. turing is fp16 with the instructions of 7.5, which has 64
 * KiB of shared memory per block; it is compiled only for 7.5. */
enum {
    PLIM_FLASH_CAPABILITY_bf16 = 80,
    PLIM_FLASH_CAPABILITY_fp16 = 80,
    PLIM_FLASH_CAPABILITY_tf32 = 80,
    PLIM_FLASH_CAPABILITY_turing = 75
};

enum { PLIM_FLASH_SUMS_THREADS = 256, PLIM_FLASH_SUMS_LANES = 8 }; /* threads of a block, and of a row */

struct plim_flash_args {
    struct plim_attention_args attention;
    uint64_t sums; /* backward: fp32 (batch, heads, q_length), the sums of the rows of dout * out */
    int64_t batch;
};

#endif
