/* What is around each forward of a training run: autocast, FSDP2's and DeepSpeed's hooks, and accelerate's casts. */
#ifndef PLIM_TRAIN_FORWARD_H
#define PLIM_TRAIN_FORWARD_H

#include "training_run.h"

/* Does the model's forward run under autocast? FSDP2's own policy casts instead. */
bool forward_is_mixed(const struct training_run *r);
/* Enters or leaves autocast; does nothing where there is none. */
void forward_autocast(struct training_run *r, bool enters);
/* Ends FSDP2's forward of a model that returned one tensor, which is replaced. */
void forward_leave_fsdp(struct training_run *r, struct tensor **output);
/* A forward of the model m that also gives its logits, cast to fp32 by accelerate's convert_outputs_to_fp32(), named.
 * Returns the loss, named, or NULL where the model makes none. `reduces`: the backward that follows is to reduce the
 * gradients. */
struct tensor *forward_logits(struct training_run *r, struct decoder *m, const struct batch *batch, bool reduces,
                              struct tensor **logits);

#endif
