/* What is around each forward of a training run: autocast, FSDP2's and DeepSpeed's hooks, and accelerate's casts. */
#ifndef PLIM_TRAIN_FORWARD_H
#define PLIM_TRAIN_FORWARD_H

#include "training_run.h"

/* Does autocast reach over the model's forward? FSDP2's own policy casts instead. */
bool forward_is_mixed(const struct training_run *r);
/* Enters it, or leaves it; nothing where there is none. */
void forward_autocast(struct training_run *r, bool enters);
/* Where FSDP2's forward ends, of a model that returned one tensor, which becomes another. */
void forward_leave_fsdp(struct training_run *r, struct tensor **output);
/* A forward of the model m that gives logits too, which accelerate's convert_outputs_to_fp32() has widened, named; the
 * loss, named, where the model makes one, else NULL. `reduces`: the backward that follows is to reduce the
 * gradients. */
struct tensor *forward_logits(struct training_run *r, struct decoder *m, const struct batch *batch, bool reduces,
                              struct tensor **logits);

#endif
