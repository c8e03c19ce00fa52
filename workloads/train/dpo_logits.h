/* axolotl's AxolotlDPOTrainer (0.19, core/trainers/dpo/trainer.py), which is based on the DPOTrainer of TRL 1.9
 * (trainer/dpo_trainer.py): an older version of that of dpo.h, without a head of its own, so all logits are
 * materialised in fp32. The reference's logits are kept until all metrics are computed. Cached memory is freed after
 * each micro-step. */
#ifndef PLIM_TRAIN_DPO_LOGITS_H
#define PLIM_TRAIN_DPO_LOGITS_H

#include "preference.h"

/* _compute_loss() of the model m. `trains` is false in an evaluation. Returns the loss, named; NULL if the engine is
 * halted. */
struct tensor *dpo_logits_loss(struct engine *e, const struct decoder *m, const struct batch *batch, bool trains,
                               preference_forward *forward, void *user);

#endif
