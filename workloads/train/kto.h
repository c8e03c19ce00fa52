/* LLaMA-Factory's CustomKTOTrainer (0.9.5, llamafactory/train/kto/trainer.py, a subclass of TRL 0.24's trainer, whose
 * kto_loss() it uses): each row is desirable or undesirable. The model and a reference compute all logits of these
 * rows, and of other rows for an estimate of the KL divergence. The logits of each kind are copied for the metrics. */
#ifndef PLIM_TRAIN_KTO_H
#define PLIM_TRAIN_KTO_H

#include "preference.h"

/* get_batch_loss_metrics(); see preference_loss(). */
struct tensor *kto_loss(struct engine *e, const struct batch *batch, preference_forward *forward, void *user);

#endif
