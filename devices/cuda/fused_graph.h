/* Attention as cuDNN's operation graphs: the chains of matrix products, pointwise operations and reductions that its
 * fused engines recognise. No score matrix is ever stored.
 *
 * forward   S = scale Q K^T [+ bias] [masked above the diagonal]; logsumexp and P = softmax(S) by rows;
 *           O = (M P / keep) V
 * backward  sums = keep * rows of dO * O; P = exp(S - logsumexp); dV = (M P / keep)^T dO;
 *           dS = scale P (M (dO V^T) - sums) / keep; dK = dS^T Q; dQ = dS K, accumulated in fp32 by blocks
 *           in any order
 *
 * With dropout, keep is the fraction of P that is kept, and M is 1 for elements that are kept, otherwise 0. cuDNN
 * generates M by Philox from a seed and an offset, and again in backward, so M is not stored except as bits in the
 * workspace of some engines. Without dropout keep is 1, and M and the division are omitted.
 *
 * The nondeterministic backward needs 4 bytes per element of Q; the deterministic one a whole score matrix in 16 bits,
 * which would change what fits. */
#ifndef PLIM_DEVICES_CUDA_FUSED_GRAPH_H
#define PLIM_DEVICES_CUDA_FUSED_GRAPH_H

#include "dnn_graph.h"

/* The tensors of a call; shapes (b, heads, length, size). */
enum plim_fused_tensor {
    PLIM_FUSED_Q, PLIM_FUSED_K, PLIM_FUSED_V,
    PLIM_FUSED_O,
    PLIM_FUSED_LOGSUMEXP, /* fp32 (b, heads, s_q, 1) */
    PLIM_FUSED_BIAS,      /* the additive mask, in the type of Q; extents of 1 are broadcast */
    PLIM_FUSED_DO, PLIM_FUSED_DQ, PLIM_FUSED_DK, PLIM_FUSED_DV,
    PLIM_FUSED_ROW_SUMS, /* fp32 (b, heads, s_q, 1): scratch provided by the caller */
    PLIM_FUSED_DQ_SUMS,  /* fp32 (b, heads, s_q, d), packed: scratch provided by the caller */
    /* scalars on the host: fp32, then int64 */
    PLIM_FUSED_SCALE, PLIM_FUSED_MINUS_INFINITY, PLIM_FUSED_KEEP, PLIM_FUSED_KEEP_INVERSE,
    PLIM_FUSED_SEED, PLIM_FUSED_OFFSET,
    PLIM_FUSED_TENSORS
};

/* Everything a graph depends on. Compared as bytes, so zero it first. */
struct plim_fused_problem {
    int32_t type; /* cudnnDataType_t of Q: CUDNN_DATA_BFLOAT16, CUDNN_DATA_HALF */
    uint8_t backward, causal, has_bias;
    uint8_t has_logsumexp; /* forward: the logsumexp is needed */
    double dropped;        /* the fraction of P that dropout drops; 0: no dropout */
    struct plim_dnn_shape shape[PLIM_FUSED_TENSORS]; /* zero for scratch and scalars */
};

/* Builds and seals the graph; the caller closes `g` in any case. id[i]: the number of the tensor in the graph, -1 if it
 * is not used. `handle`: of the GPU; NULL for one that is only described. */
cudnnStatus_t plim_fused_graph(struct plim_dnn_graph *g, const struct plim_dnn *dnn,
                               cudnnHandle_t handle, const struct plim_fused_problem *problem,
                               int id[PLIM_FUSED_TENSORS]);

#endif
