/* How much of a GPU a search may use, and why (design section 3):
 *
 *     usable = total of the GPU - what other processes hold
 *     budget = usable - framework overhead - margin
 */
#ifndef PLIM_AUTOTUNE_SEARCH_LIMIT_H
#define PLIM_AUTOTUNE_SEARCH_LIMIT_H

#include <stdint.h>

/* A communicator of NCCL's among several GPUs: its buffers lie outside of the caching allocator. 512 MiB is an
 * assumption: public reports go from 0.5 GiB for 8 GPUs of one machine to 1.6 GB for one communicator
 * (NVIDIA/nccl issues 864, 1685). */
#define PLIM_COMMUNICATOR_BYTES (INT64_C(512) << 20)

struct plim_limit {
    int64_t usable_bytes, overhead_bytes, margin_bytes;
    int64_t budget_bytes;            /* 0 or less is a real answer: nothing is left */
    int64_t overhead_measured_bytes; /* by our own process on this GPU; 0: was not measured */
    int64_t communicator_bytes;      /* of the overhead: NCCL's, an assumption; 0: one GPU */
    int64_t vllm_bytes;              /* of the overhead: of a vLLM in the process of the training */
    int64_t vllm_awake_bytes;        /* of one that sleeps but in a generation, where it is in the peak; no overhead */
    const char *overhead_source;     /* "estimate", "given", "measured" */
    char alloc_conf[256];            /* allocator options in PyTorch's syntax; "": its defaults */
};

#endif
