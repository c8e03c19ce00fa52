/* TRL's DPOTrainer (1.16, trainer/dpo_trainer.py). A second model, the reference, scores the rows of each pair like
 * the trained model, but without gradients; the loss (the default, sigmoid) depends on the difference of the two
 * scores. The rows of a batch are all chosen completions, then all rejected ones. With adapters the reference is the
 * model without them. */
#ifndef PLIM_TRAIN_DPO_H
#define PLIM_TRAIN_DPO_H

#include "pairs.h"
#include "workloads/models/model.h"

/* Returns the labels of a micro-step, input_ids.masked_fill(completion_mask == 0, -100), named; NULL if the engine is
 * halted. */
struct tensor *dpo_labels(struct engine *e, const struct batch *batch);
/* Returns the sum of the tokens' log-probabilities of each row (2 pairs), named; NULL if the engine is halted. */
struct tensor *dpo_log_probs(struct engine *e, const struct fused_output *out);

#define DPO_BETA 0.1 /* DPOConfig's default */

/* Log-probabilities of the B pairs of a micro-step under the model and the reference; ratio is their difference. */
struct dpo_ratios {
    struct pair log_probs, reference, ratio;
    struct tensor *delta, *losses;
};
void dpo_ratios_drop(struct engine *e, struct dpo_ratios *r);
/* Computes ratio and delta from r->log_probs and r->reference; dpo_sigmoid_losses() then computes the loss of each pair
 * from delta. */
void dpo_ratios_compare(struct engine *e, struct dpo_ratios *r);
void dpo_sigmoid_losses(struct engine *e, struct dpo_ratios *r);
/* Returns the mean of r->losses, times its weight 1, added to a sum that starts at 0; named. */
struct tensor *dpo_mean_loss(struct engine *e, const struct dpo_ratios *r);

/* --- metrics, in this order; results and the entries of `kept` are Python variables, named ----------------------- */

/* Computes the metrics of the entropy of each token. `mask` selects the tokens that count; both are (2 B, n). */
struct tensor *dpo_measure_entropy(struct engine *e, struct tensor *entropy, struct tensor *mask, int64_t world,
                                   struct tensor **total);
/* Computes the metrics of the logits of each token. `each` has their means (2 B, n), or the logits (2 B, n, V).
 * `labels`: the number of tokens that count. */
void dpo_measure_logits(struct engine *e, struct tensor *each, struct pair masks, int64_t labels, int64_t world);
/* The same of completions and rejected ones apart, of which `found` tokens count. */
void dpo_measure_logits_of(struct engine *e, struct pair each, struct pair masks, const int64_t found[2],
                           int64_t world);
enum { DPO_REWARDS = 8 };
void dpo_measure_rewards(struct engine *e, const struct dpo_ratios *r, int64_t world,
                         struct tensor *kept[DPO_REWARDS]);

/* The arguments of dpo_loss(), which takes ownership: outputs of the head of the model and of the reference (empty if
 * the batch contains the reference's log-probabilities), and the model's log-probability of each row. */
struct dpo_compared {
    struct fused_output model, reference;
    struct tensor *log_probs;
};
/* Computes the loss of a micro-step of the model m and its metrics. Returns it, named; NULL if the engine is halted. */
struct tensor *dpo_loss(struct engine *e, struct dpo_compared *compared, const struct batch *batch,
                        const struct decoder *m, bool trains);

#endif
