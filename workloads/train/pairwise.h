/* LLaMA-Factory's PairwiseTrainer (0.9.5, llamafactory/train/rm/trainer.py): of each row of a pair the value head's
 * number (workloads/models/value_head.c) of its last token, and the loss of the two. */
#ifndef PLIM_TRAIN_PAIRWISE_H
#define PLIM_TRAIN_PAIRWISE_H

#include "pairs.h"

/* compute_loss() of what the model returned, values (2 pairs, S) fp32, and the attention mask (2 pairs, S) int64, lent;
 * named, and the scores of the pairs, named. NULL where the engine halted */
struct tensor *pairwise_loss(struct engine *e, struct tensor *values, struct tensor *mask, struct pair *scores);

#endif
