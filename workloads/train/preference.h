/* LLaMA-Factory's CustomDPOTrainer (0.9.5, llamafactory/train/dpo/trainer.py, with the dpo_loss() of TRL 0.24, of which
 * it is one): as TRL's own since (dpo.h) it compares what a model and a reference make of the rows of each pair, but
 * makes all logits in fp32, which live until the loss is measured. */
#ifndef PLIM_TRAIN_PREFERENCE_H
#define PLIM_TRAIN_PREFERENCE_H

#include "workloads/models/model.h"

/* A pass over the rows of a batch, whose labels the model is not told: the logits in fp32 (rows, S, V), named. With
 * `by_reference` it is one of the reference: a second model, or the same without its adapters. */
typedef struct tensor *preference_forward(void *user, const struct batch *batch, bool by_reference);

/* get_batch_logps() (train/trainer_utils.py) of logits (rows, S, V) and labels (rows, S), lent: of each row the sum of
 * its labels' log-probabilities, and into *count how many there are (rows, int64); both named. NULL where the engine
 * halted */
struct tensor *preference_log_probs(struct engine *e, struct tensor *logits, struct tensor *labels,
                                    struct tensor **count);

/* get_batch_loss_metrics(): the passes of a micro-step of the model m, its loss and what is measured of it. Named; NULL
 * where the engine halted. */
struct tensor *preference_loss(struct engine *e, const struct decoder *m, const struct batch *batch,
                               preference_forward *forward, void *user);

#endif
