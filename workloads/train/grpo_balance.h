/* The load-balancing loss of the experts (workloads/models/experts_balance.c) in GRPOTrainer's loss (TRL 1.16,
 * trainer/grpo_trainer.py, _compute_loss()). */
#ifndef PLIM_TRAIN_GRPO_BALANCE_H
#define PLIM_TRAIN_GRPO_BALANCE_H

#include "workloads/models/model.h"

/* Returns torch.stack([aux_loss]).mean(), named; aux_loss is a scalar that the head returned, lent. */
struct tensor *grpo_balance_mean(struct engine *e, struct tensor *aux_loss);
/* Replaces a micro-step's *loss, named, by loss + coefficient * mean / accumulation, and logs it; `mean` is a scalar,
 * lent. */
void grpo_balance_add(struct engine *e, const struct decoder *model, struct tensor *mean, struct tensor **loss);

#endif
