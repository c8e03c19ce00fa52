/* Functions shared by the stages' files: hooks of zero.c, which zero_create.c registers, and parts of the norm's
 * computation (zero_norm.c). */
#ifndef PLIM_TRAIN_ZERO_INTERNAL_H
#define PLIM_TRAIN_ZERO_INTERNAL_H

#include "zero_state.h"

/* AccumulateGrad's post hook; the context is a struct zero. */
void zero_accumulated(struct engine *e, void *context, struct tensor *variable);
/* The hook of a model's logits; see decoder_hooks.logits. */
struct tensor *zero_hook_logits(struct engine *e, void *context, struct tensor *logits);
/* _has_inf_or_nan() of a gradient: returns a scalar, 1 if it has an infinity or NaN, otherwise 0; named. */
struct tensor *zero_inf_or_nan(struct engine *e, struct tensor *grad);
/* Returns this rank's part of `grad`, the gradient of an owned weight: all of it, or a view; named. */
struct tensor *zero_grad_partition(struct engine *e, const struct zero *z, const struct zero_weight *w,
                                   struct tensor *grad);
/* Returns vector_norm(grad.double()), named. */
struct tensor *zero_norm_of(struct engine *e, struct tensor *grad);
/* Sets the norm to -1 if it is infinite or NaN: mask_nan_or_inf_with_val_inplace() for fp32, torch.where() for fp64,
 * which replaces *norm by another tensor. */
void zero_mask_infinite(struct engine *e, struct tensor **norm);
/* unscale_and_clip_grads(); `max_norm` 0: no clipping. */
void zero_clip(struct engine *e, struct tensor *grad, struct tensor *norm, double max_norm);

#endif
