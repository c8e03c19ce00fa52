/* The kernel of TRL 1.16 that its trainers take their losses from (kernels/chunked_logprob.py), as an operation: what
 * it allocates, keeps and overwrites. Its Triton kernels compute nothing here (PLIM_OP_FUSED), so that only a simulated
 * device runs it. */
#ifndef PLIM_ENGINE_OPS_TRL_H
#define PLIM_ENGINE_OPS_TRL_H

#include "engine.h"

/* ChunkedLogProbFunction of x (n, hidden), weight (classes, hidden), bias (classes; NULL: none) and targets (n), all
 * lent: of each row the target's log-probability, the entropy and whether the target is the likeliest; named. The
 * logits are made in tiles of 4,096 rows and 32,768 classes, for which there is room whatever the classes are, and
 * again in backward. Autocast decides what they are computed in. */
struct token_scores {
    struct tensor *log_probs, *entropy, *is_top1; /* (n): fp32, fp32 and bool */
};
struct token_scores op_trl_token_scores(struct engine *e, struct tensor *x, struct tensor *weight, struct tensor *bias,
                                        struct tensor *targets);

#endif
