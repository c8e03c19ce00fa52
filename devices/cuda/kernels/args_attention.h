/* Arguments of the attention kernels (attention.cu), for every element type and head sizes up to
 * 256. Block: PLIM_SDPA_THREADS. Grid: for every head of every batch its tiles of
 * PLIM_SDPA_TILE rows: of queries (attention, attention_dq) or keys (attention_dkv, where heads
 * are those of k). NAME_64, NAME_128, NAME_256: for head sizes up to that. */
#ifndef PLIM_DEVICES_CUDA_KERNELS_ARGS_ATTENTION_H
#define PLIM_DEVICES_CUDA_KERNELS_ARGS_ATTENTION_H

#include <stdint.h>

enum { PLIM_SDPA_TILE = 64, PLIM_SDPA_THREADS = 256, PLIM_SDPA_MAX_SIZE = 256 };

/* (batch, heads, length, size), strides in elements. `data` 0: not there. */
struct plim_cuda_heads {
    uint64_t data;
    int64_t step[4];
    uint32_t dtype;
    uint32_t vectors; /* eight neighbours of a row lie together at a multiple of 16 bytes */
};

struct plim_attention_args {
    struct plim_cuda_heads q, k, v, out, mask; /* mask: steps of 0 where it broadcasts */
    struct plim_cuda_heads dout, dq, dk, dv;   /* backward */
    struct plim_cuda_heads dmask;              /* attention_dq: of all scores, or not there */
    uint64_t logsumexp;                        /* fp32 (batch, heads, q_length); forward: or 0 */
    uint64_t ends; /* int32: `documents` begin at the element of their number, and end at the next; 0: one document */
    int64_t q_length, k_length;
    int32_t heads, sharing; /* of q; how many of them share one of k and v */
    int32_t size, v_size;   /* of a head of q and k; of v and out */
    float scale;            /* of q k^T */
    float kept;             /* what dropout multiplies with what it keeps */
    int32_t dropout_limit;  /* plim_dropout_limit() */
    float softcap; /* 0: none */
    uint32_t causal, dropout;
    int32_t window, documents; /* window 0: none */
    uint64_t seed;
};

#endif
