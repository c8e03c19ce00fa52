/* axolotl's fused LoRA functions (axolotl 0.19.0, kernels/lora.py), as operations: what LoRA_QKV, LoRA_O and LoRA_MLP
 * allocate, keep and overwrite. The activations of LoRA_MLP are Triton's kernels (swiglu.py, geglu.py): GATED and
 * GATED_BACKWARD. Arguments and results as of the operations in ops.h. */
#ifndef PLIM_ENGINE_OPS_LORA_H
#define PLIM_ENGINE_OPS_LORA_H

#include "engine.h"

/* A linear layer and its adapter: x W^T + bias + scaling (x A^T) B^T. All is lent; what is quantised outlives the
 * backward pass. */
struct lora_projection {
    struct tensor *weight, *bias;      /* (out, in); (out) or NULL */
    const struct quantized *quantized; /* in whose place the weight is kept in 4 bits, or NULL */
    struct tensor *a, *b;              /* (r, in), (out, r) */
    double scaling;
};

/* x (B, S, in); dropped: what the adapters see of it, or NULL: x itself. */

/* Three projections of x, y (B, S, out) named */
void op_lora_qkv(struct engine *e, struct tensor *x, struct tensor *dropped, const struct lora_projection p[3],
                 struct tensor *y[3]);
struct tensor *op_lora_o(struct engine *e, struct tensor *x, struct tensor *dropped, const struct lora_projection *p);
/* down(f(gate(x)) up(x)) with SILU or GELU, whose gradient takes the places of gate's and up's results; p: gate, up and
 * down */
struct tensor *op_lora_mlp(struct engine *e, enum plim_unary f, struct tensor *x, struct tensor *dropped,
                           const struct lora_projection p[3]);

#endif
