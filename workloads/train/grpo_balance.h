/* The load-balancing loss of the experts (workloads/models/experts_balance.c) in GRPOTrainer's loss (TRL 1.16,
 * trainer/grpo_trainer.py, _compute_loss()). */
#ifndef PLIM_TRAIN_GRPO_BALANCE_H
#define PLIM_TRAIN_GRPO_BALANCE_H

#include "workloads/models/model.h"

/* torch.stack([aux_loss]).mean() of what the head returned, a scalar, lent; named */
struct tensor *grpo_balance_mean(struct engine *e, struct tensor *aux_loss);
/* Adds the mean, a scalar, lent, to a micro-step's *loss, named: loss + coefficient * mean / accumulation; logs it. */
void grpo_balance_add(struct engine *e, const struct decoder *model, struct tensor *mean, struct tensor **loss);

#endif
