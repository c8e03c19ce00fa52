/* The rows of a batch of pairs: all chosen completions, then all rejected ones. */
#ifndef PLIM_TRAIN_PAIRS_H
#define PLIM_TRAIN_PAIRS_H

#include "workloads/engine/ops.h"

struct pair {
    struct tensor *chosen, *rejected;
};

/* Returns x.chunk(2, dim=0), or x.split(len(x) // 2), of x (2 pairs, ..), lent; both halves are named. */
struct pair pair_of(struct engine *e, struct tensor *x);
void pair_drop(struct engine *e, struct pair p);

#endif
