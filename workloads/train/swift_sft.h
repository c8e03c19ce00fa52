/* What ms-swift's Seq2SeqTrainer (4.6) allocates beside Trainer's loop (trainer_loop.h): logits are of those tokens
 * alone whose next one is learned, the loss is a mean that is weighed by its share of a step's labels, and the host
 * gets the largest logit of each. */
#ifndef PLIM_TRAIN_SWIFT_SFT_H
#define PLIM_TRAIN_SWIFT_SFT_H

#include "workloads/models/model.h"

/* _prepare_inputs(): the batch as the model is given it, of other loops as it is. What is its own is the caller's to
 * drop. */
struct batch swift_prepare(struct engine *e, const struct decoder *m, const struct batch *batch);
void swift_prepared_drop(struct engine *e, const struct decoder *m, const struct batch *prepared);

/* What compute_loss() does with a loss, which is taken, of a prepared batch and (lent) its logits: the loss, named;
 * that of other loops as it is. items: labels that count in the step (lent), or NULL. */
struct tensor *swift_weigh(struct engine *e, const struct decoder *m, const struct batch *prepared,
                           struct tensor *items, struct tensor *loss, struct tensor *logits);

#endif
