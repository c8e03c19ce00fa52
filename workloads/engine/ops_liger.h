/* The kernels of the package liger-kernel, as operations: what they allocate, keep and overwrite is as in version
 * 0.8.5, and what they compute but for roundings on the way. Arguments and results as of the operations in ops.h. */
#ifndef PLIM_ENGINE_OPS_LIGER_H
#define PLIM_ENGINE_OPS_LIGER_H

#include "engine.h"

/* x / sqrt(mean(x^2) + epsilon) (offset + weight), over the last dimension; weight of that size. in_place: the
 * gradient of x takes the place of y's. */
struct tensor *op_liger_rms_norm(struct engine *e, struct tensor *x, struct tensor *weight, double epsilon,
                                 double offset, bool in_place);
/* LayerNorm over the last dimension; weight and bias of that size. Autocast casts nothing. */
struct tensor *op_liger_layer_norm(struct engine *e, struct tensor *x, struct tensor *weight, struct tensor *bias,
                                   double epsilon);
/* q and k (B, A, S, D), lent, turn by angles' cos and sin (1 or B, S, at least `pairs`): of each head elements i and
 * i + pairs, the rest stays; y named: on the memory of x, which holds the result from then on */
void op_liger_rope(struct engine *e, struct tensor *const x[2], struct tensor *const angles[2], int64_t pairs,
                   struct tensor *y[2]);
/* f(gate) up with SILU (SwiGLU) or GELU_TANH (GeGLU) */
struct tensor *op_liger_gated(struct engine *e, enum plim_unary f, struct tensor *gate, struct tensor *up);
/* The mean cross entropy of logits (rows, classes) against target (rows); its gradient takes the place of the logits,
 * in forward already. */
struct tensor *op_liger_cross_entropy(struct engine *e, struct tensor *logits, struct tensor *target);
/* The mean cross entropy of x weight^T against target, some rows at a time; x (rows, hidden), weight (classes,
 * hidden) and target (rows) lent. Both gradients are made here and kept for backward. The logits of the rows at once
 * are as many numbers as `budget` times x (0: once). cap: where above 0, logits are cap tanh(logits / cap). */
struct tensor *op_liger_linear_cross_entropy(struct engine *e, struct tensor *x, struct tensor *weight,
                                             struct tensor *target, int64_t budget, double cap);

#endif
