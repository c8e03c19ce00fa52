/* The kernels that layers of linear attention use if the packages are installed, as operations: the gated delta rule of
 * flash-linear-attention 0.6.0 and the convolution of causal-conv1d 1.7.0. They allocate and keep the same memory. Each
 * launch is one operation; unlike the Triton kernels, these do not round intermediate values to the 16-bit type of a
 * product.
 * Arguments and results as for the operations in ops.h. */
#ifndef PLIM_ENGINE_OPS_FLA_H
#define PLIM_ENGINE_OPS_FLA_H

#include "engine.h"

/* The documents of one row (B is 1), lent; ends NULL: each row is one document. */
struct fla_documents {
    struct tensor *ends; /* (documents + 1) int32: their boundaries */
    int64_t chunks;      /* the total number of chunks of at most 64 tokens */
};

/* chunk_gated_delta_rule(), including the norms of queries and keys: q, k (B, S, heads, D), v (B, S, heads, E), decay
 * and beta (B, S, heads), all lent -> (B, S, heads, E) in v's type. */
struct tensor *op_fla_gated_delta_rule(struct engine *e, struct tensor *const qkv[3], struct tensor *decay,
                                       struct tensor *beta, const struct fla_documents *documents);

/* causal_conv1d_fn() with silu: x (B, channels, S), with adjacent channels in memory, and weight (channels, taps), both
 * lent -> like x. document: the index of each token's document, (B, S) int32, lent; NULL: each row is one document. */
struct tensor *op_causal_conv1d(struct engine *e, struct tensor *x, struct tensor *weight, struct tensor *document);

#endif
