/* expm1, the logarithm, and the minimum with a scalar that needs no gradient: of xIELU, and of log(1 - exp(x)). */
#include "ops.h"

/* grad * (result + 1) */
static void expm1_backward(struct engine *e, struct node *n, struct tensor **grads, struct tensor **out)
{
    struct tensor *above = tensor_keep(op_add_scalar(e, node_saved(e, n, 0), 1));
    out[0] = tensor_keep(op_mul(e, grads[0], above));
    tensor_drop(e, above);
}
static const struct node_kind expm1_kind = {"Expm1Backward0", expm1_backward};

struct tensor *op_expm1(struct engine *e, struct tensor *x)
{
    if (e->halted) return op_halted(e, 1, &x);
    x = autocast_fp32(e, x);
    struct node *n = op_node(e, &expm1_kind, 1, &x);
    struct tensor *y = op_broadcast_result(e, 1, &x, (enum plim_dtype)x->a.dtype);
    op_launch(e, (struct plim_op){.kind = PLIM_OP_UNARY, .unary = PLIM_UNARY_EXP}, 1, 1, (struct tensor *[]){y, x});
    if (!e->halted) op_binary_scalar_(e, PLIM_BINARY_ADD, y, -1); /* PyTorch has one kernel for both */
    if (n && !e->halted) node_save_output(e, n, 0, y);
    return op_done(e, n, y, 1, &x);
}

/* grad / self */
static void log_backward(struct engine *e, struct node *n, struct tensor **grads, struct tensor **out)
{
    out[0] = tensor_keep(op_div(e, grads[0], node_saved(e, n, 0)));
}
static const struct node_kind log_kind = {"LogBackward0", log_backward};

struct tensor *op_log(struct engine *e, struct tensor *x)
{
    if (e->halted) return op_halted(e, 1, &x);
    x = autocast_fp32(e, x);
    struct node *n = op_node(e, &log_kind, 1, &x);
    if (n) node_save(e, n, 0, x);
    struct tensor *y = op_broadcast_result(e, 1, &x, (enum plim_dtype)x->a.dtype);
    op_launch(e, (struct plim_op){.kind = PLIM_OP_UNARY, .unary = PLIM_UNARY_LOG}, 1, 1, (struct tensor *[]){y, x});
    return op_done(e, n, y, 1, &x);
}

/* where(self == other, grad / 2, grad).masked_fill_(self > other, 0); all intermediate results live until its end */
static void least_backward(struct engine *e, struct node *n, struct tensor **grads, struct tensor **out)
{
    struct tensor *self = node_saved(e, n, 0);
    if (e->halted) return;
    struct tensor *half = tensor_keep(op_div_scalar(e, grads[0], 2));
    struct tensor *equal = tensor_keep(op_compare_scalar(e, PLIM_BINARY_EQ, self, n->number));
    enum plim_dtype dtype = e->halted ? PLIM_F32 : (enum plim_dtype)grads[0]->a.dtype;
    struct tensor *chosen = tensor_keep(op_where(e, equal, half, grads[0], dtype, 0, 0));
    struct tensor *above = tensor_keep(op_compare_scalar(e, PLIM_BINARY_GT, self, n->number));
    out[0] = tensor_keep(op_masked_fill_(e, chosen, above, 0));
    tensor_drop_all(e, chosen, above, equal, half);
}
static const struct node_kind least_kind = {"MinimumBackward0", least_backward};

struct tensor *op_at_most(struct engine *e, struct tensor *x, double scalar)
{
    if (e->halted) return op_halted(e, 1, &x);
    struct node *n = op_node(e, &least_kind, 1, &x);
    if (n) {
        node_save(e, n, 0, x);
        n->number = scalar;
    }
    struct tensor *y = op_broadcast_result(e, 1, &x, (enum plim_dtype)x->a.dtype);
    struct plim_op op = {.kind = PLIM_OP_BINARY, .binary = PLIM_BINARY_MIN, .alpha = scalar};
    op_launch(e, op, 1, 1, (struct tensor *[]){y, x});
    return op_done(e, n, y, 1, &x);
}
