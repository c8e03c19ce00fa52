/* ms-swift's ORPOTrainer and CPOTrainer (4.6, rlhf_trainers/rlhf_mixin.py; the losses are those of TRL 0.29's trainers,
 * experimental/orpo and experimental/cpo): all logits are computed, of which the chosen completions' cross entropy is a
 * part of the loss, too; there is no reference. SimPO is CPO with another margin, of means over tokens. */
#ifndef PLIM_TRAIN_SWIFT_ORPO_H
#define PLIM_TRAIN_SWIFT_ORPO_H

#include "preference.h"

/* compute_loss() of the model m. `trains` is false in an evaluation. Returns the loss, named; NULL if the engine is
 * halted. */
struct tensor *swift_orpo_loss(struct engine *e, const struct decoder *m, const struct batch *batch, bool trains,
                               preference_forward *forward, void *user);

#endif
