/* What ms-swift's Seq2SeqTrainer (4.6) allocates in addition to Trainer's loop (trainer_loop.h): logits are computed
 * only for tokens whose next token is a label, the loss is a mean weighted by its share of a step's labels, and the
 * index of each token's largest logit is copied to the host. */
#ifndef PLIM_TRAIN_SWIFT_SFT_H
#define PLIM_TRAIN_SWIFT_SFT_H

#include "workloads/models/model.h"

/* prepare_logits_to_keep(): returns the batch with the labels of those tokens for which logits are computed, and with
 * one row their mask; both named (`labels`, `kept`). */
struct batch swift_keep(struct engine *e, const struct decoder *m, const struct batch *batch);

/* _prepare_inputs(): returns the batch for the model; in other loops `batch` itself. Drop it with
 * swift_prepared_drop(). */
struct batch swift_prepare(struct engine *e, const struct decoder *m, const struct batch *batch);
void swift_prepared_drop(struct engine *e, const struct decoder *m, const struct batch *prepared);

/* compute_loss(): returns the loss, named, computed from the model's loss, which is taken, of a prepared batch and its
 * logits (lent); in other loops the same loss. items: number of labels of the step that count (lent), or NULL. */
struct tensor *swift_weigh(struct engine *e, const struct decoder *m, const struct batch *prepared,
                           struct tensor *items, struct tensor *loss, struct tensor *logits);

#endif
