/* The families of operations, one file each: reference_FAMILY.c. When reference.c calls one, the
 * counts of operands are those of op.h and their types and dimensions are sound; shapes are the
 * family's to check. An input in [brackets] may be missing: see plim_reference_input(). */
#ifndef PLIM_DEVICES_HOST_REFERENCE_INTERNAL_H
#define PLIM_DEVICES_HOST_REFERENCE_INTERNAL_H

#include "element.h"
#include "reference.h"

typedef enum plim_status plim_reference_function(const struct plim_op *op);

plim_reference_function plim_reference_fill;
plim_reference_function plim_reference_arange;
plim_reference_function plim_reference_random;
plim_reference_function plim_reference_copy;
plim_reference_function plim_reference_unary;
plim_reference_function plim_reference_unary_backward;
plim_reference_function plim_reference_binary;
plim_reference_function plim_reference_where;
plim_reference_function plim_reference_tril;
plim_reference_function plim_reference_cat;
plim_reference_function plim_reference_dropout;
plim_reference_function plim_reference_reduce;
plim_reference_function plim_reference_cumsum;
plim_reference_function plim_reference_embedding;
plim_reference_function plim_reference_embedding_backward;
plim_reference_function plim_reference_softmax;
plim_reference_function plim_reference_softmax_backward;
plim_reference_function plim_reference_log_softmax;
plim_reference_function plim_reference_log_softmax_backward;
plim_reference_function plim_reference_nll_loss;
plim_reference_function plim_reference_nll_loss_backward;
plim_reference_function plim_reference_layer_norm;
plim_reference_function plim_reference_layer_norm_backward;
plim_reference_function plim_reference_layer_norm_backward_params;
plim_reference_function plim_reference_matmul;
plim_reference_function plim_reference_attention;
plim_reference_function plim_reference_attention_backward;
plim_reference_function plim_reference_foreach;
plim_reference_function plim_reference_optimizer;

/* Input i, or NULL where it was left out. */
const struct plim_array *plim_reference_input(const struct plim_op *op, int i);

/* Room for `count` doubles (at least one), the caller's to free. */
double *plim_reference_numbers(int64_t count);

#endif
