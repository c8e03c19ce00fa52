/* TRL's RewardTrainer (1.16, trainer/reward_trainer.py): a classifier with one label gives each row a number, its
 * reward; the loss depends on the difference of a pair's rewards. The rows of a batch are all chosen completions, then
 * all rejected ones; a margin, which a data set may have, is not modelled. */
#ifndef PLIM_TRAIN_REWARD_H
#define PLIM_TRAIN_REWARD_H

#include "workloads/models/model.h"

/* compute_loss() of a micro-step's rewards (2 pairs, 1), lent: -logsigmoid(chosen - rejected).mean(), with
 * train.center_rewards plus a term that pulls rewards to 0; also computes the metrics. `trains` is false in an
 * evaluation. Returns the loss, named; NULL if the engine is halted. */
struct tensor *reward_loss(struct engine *e, struct tensor *rewards, const struct batch *batch, const struct decoder *m,
                           bool trains);

/* The same by ms-swift's RewardTrainer (4.6, rlhf_trainers/reward_trainer.py), whose metrics are those of one rank. */
struct tensor *swift_reward_loss(struct engine *e, struct tensor *rewards, const struct decoder *m);

#endif
