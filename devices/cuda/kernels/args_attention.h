/* Arguments of the attention kernels (attention.cu), for every element type and head sizes up to
 * 256. Block: PLIM_SDPA_THREADS. Grid: one block for each tile of PLIM_SDPA_TILE rows of each head of
 * each batch; rows of queries (attention, attention_dq) or of keys (attention_dkv, with the heads of
 * k). NAME_64, NAME_128, NAME_256: for head sizes up to that. */
#ifndef PLIM_DEVICES_CUDA_KERNELS_ARGS_ATTENTION_H
#define PLIM_DEVICES_CUDA_KERNELS_ARGS_ATTENTION_H

#include <stdint.h>

enum { PLIM_SDPA_TILE = 64, PLIM_SDPA_THREADS = 256, PLIM_SDPA_MAX_SIZE = 256 };

/* (batch, heads, length, size), strides in elements. `data` 0: absent. */
struct plim_cuda_heads {
    uint64_t data;
    int64_t step[4];
    uint32_t dtype;
    uint32_t vectors; /* eight neighbours of a row are contiguous and start at a multiple of 16 bytes */
};

struct plim_attention_args {
    struct plim_cuda_heads q, k, v, out, mask; /* mask: steps of 0 if it is broadcast */
    struct plim_cuda_heads dout, dq, dk, dv;   /* backward */
    struct plim_cuda_heads dmask;              /* attention_dq: the gradient of every score, or absent */
    uint64_t logsumexp;                        /* fp32 (batch, heads, q_length); in forward may be 0 */
    uint64_t ends; /* int32 (documents + 1): document i is rows ends[i] to ends[i + 1]; 0: one document */
    int64_t q_length, k_length;
    int32_t heads, sharing; /* heads of q; number of them that share one head of k and v */
    int32_t size, v_size;   /* size of a head of q and k; of v and out */
    float scale;            /* multiplies q k^T */
    float kept;             /* the factor by which dropout multiplies kept elements */
    int32_t dropout_limit;  /* plim_dropout_limit() */
    float softcap; /* 0: none */
    uint32_t causal, dropout;
    int32_t window, documents; /* window 0: none */
    uint64_t seed;
};

#endif
