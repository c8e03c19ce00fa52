/* LLaMA-Factory's CustomDPOTrainer (0.9.5, llamafactory/train/dpo/trainer.py, a subclass of TRL 0.24's trainer, whose
 * dpo_loss() it uses). Like TRL's newer trainer (dpo.h) it compares a model and a reference on the rows of each pair,
 * but materialises all logits in fp32, which are kept until the metrics of the loss are computed. */
#ifndef PLIM_TRAIN_PREFERENCE_H
#define PLIM_TRAIN_PREFERENCE_H

#include "pairs.h"
#include "workloads/models/model.h"

/* A forward of the rows of a batch, without labels. Returns the logits in fp32 (rows, S, V), named. With `by_reference`
 * it is a forward of the reference: a second model, or the same model without its adapters. */
typedef struct tensor *preference_forward(void *user, const struct batch *batch, bool by_reference);

/* get_batch_logps() (train/trainer_utils.py) of logits (rows, S, V) and labels (rows, S), lent. Returns the sum of the
 * labels' log-probabilities of each row, and stores the number of labels (rows, int64) in *count; both named. NULL if
 * the engine is halted. */
struct tensor *preference_log_probs(struct engine *e, struct tensor *logits, struct tensor *labels,
                                    struct tensor **count);

/* The losses of pairs, and the rewards of their answers; named */
struct preference_losses {
    struct tensor *loss;
    struct pair rewards;
};
/* Returns beta * x.detach(), named. */
struct tensor *preference_reward(struct engine *e, struct tensor *x);
/* Returns -logsigmoid(beta * delta) * (1 - 0) - logsigmoid(-beta * delta) * 0: label_smoothing is 0, and its term is
 * computed nevertheless. Named. */
struct tensor *preference_smoothed(struct engine *e, struct tensor *delta);
/* TRL 0.24's dpo_loss() (and ms-swift's) with the default loss_type, sigmoid, or with ipo. */
struct preference_losses preference_losses_of(struct engine *e, bool is_ipo, struct pair own, struct pair reference);

/* get_batch_loss_metrics(): runs the forwards of a micro-step of the model m and computes its loss and metrics. Returns
 * the loss, named; NULL if the engine is halted. */
struct tensor *preference_loss(struct engine *e, const struct decoder *m, const struct batch *batch,
                               preference_forward *forward, void *user);

#endif
