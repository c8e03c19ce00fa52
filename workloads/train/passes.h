/* A micro-step of trainers that run several forwards or materialise all logits (LLaMA-Factory's trainers, axolotl's
 * DPO, ms-swift's `swift rlhf`, TRL's KTOTrainer): the forwards of the models, and the loss of their outputs. */
#ifndef PLIM_TRAIN_PASSES_H
#define PLIM_TRAIN_PASSES_H

#include "training_run.h"

/* Returns the loss of a batch, or of an evaluation's batch (engine.evaluates), named. `reduces`: the following backward
 * reduces the gradients. `scores` (may be NULL) receives the logits that PairwiseTrainer returns, named. */
struct tensor *passes_loss(struct training_run *r, const struct batch *batch, bool reduces,
                           struct tensor *scores[TRAINER_LOGITS]);

#endif
