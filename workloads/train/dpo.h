/* TRL's DPOTrainer (1.16, trainer/dpo_trainer.py): a second model, the reference, judges the rows of each pair as the
 * one that is trained does, without gradients; the loss (its default, sigmoid) is of what the two differ by. The rows
 * of a batch are all chosen answers, then all rejected ones. Beside adapters the reference is the model without any. */
#ifndef PLIM_TRAIN_DPO_H
#define PLIM_TRAIN_DPO_H

#include "workloads/models/model.h"

/* The labels of a micro-step: input_ids.masked_fill(completion_mask == 0, -100); named. NULL where the engine halted */
struct tensor *dpo_labels(struct engine *e, const struct batch *batch);
/* Of each row the sum of its tokens' log-probabilities (2 pairs), named. NULL where the engine is halted */
struct tensor *dpo_log_probs(struct engine *e, const struct fused_output *out);

/* What is compared, taken: of the model and of the reference (nothing where its log-probabilities are the batch's) what
 * the head returned, and of the model the sums of the rows. */
struct dpo_compared {
    struct fused_output model, reference;
    struct tensor *log_probs;
};
/* The loss of a micro-step of the model m, and what is measured of it. Named; NULL where the engine halted. */
struct tensor *dpo_loss(struct engine *e, struct dpo_compared *compared, const struct batch *batch,
                        const struct decoder *m, bool trains);

#endif
