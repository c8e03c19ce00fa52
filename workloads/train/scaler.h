/* torch.amp.GradScaler and torch.nn.utils.clip_grad_norm_. */
#ifndef PLIM_TRAIN_SCALER_H
#define PLIM_TRAIN_SCALER_H

#include "optimizer.h"

struct scaler {
    bool enabled;
    bool unscaled; /* this step's gradients are already unscaled (clipping) */
    struct tensor *scale, *growth, *found_inf;
};

void scaler_create(struct scaler *s, bool enabled);
/* Returns loss * scale, or the loss itself if disabled. The scale is allocated at the first call. */
struct tensor *scaler_scale(struct engine *e, struct scaler *s, struct tensor *loss);
void scaler_unscale(struct engine *e, struct scaler *s, struct optimizer *o);
void scaler_step(struct engine *e, struct scaler *s, struct optimizer *o);
void scaler_update(struct engine *e, struct scaler *s);

/* clip_grad_norm_(parameters, max_norm): the norms of all gradients, the total norm, one factor. */
struct tensor *clip_grad_norm(struct engine *e, struct optimizer *o, double max_norm); /* the total, named; or NULL */

#endif
