/* axolotl's AxolotlDPOTrainer (0.19, core/trainers/dpo/trainer.py), which is the DPOTrainer of TRL 1.9
 * (trainer/dpo_trainer.py): that of dpo.h before it had a head of its own, so that all logits are made in fp32. Those
 * of the reference live until all metrics are computed. After each micro-step it frees cached memory. */
#ifndef PLIM_TRAIN_DPO_LOGITS_H
#define PLIM_TRAIN_DPO_LOGITS_H

#include "preference.h"

/* _compute_loss() of the model m. `trains`: not in an evaluation. Named; NULL where the engine halted */
struct tensor *dpo_logits_loss(struct engine *e, const struct decoder *m, const struct batch *batch, bool trains,
                               preference_forward *forward, void *user);

#endif
