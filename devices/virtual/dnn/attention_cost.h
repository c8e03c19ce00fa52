/* What attention costs that runs through cuDNN's graph interface (convolution_cost.h).
 *
 * cudnn-frontend puts it together of two products of matrices, with the softmax between them, and its backward pass
 * of five. The first is that of queries and keys in both, so that its operands tell the sizes; a mask is a choice by
 * positions (a select) among scores.
 */
#ifndef PLIM_DEVICES_VIRTUAL_DNN_ATTENTION_COST_H
#define PLIM_DEVICES_VIRTUAL_DNN_ATTENTION_COST_H

#include "backend.h"
#include "devices/cost.h"

/* Of an operation, or of all in a graph. */
struct plim_dnn_attention {
    int products;
    bool is_masked;
    struct plim_dnn_tensor queries, keys, scores; /* of the first product: batch, heads, rows, columns */
};

void plim_dnn_attention_join(struct plim_dnn_attention *graph, const struct plim_dnn_attention *operation);

/* False: it is no attention. A mask is taken to be causal. */
bool plim_dnn_attention_cost(const struct plim_dnn_attention *attention, struct plim_cost *out);

#endif
