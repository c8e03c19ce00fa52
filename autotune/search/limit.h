/* How much memory of a GPU a search may use:
 *
 *     usable = total of the GPU - memory of other processes
 *     budget = usable - framework overhead - margin */
#ifndef PLIM_AUTOTUNE_SEARCH_LIMIT_H
#define PLIM_AUTOTUNE_SEARCH_LIMIT_H

#include <stdint.h>

/* Memory of an NCCL communicator, whose buffers lie outside of the caching allocator. 512 MiB is an assumption: public
 * reports range from 0.5 GiB for 8 GPUs of one machine to 1.6 GB for one communicator (NVIDIA/nccl issues 864,
 * 1685). */
#define PLIM_COMMUNICATOR_BYTES (INT64_C(512) << 20)

struct plim_limit {
    int64_t usable_bytes, overhead_bytes, margin_bytes;
    int64_t budget_bytes;            /* may be 0 or less: nothing is left */
    int64_t overhead_measured_bytes; /* of plimsoll's worker process on this GPU; 0: not measured */
    int64_t communicator_bytes;      /* NCCL's part of the overhead, an assumption; 0: one GPU */
    int64_t vllm_bytes;              /* the part of the overhead for a vLLM in the training process that stays awake */
    int64_t vllm_awake_bytes;        /* a vLLM awake only during generation: part of the peak, not of the overhead */
    const char *overhead_source;     /* "estimate", "given", "measured" */
    char alloc_conf[256];            /* allocator options in PyTorch's syntax; "": its defaults */
};

#endif
