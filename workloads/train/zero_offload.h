/* DeepSpeed's ZeRO-Offload ("offload_optimizer"): the fp32 weights, their gradients and the optimizer's states are on
 * the host, whose CPU runs the step. In the last micro-step a reduced gradient that this rank owns is copied to the
 * host in fp32, and its norm is kept on the GPU; gradients of earlier micro-steps are kept on the host in their own
 * type, and copied back to be added to. (deepspeed 0.18: runtime/zero/stage_1_and_2.py, stage3.py.) */
#ifndef PLIM_TRAIN_ZERO_OFFLOAD_H
#define PLIM_TRAIN_ZERO_OFFLOAD_H

#include "zero_state.h"

/* Stages 1 and 2: offloads a reduced gradient of a weight that this rank owns. */
void zero_offload_gradient(struct engine *e, struct zero *z, struct zero_weight *w);
/* Stages 1 and 2: engine.step(). */
void zero_offload_step(struct engine *e, struct zero *z);

/* Stage 3: offloads this rank's `elements` of a reduced gradient. Returns them, named; the caller drops them after the
 * gradient. */
struct tensor *zero_offload_partition(struct engine *e, struct zero *z, struct zero_weight *w, int64_t elements);
/* Computes the norm of the gradients of a sub-group over all ranks from these norms; the host reads the sum. */
void zero_offload_norm(struct engine *e, struct tensor *const *norms, size_t count);
/* Drops the norms of all weights. */
void zero_offload_drop_norms(struct engine *e, struct zero *z);

#endif
