/* TRL's KTOTrainer (1.16, trainer/kto_trainer.py) with its default loss_type, kto: each row is desirable or
 * undesirable. The model and a reference score these rows and others, whose completions belong to other prompts, from
 * which the KL divergence is estimated. Both have TRL's fused head, as in its DPOTrainer (dpo.h). */
#ifndef PLIM_TRAIN_TRL_KTO_H
#define PLIM_TRAIN_TRL_KTO_H

#include "workloads/models/model.h"

/* A forward of the rows of a batch, with labels. With `by_reference` it is a forward of the reference: a second model,
 * or the same model without its adapters. */
typedef struct fused_output trl_kto_forward(void *user, const struct batch *batch, bool by_reference);

/* _compute_loss(): runs the forwards of a micro-step of the model m and computes its loss and metrics. `trains` is
 * false in an evaluation. Returns the loss, named; NULL if the engine is halted. */
struct tensor *trl_kto_loss(struct engine *e, const struct decoder *m, const struct batch *batch, bool trains,
                            trl_kto_forward *forward, void *user);

#endif
