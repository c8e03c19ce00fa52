/* LLaMA-Factory's CustomKTOTrainer (0.9.5, llamafactory/train/kto/trainer.py, with the kto_loss() of TRL 0.24, of which
 * it is one): rows that are desirable or not, of which the model and a reference make all logits, as they do of other
 * rows, of which a KL divergence is estimated. Those of each kind are copied to be measured. */
#ifndef PLIM_TRAIN_KTO_H
#define PLIM_TRAIN_KTO_H

#include "preference.h"

/* get_batch_loss_metrics(), as preference_loss() */
struct tensor *kto_loss(struct engine *e, const struct batch *batch, preference_forward *forward, void *user);

#endif
