/* Functions that the stages' files share: hooks of zero.c, which zero_create.c sets, and parts of the
 * norm (zero_norm.c). */
#ifndef PLIM_TRAIN_ZERO_INTERNAL_H
#define PLIM_TRAIN_ZERO_INTERNAL_H

#include "zero_state.h"

/* AccumulateGrad's post hook (the context is struct zero). */
void zero_accumulated(struct engine *e, void *context, struct tensor *variable);
/* The hook of a model's logits. */
struct tensor *zero_hook_logits(struct engine *e, void *context, struct tensor *logits);
/* _has_inf_or_nan() of a gradient: a scalar, 1 where it has an infinity or NaN, else 0; named */
struct tensor *zero_inf_or_nan(struct engine *e, struct tensor *grad);
/* This rank's share of `grad`, an owned weight's: all of it, or a view. Named */
struct tensor *zero_share_of(struct engine *e, const struct zero *z, const struct zero_weight *w, struct tensor *grad);
/* vector_norm(grad.double()); named */
struct tensor *zero_norm_of(struct engine *e, struct tensor *grad);
/* Sets the norm to -1 where it is infinite or NaN: mask_nan_or_inf_with_val_inplace() for fp32, torch.where() for
 * fp64, which replaces *norm by another tensor */
void zero_mask_infinite(struct engine *e, struct tensor **norm);
/* unscale_and_clip_grads(); `most` 0: no clipping */
void zero_clip(struct engine *e, struct tensor *grad, struct tensor *norm, double most);

#endif
