/* The kernels that layers of linear attention run where the packages are installed, as operations: the gated delta
 * rule of flash-linear-attention 0.6.0 and the convolution of causal-conv1d 1.7.0. What they allocate and keep is as
 * there. Each launch of theirs is an operation of its own; where Triton's round on the way, to the type of 16 bits that
 * a product takes, those do not.
 * Arguments and results as of the operations in ops.h. */
#ifndef PLIM_ENGINE_OPS_FLA_H
#define PLIM_ENGINE_OPS_FLA_H

#include "engine.h"

/* The documents that one row (B is 1) consists of; ends NULL: rows are one document each. Lent */
struct fla_documents {
    struct tensor *ends; /* (documents + 1) int32: where they begin and end */
    int64_t chunks;      /* of 64 tokens or fewer, of all */
};

/* chunk_gated_delta_rule() with norms of queries and keys in it: q, k (B, S, heads, D), v (B, S, heads, E), decay and
 * beta (B, S, heads), all lent -> (B, S, heads, E) in v's type. */
struct tensor *op_fla_gated_delta_rule(struct engine *e, struct tensor *const qkv[3], struct tensor *decay,
                                       struct tensor *beta, const struct fla_documents *documents);

/* causal_conv1d_fn() with silu: x (B, channels, S), whose channels lie behind one another, and weight (channels,
 * tokens), both lent -> as x. document: which each token is of, (B, S) int32, lent; NULL: rows are one each. */
struct tensor *op_causal_conv1d(struct engine *e, struct tensor *x, struct tensor *weight, struct tensor *document);

#endif
