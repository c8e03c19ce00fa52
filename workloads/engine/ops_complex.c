/* Complex numbers, whose real and imaginary parts are the last dimension of an array in fp32, (.., 2). */
#include "ops.h"

/* view_as_complex() and view_as_real() need contiguous gradients. */
static void view_backward(struct engine *e, struct node *n, struct tensor **grads, struct tensor **out)
{
    (void)n;
    struct tensor *y = op_contiguous(e, grads[0]);
    out[0] = y == grads[0] ? tensor_ref(y) : tensor_keep(y);
}
static const struct node_kind view_kind = {"ViewAsRealBackward0", view_backward};

struct tensor *op_view_complex(struct engine *e, struct tensor *x)
{
    if (e->halted) return op_halted(e, 1, &x);
    struct node *n = op_node(e, &view_kind, 1, &x);
    return op_done(e, n, tensor_detach(e, x), 1, &x);
}

struct tensor *op_unit_complex(struct engine *e, struct tensor *angles)
{
    if (e->halted) return op_halted(e, 1, &angles);
    static const enum plim_unary parts[2] = {PLIM_UNARY_COS, PLIM_UNARY_SIN};
    int64_t shape[PLIM_MAX_DIMS];
    int ndim = angles->a.ndim;
    for (int i = 0; i < ndim; i++) shape[i] = angles->a.shape[i];
    shape[ndim] = 2;
    struct tensor *lengths = tensor_keep(op_full_like(e, angles, 1));
    struct tensor *y = tensor_empty(e, PLIM_F32, ndim + 1, shape);
    for (int i = 0; i < 2 && !e->halted; i++) {
        struct plim_array part = y->a;
        part.ndim--;
        part.data += (uint64_t)i * sizeof(float);
        struct plim_op op = {.kind = PLIM_OP_UNARY, .n_out = 1, .n_in = 1, .unary = (uint8_t)parts[i],
                             .out = {&part}, .in = {&angles->a}};
        engine_launch(e, &op);
    }
    tensor_drop(e, lengths);
    return op_done(e, NULL, y, 1, &angles);
}

static struct tensor *multiply(struct engine *e, struct tensor *a, struct tensor *b, double direction)
{
    struct tensor *operands[2] = {a, b};
    struct tensor *y = op_broadcast_result(e, 2, operands, PLIM_F32);
    op_launch(e, (struct plim_op){.kind = PLIM_OP_COMPLEX_MUL, .beta = direction}, 1, 2, (struct tensor *[]){y, a, b});
    return y;
}

/* The product with the conjugate, which PyTorch copies first, because the kernel takes no lazily conjugated operand */
static void multiply_backward(struct engine *e, struct node *n, struct tensor **grads, struct tensor **out)
{
    struct tensor *copy = tensor_keep(op_clone(e, node_saved(e, n, 0)));
    if (!e->halted) out[0] = tensor_keep(multiply(e, grads[0], copy, -1));
    tensor_drop(e, copy);
}
static const struct node_kind multiply_kind = {"MulBackward0", multiply_backward};

struct tensor *op_mul_complex(struct engine *e, struct tensor *a, struct tensor *b)
{
    struct tensor *operands[2] = {a, b};
    if (e->halted) return op_halted(e, 2, operands);
    struct node *n = op_node(e, &multiply_kind, 1, &a);
    if (n) node_save(e, n, 0, b);
    return op_done(e, n, multiply(e, a, b, 1), 2, operands);
}
