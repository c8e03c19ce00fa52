/* How fast GPUs of one machine add up what each of them has: an all-reduce, measured with NCCL.
 *
 * Of N GPUs a ring sends 2 (N - 1) / N of a buffer over each link, whatever N is: the bytes a second of
 * that are the bus bandwidth (nccl-tests, doc/PERFORMANCE.md), which other collectives have as well.
 */
#ifndef PLIM_DEVICES_ALL_REDUCE_H
#define PLIM_DEVICES_ALL_REDUCE_H

#include "autotune/base/status.h"

/* What is reduced: a small buffer, and a bucket of DistributedDataParallel (bucket_cap_mb). */
enum { PLIM_ALL_REDUCE_SMALL_BYTES = 1 << 20, PLIM_ALL_REDUCE_LARGE_BYTES = 25 << 20 };

/* Of an all-reduce of B bytes: latency + 2 (N - 1) / N * B / bandwidth. Zeroed: not measured. */
struct plim_all_reduce {
    int gpus;                /* that took part, at least 2 */
    double bytes_per_second; /* the bus bandwidth */
    double latency_seconds;  /* may be 0 */
    char nccl[32];           /* its version: "2.28.9" */
};

/* What was found out about the GPUs of this machine. Zeroed: nothing was asked of them. */
struct plim_ring {
    struct plim_all_reduce measured; /* zeroed: it was not */
    char why_not[200]; /* where it was to be measured and was not: one line; "": it is not so */
};

/* The two numbers from what the two sizes took among `gpus`. Where the small one took more than half of
 * the large one's time they do not tell one from the other: it is all bandwidth then. PLIM_INVALID:
 * these are no times. */
enum plim_status plim_all_reduce_fit(int gpus, double small_seconds, double large_seconds,
                                     struct plim_all_reduce *out) PLIM_MUST_CHECK;

#endif
