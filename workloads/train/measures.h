/* Metrics of a micro-step over all ranks in TRL's trainers: accelerate's gather(), and reads by the host. */
#ifndef PLIM_TRAIN_MEASURES_H
#define PLIM_TRAIN_MEASURES_H

#include "workloads/engine/ops.h"

/* x.sum() of booleans or integers over all dimensions of x (at most two), lent. Returns an int64 scalar, named. */
struct tensor *measures_count(struct engine *e, struct tensor *x);
/* Reduces all dimensions of x, lent, by `fold`, or to the mean. Returns a scalar of x's type, named. */
struct tensor *measures_fold(struct engine *e, struct tensor *x, enum plim_binary fold);
struct tensor *measures_mean(struct engine *e, struct tensor *x);
/* Returns total / number, both of the same shape and lent, in the type of the total, or fp32 if that is an integer;
 * named. */
struct tensor *measures_quotient(struct engine *e, struct tensor *total, struct tensor *number);
/* accelerator.gather(x) of x (n), lent. Returns the x of all `world` ranks (world n), named; x itself on one rank; NULL
 * if the engine is halted. The other ranks are assumed to have the same values. */
struct tensor *measures_gather(struct engine *e, struct tensor *x, int64_t world);
/* accelerator.gather(x).sum() of a scalar x, taken; x itself on one rank. Named. */
struct tensor *measures_sum_of_ranks(struct engine *e, struct tensor *x, int64_t world);
/* x.item() of a scalar, taken. */
void measures_read(struct engine *e, struct tensor *x);
/* x.mean().item() of one rank, x lent or floating */
void measures_read_own_mean(struct engine *e, struct tensor *x);
/* accelerator.gather(x).mean().item() */
void measures_read_gathered_mean(struct engine *e, struct tensor *x, int64_t world);
/* accelerator.gather_for_metrics(x.nansum()).nansum().item() */
void measures_read_nansum(struct engine *e, struct tensor *x, int64_t world);
/* accelerator.gather_for_metrics(x).sum().item() of a scalar x, taken */
void measures_read_sum(struct engine *e, struct tensor *x, int64_t world);
/* accelerator.gather_for_metrics(mask.sum()).sum().item(), mask (rows, tokens) */
void measures_read_tokens(struct engine *e, struct tensor *mask, int64_t world);
/* (x > 0).item() */
void measures_read_whether(struct engine *e, struct tensor *x);
/* (total / number).item() if number > 0, both scalars */
void measures_read_mean(struct engine *e, struct tensor *total, struct tensor *number);
/* (total / number).item(), where the host has tested the number before */
void measures_read_quotient(struct engine *e, struct tensor *total, struct tensor *number);

#endif
