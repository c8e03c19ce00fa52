/* A micro-step of trainers that make all logits (LLaMA-Factory's own, axolotl's DPO): its forwards of the models, and
 * the loss of their outputs. */
#ifndef PLIM_TRAIN_PASSES_H
#define PLIM_TRAIN_PASSES_H

#include "training_run.h"

/* The loss of a batch, or of an evaluation's batch (engine.evaluates); named. `reduces`: the backward that follows is
 * to reduce the gradients. `scores` (NULL: not wanted) gets the logits that PairwiseTrainer returns, named. */
struct tensor *passes_loss(struct training_run *r, const struct batch *batch, bool reduces,
                           struct tensor *scores[TRAINER_LOGITS]);

#endif
