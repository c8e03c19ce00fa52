/* A micro-step of trainers that make all logits (LLaMA-Factory's own, axolotl's DPO): its passes over the models, and
 * the loss of what they return. */
#ifndef PLIM_TRAIN_PASSES_H
#define PLIM_TRAIN_PASSES_H

#include "training_run.h"

/* Of a batch, or of an evaluation's (engine.evaluates); named. `reduces`: the backward that follows is to reduce the
 * gradients. scores (NULL: nobody asks) get what PairwiseTrainer returns, named. */
struct tensor *passes_loss(struct training_run *r, const struct batch *batch, bool reduces,
                           struct tensor *scores[TRAINER_LOGITS]);

#endif
