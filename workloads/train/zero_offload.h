/* DeepSpeed's ZeRO-Offload ("offload_optimizer"): the fp32 weights, their gradients and the optimizer's states are the
 * host's, whose processor runs the step. A reduced gradient of what this rank owns goes there in fp32 in the last
 * micro-step, with its norm left on the GPU; those of earlier ones are kept there in their own type, and come back to
 * be added to. (deepspeed 0.18: runtime/zero/stage_1_and_2.py, stage3.py.) */
#ifndef PLIM_TRAIN_ZERO_OFFLOAD_H
#define PLIM_TRAIN_ZERO_OFFLOAD_H

#include "zero_state.h"

/* Stages 1 and 2: a reduced gradient of a weight that this rank owns. */
void zero_offload_gradient(struct engine *e, struct zero *z, struct zero_weight *w);
/* and engine.step(). */
void zero_offload_step(struct engine *e, struct zero *z);

/* Stage 3: the `elements` that this rank has of a reduced gradient. Named; the caller drops it after the gradient. */
struct tensor *zero_offload_piece(struct engine *e, struct zero *z, struct zero_weight *w, int64_t elements);
/* The host adds up the norms of a sub-group, and over the ranks. */
void zero_offload_norm(struct engine *e, struct tensor *const *norms, size_t count);
/* All norms go. */
void zero_offload_drop_norms(struct engine *e, struct zero *z);

#endif
