/* The kernels of the package cut-cross-entropy, as an operation: what they allocate, keep and overwrite is as in
 * axolotl's fork of it (5f0c7a7). Kernels of our own compute it in the same memory, in as many products; unlike the
 * package's, which add under locks in any order, they give the same bits in every run, and no gradient is left out for
 * being small. */
#ifndef PLIM_ENGINE_OPS_CUT_H
#define PLIM_ENGINE_OPS_CUT_H

#include "engine.h"

/* linear_cross_entropy(shift=True) of x (B, S, hidden), weight (classes, hidden) and bias (classes; NULL: none), all of
 * 16 bits, against labels (B, S), of which `found` count; lent. softcap: of the logits; 0: none. is_sum: the sum of the
 * losses, else their mean. The logits are made block by block and kept nowhere, and again in backward. A scalar in
 * fp32, floating */
struct cut_call {
    struct tensor *x, *weight, *bias, *labels;
    int64_t found;
    double softcap;
    bool is_sum;
};
struct tensor *op_cut_cross_entropy(struct engine *e, const struct cut_call *call);

#endif
