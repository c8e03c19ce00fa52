/* TRL's DPOTrainer (1.16, trainer/dpo_trainer.py): a second model, the reference, judges the rows of each pair as the
 * one that is trained does, without gradients; the loss (its default, sigmoid) is of what the two differ by. The rows
 * of a batch are all chosen answers, then all rejected ones. Beside adapters the reference is the model without any. */
#ifndef PLIM_TRAIN_DPO_H
#define PLIM_TRAIN_DPO_H

#include "pairs.h"
#include "workloads/models/model.h"

/* The labels of a micro-step: input_ids.masked_fill(completion_mask == 0, -100); named. NULL where the engine halted */
struct tensor *dpo_labels(struct engine *e, const struct batch *batch);
/* Of each row the sum of its tokens' log-probabilities (2 pairs), named. NULL where the engine is halted */
struct tensor *dpo_log_probs(struct engine *e, const struct fused_output *out);

#define DPO_BETA 0.1 /* DPOConfig's default */

/* What is known of the pairs of a micro-step (B): how much likelier an answer is to the model than to the reference */
struct dpo_ratios {
    struct pair log_probs, reference, ratio;
    struct tensor *delta, *losses;
};
void dpo_ratios_drop(struct engine *e, struct dpo_ratios *r);
/* The ratios of r->log_probs and r->reference, and the sigmoid loss of each pair */
void dpo_ratios_compare(struct engine *e, struct dpo_ratios *r);
void dpo_sigmoid_losses(struct engine *e, struct dpo_ratios *r);
/* The mean of r->losses, times its weight 1, to which the sum of all losses, 0 before it, is added; named */
struct tensor *dpo_mean_loss(struct engine *e, const struct dpo_ratios *r);

/* --- what is measured, in this order; what is returned and what goes into `kept` are Python's variables, named -- */

/* Of the entropy of each token and which of them count, (2 B, n) */
struct tensor *dpo_measure_entropy(struct engine *e, struct tensor *entropy, struct tensor *mask, int64_t world,
                                   struct tensor **total);
/* Of the logits of each token: their means (2 B, n), or they themselves (2 B, n, V). `labels`: tokens that count */
void dpo_measure_logits(struct engine *e, struct tensor *each, struct pair masks, int64_t labels, int64_t world);
enum { DPO_REWARDS = 8 };
void dpo_measure_rewards(struct engine *e, const struct dpo_ratios *r, int64_t world,
                         struct tensor *kept[DPO_REWARDS]);

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
