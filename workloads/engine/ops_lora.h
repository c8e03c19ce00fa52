/* axolotl's fused LoRA functions (axolotl 0.19.0, kernels/lora.py), as operations that allocate, keep and overwrite the
 * same memory as LoRA_QKV, LoRA_O and LoRA_MLP. The activations of LoRA_MLP are Triton kernels (swiglu.py, geglu.py):
 * GATED and GATED_BACKWARD. Arguments and results as for the operations in ops.h. */
#ifndef PLIM_ENGINE_OPS_LORA_H
#define PLIM_ENGINE_OPS_LORA_H

#include "engine.h"

/* A linear layer and its adapter: x W^T + bias + scaling (x A^T) B^T. Everything is lent; `quantized` must outlive the
 * backward pass. */
struct lora_projection {
    struct tensor *weight, *bias;      /* (out, in); (out) or NULL */
    const struct quantized *quantized; /* the weight in 4 bits, used instead of `weight`; or NULL */
    struct tensor *a, *b;              /* (r, in), (out, r) */
    double scaling;
};


/* x (B, S, in); dropped: the adapters' input after dropout, NULL: x itself. Three projections of x; y (B, S, out),
 * named. */
void op_lora_qkv(struct engine *e, struct tensor *x, struct tensor *dropped, const struct lora_projection p[3],
                 struct tensor *y[3]);
struct tensor *op_lora_o(struct engine *e, struct tensor *x, struct tensor *dropped, const struct lora_projection *p);
/* down(f(gate(x)) up(x)) with f SILU or GELU; its gradients overwrite the results of gate and up. p: gate, up and
 * down. */
struct tensor *op_lora_mlp(struct engine *e, enum plim_unary f, struct tensor *x, struct tensor *dropped,
                           const struct lora_projection p[3]);

#endif
