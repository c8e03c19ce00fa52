/* The kernels of the package liger-kernel, as operations: they allocate, keep and overwrite the same memory as version
 * 0.8.5, and compute the same up to intermediate rounding. Arguments and results as for the operations in ops.h. */
#ifndef PLIM_ENGINE_OPS_LIGER_H
#define PLIM_ENGINE_OPS_LIGER_H

#include "engine.h"

/* x / sqrt(mean(x^2) + epsilon) (offset + weight), over the last dimension; weight has its size. in_place: the gradient
 * of x overwrites that of y. */
struct tensor *op_liger_rms_norm(struct engine *e, struct tensor *x, struct tensor *weight, double epsilon,
                                 double offset, bool in_place);
/* LayerNorm over the last dimension; weight and bias have its size. Without autocast. */
struct tensor *op_liger_layer_norm(struct engine *e, struct tensor *x, struct tensor *weight, struct tensor *bias,
                                   double epsilon);
/* Rotates q and k (B, A, S, D), lent, by the angles' cos and sin (1 or B, S, at least `pairs`): in each head the pairs
 * of elements i and i + pairs; other elements are unchanged. y, named, shares the memory of x, which then holds the
 * result. */
void op_liger_rope(struct engine *e, struct tensor *const x[2], struct tensor *const angles[2], int64_t pairs,
                   struct tensor *y[2]);
/* f(gate) up with SILU (SwiGLU) or GELU_TANH (GeGLU) */
struct tensor *op_liger_gated(struct engine *e, enum plim_unary f, struct tensor *gate, struct tensor *up);
/* The mean cross entropy of logits (rows, classes) against target (rows); its gradient overwrites the logits already in
 * forward. */
struct tensor *op_liger_cross_entropy(struct engine *e, struct tensor *logits, struct tensor *target);
/* The mean cross entropy of x weight^T against target, in chunks of rows; x (rows, hidden), weight (classes, hidden)
 * and target (rows) are lent. Both gradients are computed in forward and kept for backward. The logits of a chunk have
 * about `budget` times as many elements as x (0: once). If cap is above 0, the logits are cap tanh(logits / cap). */
struct tensor *op_liger_linear_cross_entropy(struct engine *e, struct tensor *x, struct tensor *weight,
                                             struct tensor *target, int64_t budget, double cap);

#endif
