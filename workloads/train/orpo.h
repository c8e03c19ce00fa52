/* TRL's ORPOTrainer and CPOTrainer (1.16, experimental/orpo and experimental/cpo), and ms-swift's (4.6,
 * rlhf_trainers/rlhf_mixin.py; TRL 0.29): all logits are computed, of which the chosen completions' cross entropy is a
 * part of the loss, too; there is no reference. SimPO is CPO with another margin, of means over tokens. TRL's newer
 * trainers concatenate the rows of a pair on the GPU, and compute log-probabilities by a kernel of its own. */
#ifndef PLIM_TRAIN_ORPO_H
#define PLIM_TRAIN_ORPO_H

#include "preference.h"

/* compute_loss() of the model m. `trains` is false in an evaluation. Returns the loss, named; NULL if the engine is
 * halted. */
struct tensor *orpo_loss(struct engine *e, const struct decoder *m, const struct batch *batch, bool trains,
                         preference_forward *forward, void *user);

#endif
