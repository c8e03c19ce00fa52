/* A convolution whose windows do not overlap: an image as patches (Conv2d with kernel_size = stride). */
#include "devices/needs/needs.h"
#include "ops.h"

enum { INPUT, WEIGHT, BIAS };

/* cuDNN's workspace, for the length of a call. */
static void launch(struct engine *e, struct plim_op *op, const struct tensor *x,
                   const struct tensor *weight, const struct tensor *y)
{
    int64_t bytes = plim_patches_workspace_bytes(&e->device->info, &x->a, &weight->a, &y->a);
    struct tensor *workspace = bytes ? tensor_keep(tensor_empty_bytes(e, bytes)) : NULL;
    if (!e->halted) engine_launch(e, op);
    tensor_drop(e, workspace);
}

/* ConvolutionBackward0: the gradients of weight and bias; an image has none. */
static void patches_backward(struct engine *e, struct node *n, struct tensor **grads,
                             struct tensor **out)
{
    struct tensor *x = node_saved(e, n, INPUT), *weight = node_saved(e, n, WEIGHT);
    if (e->halted) return;
    enum plim_dtype dtype = (enum plim_dtype)weight->a.dtype;
    if (node_wants(n, WEIGHT)) {
        struct tensor *dy = tensor_hold(op_contiguous(e, grads[0]));
        struct tensor *dw = tensor_keep(tensor_empty_like(e, weight, dtype));
        struct plim_op op = {.kind = PLIM_OP_PATCHES_BACKWARD,
                             .n_out = 1,
                             .n_in = 2,
                             .out = {&dw->a},
                             .in = {&dy->a, &x->a}};
        launch(e, &op, x, weight, dy);
        tensor_drop(e, dy);
        out[WEIGHT] = dw;
    }
    if (node_wants(n, BIAS))
        out[BIAS] = tensor_keep(op_reduce(e, grads[0], 1u << 0 | 1u << 2 | 1u << 3, false,
                                          PLIM_BINARY_ADD, 1, dtype));
}
static const struct node_kind patches_kind = {"ConvolutionBackward0", patches_backward};

struct tensor *op_patches(struct engine *e, struct tensor *x, struct tensor *weight,
                          struct tensor *bias)
{
    struct tensor *operands[3] = {x, weight, bias};
    bool was[3];
    if (e->halted) return op_halted(e, 3, operands);
    for (int i = BIAS; i >= INPUT; i--) { /* C++ evaluates the last argument first */
        operands[i] = autocast_low(e, operands[i]);
        was[i] = tensor_enter(operands[i]);
    }
    x = operands[INPUT], weight = operands[WEIGHT], bias = operands[BIAS];
    struct node *n = e->halted ? NULL : op_node(e, &patches_kind, 3, operands);
    if (n) {
        node_save(e, n, INPUT, x);
        node_save(e, n, WEIGHT, weight);
    }
    struct tensor *y = e->poison;
    if (!e->halted) {
        int64_t size = tensor_size(weight, 2);
        y = tensor_empty(e, (enum plim_dtype)x->a.dtype,
                         SHAPE(tensor_size(x, 0), tensor_size(weight, 0), tensor_size(x, 2) / size,
                               tensor_size(x, 3) / size));
        struct plim_op op = {.kind = PLIM_OP_PATCHES,
                             .n_out = 1,
                             .n_in = 3,
                             .out = {&y->a},
                             .in = {&x->a, &weight->a, &bias->a}};
        if (!e->halted) launch(e, &op, x, weight, y);
    }
    y = op_done(e, n, y, 0, NULL);
    for (int i = INPUT; i <= BIAS; i++) tensor_leave(e, operands[i], was[i]);
    return y;
}
