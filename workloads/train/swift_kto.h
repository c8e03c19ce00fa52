/* ms-swift's KTOTrainer (4.6, rlhf_trainers/kto_trainer.py, a subclass of TRL 0.29's trainer, whose kto_loss() it
 * uses): the rows from which the KL divergence is estimated come first, and the logits of a row are summed up. */
#ifndef PLIM_TRAIN_SWIFT_KTO_H
#define PLIM_TRAIN_SWIFT_KTO_H

#include "preference.h"

/* get_batch_loss_metrics() of the model m. Returns the loss, named; NULL if the engine is halted. */
struct tensor *swift_kto_loss(struct engine *e, const struct decoder *m, const struct batch *batch,
                              preference_forward *forward, void *user);

#endif
