/* The kernels of the package cut-cross-entropy, as an operation that allocates, keeps and overwrites the same memory as
 * axolotl's fork of it (5f0c7a7). Our own kernels use the same memory and compute as many products; unlike the
 * package's, which accumulate under locks in any order, they give the same bits in every run, and do not skip small
 * gradients. */
#ifndef PLIM_ENGINE_OPS_CUT_H
#define PLIM_ENGINE_OPS_CUT_H

#include "engine.h"

/* linear_cross_entropy(shift=True) of x (B, S, hidden), weight (classes, hidden) and bias (classes; NULL: none), all in
 * 16 bits, against labels (B, S), of which `found` are not ignored; all are lent. softcap of the logits; 0: none.
 * is_sum: the sum of the losses, otherwise their mean. The logits are computed block by block without being stored, and
 * again in backward. Returns a scalar in fp32, floating. */
struct cut_call {
    struct tensor *x, *weight, *bias, *labels;
    int64_t found;
    double softcap;
    bool is_sum;
};
struct tensor *op_cut_cross_entropy(struct engine *e, const struct cut_call *call);

#endif
