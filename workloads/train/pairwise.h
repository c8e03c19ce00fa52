/* LLaMA-Factory's PairwiseTrainer (0.9.5, llamafactory/train/rm/trainer.py): each row of a pair is scored by the value
 * head's output (workloads/models/value_head.c) at its last token; the loss compares the two scores. */
#ifndef PLIM_TRAIN_PAIRWISE_H
#define PLIM_TRAIN_PAIRWISE_H

#include "pairs.h"

/* compute_loss() of the model's output, values (2 pairs, S) fp32, and the attention mask (2 pairs, S) int64, both lent.
 * Returns the loss, named, and stores the scores of the pairs in *scores, named. NULL if the engine is halted. */
struct tensor *pairwise_loss(struct engine *e, struct tensor *values, struct tensor *mask, struct pair *scores);

#endif
