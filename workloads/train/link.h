/* A GPU's links to the others, beside the clock of its kernels: an estimate.
 *
 * Transfers wait for one another, as the collectives of one communicator do, and run beside the
 * kernels, which wait where they need what was sent. A ring of N GPUs brings each of them all of a
 * buffer (all-gather) or its part of the sum (reduce-scatter) when (N - 1) / N of the buffer have
 * passed each link; an all-reduce is both. Where a ring leaves the machine, its GPUs share what the
 * machine sends (nccl-tests, doc/PERFORMANCE.md, "Bus bandwidth").
 *
 * Times are seconds of the device's clock plus `waited`, by which the kernels came to stand later
 * than it says. */
#ifndef PLIM_TRAIN_LINK_H
#define PLIM_TRAIN_LINK_H

#include "workloads/engine/engine.h"

struct link {
    struct engine *e;
    double bytes_per_second; /* of a GPU to the next; 0: not known, and nothing takes time */
    double latency_seconds;  /* of a pass, besides its bytes; 0: not known */
    int64_t world;
    double free_at; /* when what was sent so far has arrived */
    double waited;
    struct tensor *met; /* what the last barrier sent */
};

/* Now, or 0 where no time is kept. */
double link_now(const struct link *l);
/* Sends a buffer of `bytes` round the ring `passes` times (1, an all-reduce: 2), from `ready` on; when
 * it has arrived. */
double link_send(struct link *l, double ready, double bytes, int passes);
/* barrier() of the process group: what is reduced is held until the next one is; of its wait nothing is. */
void link_meet(struct engine *e, struct link *l);
/* The kernels that follow need what arrives at `arrival`. */
void link_wait(struct link *l, double arrival);

#endif
