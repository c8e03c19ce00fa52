/* Metrics of a micro-step over all ranks in TRL's trainers: accelerate's gather(), and the host's reads. */
#ifndef PLIM_TRAIN_MEASURES_H
#define PLIM_TRAIN_MEASURES_H

#include "workloads/engine/ops.h"

/* x.sum() of booleans or integers, over the dimensions of x (at most two), lent: an int64, named */
struct tensor *measures_count(struct engine *e, struct tensor *x);
/* x, lent, folded over all of its dimensions, or its mean: a scalar of its type, named */
struct tensor *measures_fold(struct engine *e, struct tensor *x, enum plim_binary fold);
struct tensor *measures_mean(struct engine *e, struct tensor *x);
/* total / number, of the same shape, lent: in the type of the total, or fp32 where that is an integer; named */
struct tensor *measures_quotient(struct engine *e, struct tensor *total, struct tensor *number);
/* accelerator.gather(x), x (n) lent: the x of all `world` ranks (world n), named; x itself for one rank. NULL where the
 * engine is halted. The other ranks are assumed to have the same values. */
struct tensor *measures_gather(struct engine *e, struct tensor *x, int64_t world);
/* accelerator.gather(x).sum(), x a scalar, taken; x itself for one rank. Named */
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
/* (total / number).item(), where the host has tested the number before */
void measures_read_quotient(struct engine *e, struct tensor *total, struct tensor *number);

#endif
