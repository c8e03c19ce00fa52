/* The speed of an all-reduce among the GPUs of one machine, measured with NCCL.
 *
 * A ring of N GPUs sends 2 (N - 1) / N of a buffer over each link. The bytes per second over a link are the bus
 * bandwidth (nccl-tests, doc/PERFORMANCE.md), which applies to other collectives as well. */
#ifndef PLIM_DEVICES_ALL_REDUCE_H
#define PLIM_DEVICES_ALL_REDUCE_H

#include "autotune/base/status.h"

/* The sizes that are measured: a small buffer, and a bucket of DistributedDataParallel (bucket_cap_mb). */
enum { PLIM_ALL_REDUCE_SMALL_BYTES = 1 << 20, PLIM_ALL_REDUCE_LARGE_BYTES = 25 << 20 };

/* An all-reduce of B bytes takes latency + 2 (N - 1) / N * B / bandwidth. Zeroed: not measured. */
struct plim_all_reduce {
    int gpus;                /* number of GPUs, at least 2 */
    double bytes_per_second; /* the bus bandwidth */
    double latency_seconds;  /* may be 0 */
    char nccl[32];           /* its version: "2.28.9" */
};

/* The measurement of this machine's GPUs. Zeroed: none was requested. */
struct plim_ring {
    struct plim_all_reduce measured; /* zeroed: not measured */
    char why_not[200]; /* why a requested measurement failed, one line; "": it did not fail */
};

/* Computes bandwidth and latency from the times of the two sizes among `gpus` GPUs. If the small size took more than
 * half of the large one's time, the two cannot be distinguished: the latency is then 0. PLIM_INVALID: fewer than 2
 * GPUs, or times that are not positive and finite. */
enum plim_status plim_all_reduce_fit(int gpus, double small_seconds, double large_seconds,
                                     struct plim_all_reduce *out) PLIM_MUST_CHECK;

#endif
