/* A convolution along rows in which each channel has a kernel of its own (conv1d with groups = channels), by ATen's
 * own kernels (native/cuda/DepthwiseConv2d.cu). */
#include "ops.h"

enum { INPUT, WEIGHT };

static void launch(struct engine *e, enum plim_op_kind kind, struct tensor *out, struct tensor *a,
                   struct tensor *b)
{
    struct plim_op op = {
        .kind = kind, .n_out = 1, .n_in = 2, .out = {&out->a}, .in = {&a->a, &b->a}};
    if (!e->halted) engine_launch(e, &op);
}

/* convolution_backward: a row becomes an image, for which it must be contiguous; the
 * weight's gradient is computed first. */
static void depthwise_backward(struct engine *e, struct node *n, struct tensor **grads,
                               struct tensor **out)
{
    struct tensor *x = node_saved(e, n, INPUT), *weight = node_saved(e, n, WEIGHT);
    if (e->halted) return;
    struct tensor *dy = tensor_hold(op_contiguous(e, grads[0])),
                  *rows = tensor_hold(op_contiguous(e, x));
    enum plim_dtype dtype = (enum plim_dtype)dy->a.dtype;
    if (node_wants(n, WEIGHT)) {
        out[WEIGHT] = tensor_keep(tensor_empty(e, dtype, weight->a.ndim, weight->a.shape));
        launch(e, PLIM_OP_DEPTHWISE_BACKWARD_WEIGHT, out[WEIGHT], dy, rows);
    }
    if (node_wants(n, INPUT)) {
        out[INPUT] = tensor_keep(tensor_empty(e, dtype, x->a.ndim, x->a.shape));
        launch(e, PLIM_OP_DEPTHWISE_BACKWARD, out[INPUT], dy, weight);
    }
    tensor_drop_all(e, rows, dy);
}
static const struct node_kind depthwise_kind = {"ConvolutionBackward0", depthwise_backward};

struct tensor *op_depthwise(struct engine *e, struct tensor *x, struct tensor *weight,
                            int64_t padding)
{
    struct tensor *operands[2] = {x, weight};
    bool was[2];
    if (e->halted) return op_halted(e, 2, operands);
    for (int i = WEIGHT; i >= INPUT; i--) { /* C++ evaluates the last argument first */
        operands[i] = autocast_low(e, operands[i]);
        was[i] = tensor_enter(operands[i]);
    }
    x = operands[INPUT], weight = operands[WEIGHT];
    struct node *n = e->halted ? NULL : op_node(e, &depthwise_kind, 2, operands);
    if (n) {
        node_save(e, n, INPUT, x);
        node_save(e, n, WEIGHT, weight);
    }
    struct tensor *y = e->poison;
    if (!e->halted) {
        struct tensor *rows = tensor_hold(tensor_is_contiguous(x) ? x : op_detached_clone(e, x));
        int64_t length = tensor_size(x, 2) + 2 * padding - tensor_size(weight, 2) + 1;
        y = tensor_empty(e, (enum plim_dtype)x->a.dtype,
                         SHAPE(tensor_size(x, 0), tensor_size(x, 1), length));
        launch(e, PLIM_OP_DEPTHWISE, y, rows, weight);
        tensor_drop(e, rows);
    }
    y = op_done(e, n, y, 0, NULL);
    for (int i = INPUT; i <= WEIGHT; i++) tensor_leave(e, operands[i], was[i]);
    return y;
}
