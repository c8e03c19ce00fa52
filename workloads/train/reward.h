/* TRL's RewardTrainer (1.16, trainer/reward_trainer.py): a classification of one label gives each row a number, its
 * reward; the loss is of what those of a pair differ by. The rows of a batch are all chosen answers, then all rejected
 * ones; nothing is known of a margin, which a data set may have. */
#ifndef PLIM_TRAIN_REWARD_H
#define PLIM_TRAIN_REWARD_H

#include "workloads/models/model.h"

/* compute_loss() of a micro-step's rewards (2 pairs, 1), lent: -logsigmoid(chosen - rejected).mean(), where
 * train.center_rewards says so with how far they lie from 0, and what is measured of them. `trains`: it is of no
 * evaluation. Named; NULL where the engine halted. */
struct tensor *reward_loss(struct engine *e, struct tensor *rewards, const struct batch *batch, const struct decoder *m,
                           bool trains);

#endif
