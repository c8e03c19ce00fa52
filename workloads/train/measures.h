/* What TRL's trainers measure of a micro-step, of all ranks: accelerate's gather(), and what the host reads. */
#ifndef PLIM_TRAIN_MEASURES_H
#define PLIM_TRAIN_MEASURES_H

#include "workloads/engine/ops.h"

/* x.sum() of booleans or integers, over the dimensions of x (at most two), lent: an int64, named */
struct tensor *measures_count(struct engine *e, struct tensor *x);
/* x, lent, folded over all of its dimensions, or its mean: a scalar of its type, named */
struct tensor *measures_fold(struct engine *e, struct tensor *x, enum plim_binary fold);
struct tensor *measures_mean(struct engine *e, struct tensor *x);
/* total / number of one shape, lent: in the type of the total, or fp32 where that is an integer; named */
struct tensor *measures_quotient(struct engine *e, struct tensor *total, struct tensor *number);
/* accelerator.gather(x), x (n) lent: of all `world` ranks (world n), named; of one rank it is x. NULL where the engine
 * is halted. The others are taken to have the same as this one. */
struct tensor *measures_gather(struct engine *e, struct tensor *x, int64_t world);
/* accelerator.gather(x).sum(), or mean(), x a scalar, taken; of one rank it is x again. Named */
struct tensor *measures_sum_of_ranks(struct engine *e, struct tensor *x, int64_t world);
/* x.item(), a scalar, taken */
void measures_read(struct engine *e, struct tensor *x);
/* accelerator.gather(x).mean().item() */
void measures_read_gathered_mean(struct engine *e, struct tensor *x, int64_t world);
/* accelerator.gather_for_metrics(mask.sum()).sum().item(), mask (rows, tokens) */
void measures_read_tokens(struct engine *e, struct tensor *mask, int64_t world);
/* (x > 0).item() */
void measures_read_whether(struct engine *e, struct tensor *x);
/* (total / number).item() if number > 0, both scalars */
void measures_read_mean(struct engine *e, struct tensor *total, struct tensor *number);
/* The mean alone, where its number was asked for before */
void measures_read_quotient(struct engine *e, struct tensor *total, struct tensor *number);

#endif
