/* The cost of attention that runs through cuDNN's graph interface (convolution_cost.h).
 *
 * cudnn-frontend composes it of two matrix products with the softmax between them, and its backward pass of five. In
 * both, the first product is that of queries and keys, so its operands give the sizes. A mask is a selection among the
 * scores by position. */
#ifndef PLIM_DEVICES_VIRTUAL_DNN_ATTENTION_COST_H
#define PLIM_DEVICES_VIRTUAL_DNN_ATTENTION_COST_H

#include "backend.h"
#include "devices/cost.h"

/* The known properties of the attention in one operation, or in all operations of a graph. */
struct plim_dnn_attention {
    int products;
    bool is_masked;
    struct plim_dnn_tensor queries, keys, scores; /* operands of the first product: batch, heads, rows, columns */
};

void plim_dnn_attention_join(struct plim_dnn_attention *graph, const struct plim_dnn_attention *operation);

/* Stores the cost in `out`. Returns false if this is not attention. Every mask is assumed to be causal. */
bool plim_dnn_attention_cost(const struct plim_dnn_attention *attention, struct plim_cost *out);

#endif
