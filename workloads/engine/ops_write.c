/* Writes into a part of a tensor (x[.., i] = value, x[.., a:b] = value), with autograd:
 * torch/csrc/autograd/functions/tensor.cpp, CopySlices. */
#include "ops.h"

enum { BASE, VALUE }; /* edges */
enum { NDIM, SHAPE_FROM, ORDER = 6, INDEX };

/* x[.., index] or, if `length` is not 0, x[.., index:index + length]. */
static struct tensor *part_of(struct engine *e, struct tensor *x, int dim, int64_t index, int64_t length)
{
    return tensor_keep(length ? op_slice(e, x, dim, index, length) : op_select(e, x, dim, index));
}

/* Returns the order of a dense tensor's dimensions in memory, the innermost first, three bits each. */
static int64_t order_of(const struct tensor *x)
{
    int64_t order = 0;
    for (int place = 0; place < x->a.ndim; place++) {
        int innermost = -1;
        for (int d = x->a.ndim - 1; d >= 0; d--) {
            bool is_placed = false;
            for (int i = 0; i < place; i++) is_placed = is_placed || (order >> 3 * i & 7) == d;
            if (!is_placed && (innermost < 0 || x->a.stride[d] < x->a.stride[innermost]))
                innermost = d;
        }
        order |= (int64_t)innermost << 3 * place;
    }
    return order;
}

static struct tensor *empty_in_order(struct engine *e, enum plim_dtype dtype, int ndim,
                                     const int64_t *shape, int64_t order)
{
    int64_t stride[PLIM_MAX_DIMS], step = 1;
    for (int i = 0; i < ndim; i++) {
        int64_t d = order >> 3 * i & 7;
        stride[d] = step;
        step *= shape[d];
    }
    return tensor_empty_strided(e, dtype, ndim, shape, stride);
}

/* The gradient of the value is a copy of that of the part, cast to the value's type; the gradient of the tensor is a
 * copy with zeros in the overwritten part. */
static void set_part_backward(struct engine *e, struct node *n, struct tensor **grads,
                              struct tensor **out)
{
    const struct tensor *grad = grads[0];
    enum plim_dtype dtype = (enum plim_dtype)grad->a.dtype;
    struct tensor *all = tensor_keep(
        empty_in_order(e, dtype, (int)n->ints[NDIM], n->ints + SHAPE_FROM, n->ints[ORDER]));
    op_copy_(e, all, grads[0]);
    struct tensor *part = part_of(e, all, (int)n->number, n->ints[INDEX], (int64_t)n->softcap);
    if (e->halted) return;
    int64_t stride[PLIM_MAX_DIMS];
    op_result_strides(1, &part, part->a.ndim, part->a.shape, stride);
    struct tensor *own = tensor_keep(tensor_empty_strided(e, dtype, part->a.ndim, part->a.shape, stride));
    op_copy_(e, own, part);
    struct tensor *zeros = node_wants(n, BASE) ? tensor_keep(op_full_like(e, own, 0)) : NULL;
    if (node_wants(n, VALUE)) out[VALUE] = tensor_hold(op_to(e, own, (enum plim_dtype)n->scale));
    tensor_drop(e, own);
    if (zeros) {
        op_copy_(e, part, zeros);
        out[BASE] = tensor_ref(all);
    }
    tensor_drop_all(e, zeros, part, all);
}
static const struct node_kind set_part_kind = {"CopySlices", set_part_backward};

static struct tensor *set(struct engine *e, struct tensor *x, int dim, int64_t index, int64_t length,
                          struct tensor *value)
{
    struct tensor *operands[2] = {x, value};
    if (e->halted) return op_halted(e, 2, operands);
    struct node *n = op_node(e, &set_part_kind, 2, operands);
    if (n) {
        op_save_shape(n, x);
        n->ints[ORDER] = order_of(x);
        n->ints[INDEX] = index;
        n->number = tensor_dim(x, dim);
        n->softcap = (double)length;
        n->scale = value->a.dtype;
    }
    bool grad = e->grad_enabled;
    e->grad_enabled = false;
    struct tensor *part = part_of(e, x, dim, index, length);
    op_copy_(e, part, value);
    tensor_drop(e, part);
    e->grad_enabled = grad;
    return op_done(e, n, op_in_place(e, x), 2, operands);
}

struct tensor *op_set_part_(struct engine *e, struct tensor *x, int dim, int64_t index, struct tensor *value)
{
    return set(e, x, dim, index, 0, value);
}

struct tensor *op_set_slice_(struct engine *e, struct tensor *x, int dim, int64_t start, struct tensor *value)
{
    return set(e, x, dim, start, e->halted ? 1 : tensor_size(value, dim), value);
}
