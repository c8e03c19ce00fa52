/* What surrounds each forward of a training run: autocast, the hooks of FSDP2 and DeepSpeed, and accelerate's casts. */
#ifndef PLIM_TRAIN_FORWARD_H
#define PLIM_TRAIN_FORWARD_H

#include "training_run.h"

/* True if the model's forward runs under autocast. False with FSDP2, whose mixed-precision policy casts instead. */
bool forward_is_mixed(const struct training_run *r);
/* Enters or leaves autocast; does nothing if the run does not use it. */
void forward_autocast(struct training_run *r, bool enters);
/* Returns the model of a forward: the trained one, or for a reference a model of its own, or else the trained one,
 * whose adapters are off until e->adapters_off is false again. */
struct decoder *forward_model(struct training_run *r, bool by_reference);
/* Ends FSDP2's forward of a model that returned a single tensor; may replace *output. */
void forward_end_fsdp(struct training_run *r, struct tensor **output);
/* Runs a forward of the model m that also returns its logits, cast to fp32 by accelerate's convert_outputs_to_fp32(),
 * named. Returns the loss, named, or NULL if the model computes none. `reduces`: the following backward reduces the
 * gradients. */
struct tensor *forward_logits(struct training_run *r, struct decoder *m, const struct batch *batch, bool reduces,
                              struct tensor **logits);

#endif
