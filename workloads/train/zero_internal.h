/* The hooks of zero.c, for zero_create.c, which sets them. */
#ifndef PLIM_TRAIN_ZERO_INTERNAL_H
#define PLIM_TRAIN_ZERO_INTERNAL_H

#include "zero_state.h"

/* AccumulateGrad's post hook (the context is struct zero). */
void zero_accumulated(struct engine *e, void *context, struct tensor *variable);
/* The hook of a model's logits. */
struct tensor *zero_hook_logits(struct engine *e, void *context, struct tensor *logits);

#endif
