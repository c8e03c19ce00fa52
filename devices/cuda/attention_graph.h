/* Attention as cuDNN's operation graphs: the chains of matrix products, pointwise operations and
 * reductions that its fused engines recognise. No score matrix is ever stored.
 *
 * forward   S = scale Q K^T [+ bias] [masked above the diagonal]; logsumexp and P = softmax(S) by
 *           rows; O = P V
 * backward  sums = rows of dO * O; P = exp(S - logsumexp); dV = P^T dO; dS = scale P (dO V^T - sums);
 *           dK = dS^T Q; dQ = dS K, added up in fp32 by blocks in any order
 *
 * The backward without an order costs 4 bytes for each element of Q; the one with an order a whole
 * score matrix in 16 bits, which would change what fits.
 */
#ifndef PLIM_DEVICES_CUDA_ATTENTION_GRAPH_H
#define PLIM_DEVICES_CUDA_ATTENTION_GRAPH_H

#include "dnn_graph.h"

/* The tensors of a call; shapes (b, heads, length, size). */
enum plim_sdpa_tensor {
    PLIM_SDPA_Q, PLIM_SDPA_K, PLIM_SDPA_V,
    PLIM_SDPA_O,
    PLIM_SDPA_LOGSUMEXP, /* fp32 (b, heads, s_q, 1) */
    PLIM_SDPA_BIAS,      /* the additive mask, in the type of Q; extents of 1 repeat */
    PLIM_SDPA_DO, PLIM_SDPA_DQ, PLIM_SDPA_DK, PLIM_SDPA_DV,
    PLIM_SDPA_ROW_SUMS, /* fp32 (b, heads, s_q, 1): scratch of the caller */
    PLIM_SDPA_DQ_SUMS,  /* fp32 (b, heads, s_q, d), packed: scratch of the caller */
    PLIM_SDPA_SCALE, PLIM_SDPA_MINUS_INFINITY, PLIM_SDPA_ONE, /* numbers on the host */
    PLIM_SDPA_TENSORS
};

/* What a graph depends on. Compared as bytes, so zero it first. */
struct plim_sdpa_problem {
    int32_t type; /* cudnnDataType_t of Q: CUDNN_DATA_BFLOAT16, CUDNN_DATA_HALF */
    uint8_t backward, causal, has_bias;
    uint8_t has_logsumexp; /* forward: is it asked for */
    struct plim_dnn_shape shape[PLIM_SDPA_TENSORS]; /* scratch and numbers are left zero */
};

/* Builds and seals the graph; `g` is closed by the caller in any case. id[i]: the number of the
 * tensor in the graph, -1 where it has none. */
cudnnStatus_t plim_sdpa_graph(struct plim_dnn_graph *g, const struct plim_dnn *dnn,
                              const struct plim_sdpa_problem *problem, int id[PLIM_SDPA_TENSORS]);

#endif
