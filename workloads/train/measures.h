/* What TRL's trainers measure of a micro-step, of all ranks: accelerate's gather(), and what the host reads. */
#ifndef PLIM_TRAIN_MEASURES_H
#define PLIM_TRAIN_MEASURES_H

#include "workloads/engine/ops.h"

/* x.sum() of booleans or integers, over the dimensions of x (at most two), lent: an int64, named */
struct tensor *measures_count(struct engine *e, struct tensor *x);
/* accelerator.gather(x), x (n) lent: of all `world` ranks (world n), named; of one rank it is x. NULL where the engine
 * is halted. */
struct tensor *measures_gather(struct engine *e, struct tensor *x, int64_t world);
/* accelerator.gather(x).sum(), or mean(), x a scalar, taken; of one rank it is x again. Named */
struct tensor *measures_sum_of_ranks(struct engine *e, struct tensor *x, int64_t world);
/* (x > 0).item() */
void measures_read_whether(struct engine *e, struct tensor *x);
/* (sum / number).item() if number > 0: a mean of type `dtype` */
void measures_read_mean(struct engine *e, struct tensor *number, enum plim_dtype dtype);
/* The mean alone, where its number was asked for before */
void measures_read_quotient(struct engine *e, enum plim_dtype dtype);

#endif
