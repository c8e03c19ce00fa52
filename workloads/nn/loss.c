/* ForCausalLMLoss: fp32 logits, labels shifted by padding, mean cross entropy. */
#include "nn.h"

/* pad(labels, (0, 1), value=-100); named */
static struct tensor *padded_by_one(struct graph *g, struct tensor *labels)
{
    int64_t b = labels->a.shape[0], s = labels->a.shape[1];
    struct tensor *y = tensor_keep(op_full(g, PLIM_I64, SHAPE(b, s + 1), -100));
    struct tensor *into = tensor_keep(op_slice(g, y, 1, 0, s));
    struct plim_op op = {
        .kind = PLIM_OP_COPY, .n_out = 1, .n_in = 1, .out = {&into->a}, .in = {&labels->a}};
    if (!g->halted) graph_launch(g, &op);
    tensor_drop(g, into);
    return y;
}

struct tensor *nn_causal_lm_loss(struct graph *g, struct tensor *logits, struct tensor *labels)
{
    if (g->halted) return g->poison;
    int64_t classes = tensor_size(logits, -1), rows = tensor_elements(logits) / classes;
    struct tensor *wide = tensor_hold(op_to(g, logits, PLIM_F32));
    struct tensor *padded = padded_by_one(g, labels);
    struct tensor *target =
        tensor_hold(op_contiguous(g, op_slice(g, padded, 1, 1, tensor_size(labels, 1))));
    struct tensor *loss = tensor_keep(op_cross_entropy(g, op_view(g, wide, SHAPE(rows, classes)),
                                                       op_view(g, target, SHAPE(rows))));
    tensor_drop(g, wide);
    tensor_drop(g, padded);
    tensor_drop(g, target);
    return tensor_yield(loss);
}
