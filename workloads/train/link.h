/* A GPU's links to the other GPUs, with a clock beside that of its kernels: an estimate.
 *
 * Transfers wait for one another, like the collectives of one communicator, and run concurrently with kernels, which
 * wait only for data that they need. In a ring of N GPUs each GPU has all of a buffer (all-gather) or its part of the
 * sum (reduce-scatter) when (N - 1) / N of the buffer have passed over each link; an all-reduce is both. If a ring
 * spans machines, the GPUs of a machine share its network bandwidth (nccl-tests, doc/PERFORMANCE.md, "Bus bandwidth").
 *
 * Times are in seconds of the device's clock plus `waited`, the time that kernels have waited for transfers, which that
 * clock does not include. */
#ifndef PLIM_TRAIN_LINK_H
#define PLIM_TRAIN_LINK_H

#include "workloads/engine/engine.h"

struct link {
    struct engine *e;
    double bytes_per_second; /* from a GPU to the next; 0: unknown, and transfers take no time */
    double latency_seconds;  /* of a pass, in addition to the bytes' time; 0: unknown */
    int64_t world;
    double free_at; /* when everything sent so far has arrived */
    double waited;
    struct tensor *barrier_tensor; /* the tensor reduced by the last barrier */
};

/* Returns the current time, or 0 if no time is measured. */
double link_now(const struct link *l);
/* Sends a buffer of `bytes` round the ring `passes` times (1; all-reduce: 2), starting at `ready` or later. Returns the
 * time of its arrival. */
double link_send(struct link *l, double ready, double bytes, int passes);
/* barrier() of the process group. The tensor that it reduces is kept until the next barrier's; takes no time. */
void link_barrier(struct engine *e, struct link *l);
/* Makes the following kernels wait for data that arrives at `arrival`. */
void link_wait(struct link *l, double arrival);

#endif
