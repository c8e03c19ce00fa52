/* ms-swift's DPOTrainer (4.6, rlhf_trainers/dpo_trainer.py and rlhf_mixin.py; TRL 0.29): logits are computed from a
 * pair's first label on, and a token's log-probability is that of TRL's selective_log_softmax(). The reference is a
 * model of its own, loaded before the other, or with adapters the model without them. */
#ifndef PLIM_TRAIN_SWIFT_DPO_H
#define PLIM_TRAIN_SWIFT_DPO_H

#include "preference.h"

/* compute_loss() of the model m. `trains` is false in an evaluation. Returns the loss, named; NULL if the engine is
 * halted. */
struct tensor *swift_dpo_loss(struct engine *e, const struct decoder *m, const struct batch *batch, bool trains,
                              preference_forward *forward, void *user);

#endif
