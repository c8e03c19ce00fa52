/* The kernel of TRL 1.16 from which its trainers compute their losses (kernels/chunked_logprob.py), as an operation
 * that allocates, keeps and overwrites the same memory. */
#ifndef PLIM_ENGINE_OPS_TRL_H
#define PLIM_ENGINE_OPS_TRL_H

#include "engine.h"

/* The outputs requested in addition to the log-probabilities (`outputs` of add_fused_lm_head). */
enum { TRL_ENTROPY = 1, TRL_MEAN_LOGITS = 2, TRL_IS_TOP1 = 4 };

/* ChunkedLogProbFunction of x (n, hidden), weight (classes, hidden), bias (classes; NULL: none) and targets (n), all
 * lent. Returns for each row the target's log-probability and, as selected by `wanted`, the entropy, the mean of the
 * logits and whether the target is the most probable class; named, or NULL if not selected. The logits are computed in
 * tiles of 4,096 rows and 32,768 classes (a whole tile is allocated for any number of classes), and again in backward.
 * Autocast determines their type. A logit is z = `scale` times the product, or cap tanh(z / cap) if `cap` is not 0. */
struct logit_transform {
    double scale, cap;
};
struct token_scores {
    struct tensor *log_probs, *entropy, *mean_logits, *is_top1; /* (n): fp32, fp32, fp32 and bool */
};
struct token_scores op_trl_token_scores(struct engine *e, struct tensor *x, struct tensor *weight, struct tensor *bias,
                                        struct tensor *targets, struct logit_transform transform, unsigned wanted);

/* torch.min(a, b) of the same shape, fp32; backward needs both. Floating. */
struct tensor *op_trl_minimum(struct engine *e, struct tensor *a, struct tensor *b);

#endif
