/* The kernels of the package liger-kernel, as operations: what they allocate, keep and overwrite is as in
 * version 0.8.5, what they compute is nowhere (PLIM_OP_FUSED). Only a simulated device runs them.
 * Arguments and results as of the operations in ops.h. */
#ifndef PLIM_ENGINE_OPS_LIGER_H
#define PLIM_ENGINE_OPS_LIGER_H

#include "engine.h"

/* in_place: the gradient of x takes the place of y's. */
struct tensor *op_liger_rms_norm(struct engine *e, struct tensor *x, struct tensor *weight, bool in_place);
/* q and k (B, A, S, D), lent; y named: on the memory of x, which holds the result from then on */
void op_liger_rope(struct engine *e, struct tensor *const x[2], struct tensor *cos,
                   struct tensor *sin, struct tensor *y[2]);
/* silu(gate) up; GeGLU's gelu(gate) up is the same but for what is computed. */
struct tensor *op_liger_silu_mul(struct engine *e, struct tensor *gate, struct tensor *up);
/* The cross entropy of logits (rows, classes) against target (rows); its gradient takes the place of the logits, in
 * forward already. */
struct tensor *op_liger_cross_entropy(struct engine *e, struct tensor *logits, struct tensor *target);
/* The cross entropy of x weight^T against target, some rows at a time; x (rows, hidden), weight (classes, hidden) and
 * target (rows) lent. Both gradients are made here and kept for backward. The logits of the rows at once are as many
 * numbers as `budget` times x (0: once). */
struct tensor *op_liger_linear_cross_entropy(struct engine *e, struct tensor *x, struct tensor *weight,
                                             struct tensor *target, int64_t budget);

#endif
