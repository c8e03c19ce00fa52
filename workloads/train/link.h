/* A GPU's links to the others, beside the clock of its kernels: an estimate.
 *
 * Transfers wait for one another, as the collectives of one communicator do, and run concurrently with
 * kernels, which wait only for data that they need. In a ring of N GPUs each has all of a
 * buffer (all-gather) or its part of the sum (reduce-scatter) when (N - 1) / N of the buffer have
 * passed each link; an all-reduce is both. Where a ring leaves the machine, its GPUs share the bandwidth
 * of the machine (nccl-tests, doc/PERFORMANCE.md, "Bus bandwidth").
 *
 * Times are seconds of the device's clock plus `waited`, the time that kernels have waited for
 * transfers, which the clock leaves out. */
#ifndef PLIM_TRAIN_LINK_H
#define PLIM_TRAIN_LINK_H

#include "workloads/engine/engine.h"

struct link {
    struct engine *e;
    double bytes_per_second; /* of a GPU to the next; 0: not known, and nothing takes time */
    double latency_seconds;  /* of a pass, besides its bytes; 0: not known */
    int64_t world;
    double free_at; /* when all that was sent so far has arrived */
    double waited;
    struct tensor *met; /* the tensor that the last barrier reduced */
};

/* Now, or 0 where no time is kept. */
double link_now(const struct link *l);
/* Sends a buffer of `bytes` round the ring `passes` times (1, an all-reduce: 2), from `ready` on; returns
 * the time of its arrival. */
double link_send(struct link *l, double ready, double bytes, int passes);
/* barrier() of the process group: the tensor that it reduces is held until the next barrier's; no time passes. */
void link_meet(struct engine *e, struct link *l);
/* The kernels that follow wait for data that arrives at `arrival`. */
void link_wait(struct link *l, double arrival);

#endif
