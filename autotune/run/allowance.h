/* How much of a GPU may be used: the user's options, and the memory that PyTorch takes besides its allocator. */
#ifndef PLIM_AUTOTUNE_RUN_ALLOWANCE_H
#define PLIM_AUTOTUNE_RUN_ALLOWANCE_H

#include "autotune/search/limit.h"
#include <stdbool.h>

struct plim_allowance {
    bool overhead_given;
    int64_t overhead_bytes; /* used if overhead_given */
    bool margin_given;
    double margin_share;    /* of the usable memory; used if margin_bytes is negative */
    int64_t margin_bytes;   /* memory that stays free; negative: use margin_share */
    const char *alloc_conf; /* allocator options in PyTorch's syntax; "" or NULL: its defaults */
};

#define PLIM_ALLOWANCE_DEFAULT                                                                     \
    (struct plim_allowance)                                                                        \
    {                                                                                              \
        .margin_share = 0.05, .margin_bytes = -1                                                   \
    }

/* Estimates the GPU memory that a PyTorch training process takes outside of the caching allocator, in bytes. */
int64_t plim_overhead_estimate(int compute_capability);
/* Estimates the part of it that a process takes before it has loaded a kernel. */
int64_t plim_context_estimate(int compute_capability);

/* Returns the memory limit that follows from the allowance. Unless given, the overhead is the larger of the estimate
 * and the measurement (0: not measured). */
struct plim_limit plim_allowance_limit(const struct plim_allowance *allowance, int64_t usable_bytes,
                                       int64_t estimate_bytes, int64_t measured_bytes);

/* Reserves memory in the limit for one more NCCL communicator (PLIM_COMMUNICATOR_BYTES), unless the overhead was
 * given. */
void plim_allowance_add_communicator(const struct plim_allowance *allowance,
                                     struct plim_limit *limit);

#endif
