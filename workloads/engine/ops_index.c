/* Rows by index, and operations that select them; filling and dividing in place. */
#include "devices/needs/needs.h"
#include "ops.h"
#include <string.h>

/* --- top-k, maximum and sort ------------------------------------------------------------------ */

static void scatter(struct engine *e, struct tensor *x, struct tensor *indices, struct tensor *from)
{
    struct plim_op op = {.kind = PLIM_OP_SCATTER,
                         .n_out = 1,
                         .n_in = 2,
                         .out = {&x->a},
                         .in = {&from->a, &indices->a}};
    if (!e->halted) engine_launch(e, &op);
}

/* value_selecting_reduction_backward: zeros, with the gradient at the values' positions. */
static void top_k_backward(struct engine *e, struct node *n, struct tensor **grads,
                           struct tensor **out)
{
    struct tensor *indices = node_saved(e, n, 0);
    struct tensor *dx = tensor_keep(op_full(e, (enum plim_dtype)grads[0]->a.dtype, (int)n->ints[0],
                                            n->ints + 1, 0));
    scatter(e, dx, indices, grads[0]);
    out[0] = dx;
}
static const struct node_kind top_k_kind = {"TopkBackward0", top_k_backward};

static void launch_ranking(struct engine *e, enum plim_op_kind kind, struct tensor *x,
                           struct tensor *values, struct tensor *indices)
{
    struct plim_op op = {
        .kind = kind, .n_out = 2, .n_in = 1, .out = {&values->a, &indices->a}, .in = {&x->a}};
    if (!e->halted) engine_launch(e, &op);
}

void op_top_k(struct engine *e, struct tensor *x, int64_t count, struct tensor *out[2])
{
    out[0] = out[1] = e->poison;
    if (e->halted) {
        op_halted(e, 1, &x);
        return;
    }
    struct node *n = op_node(e, &top_k_kind, 1, &x);
    op_save_shape(n, x);
    int64_t shape[PLIM_MAX_DIMS];
    memcpy(shape, x->a.shape, sizeof shape);
    shape[x->a.ndim - 1] = count;
    struct tensor *values = tensor_empty(e, (enum plim_dtype)x->a.dtype, x->a.ndim, shape);
    struct tensor *indices = tensor_empty(e, PLIM_I64, x->a.ndim, shape);
    launch_ranking(e, PLIM_OP_TOP_K, x, values, indices);
    if (n) node_save(e, n, 0, indices);
    out[0] = op_done(e, n, values, 1, &x);
    out[1] = indices;
}

/* Equal elements may be selected in another order than PyTorch's, which affects only values. */
struct tensor *op_max_last(struct engine *e, struct tensor *x)
{
    struct tensor *top[2];
    op_top_k(e, x, 1, top);
    tensor_drop(e, tensor_keep(top[1]));
    return top[0];
}

void op_sort(struct engine *e, struct tensor *x, struct tensor *out[2])
{
    struct tensor *held[PLIM_SORT_MAX_NEEDS] = {NULL};
    struct plim_need needs[PLIM_SORT_MAX_NEEDS];
    out[0] = out[1] = e->poison;
    if (e->halted) {
        op_halted(e, 1, &x);
        return;
    }
    int count = plim_sort_needs(&e->device->info, (enum plim_dtype)x->a.dtype, tensor_elements(x), needs);
    out[0] = tensor_empty(e, (enum plim_dtype)x->a.dtype, x->a.ndim, x->a.shape);
    out[1] = tensor_empty(e, PLIM_I64, x->a.ndim, x->a.shape);
    op_allocate_needs(e, count, needs, held);
    launch_ranking(e, PLIM_OP_SORT, x, out[0], out[1]);
    op_release_needs(e, needs, held, count, count);
    tensor_consume(e, x);
}

struct tensor *op_histogram(struct engine *e, struct tensor *x, int64_t bins)
{
    if (e->halted) return op_halted(e, 1, &x);
    struct tensor *y = tensor_empty(e, PLIM_I32, 1, &bins);
    struct plim_op op = {
        .kind = PLIM_OP_HISTOGRAM, .n_out = 1, .n_in = 1, .out = {&y->a}, .in = {&x->a}};
    if (!e->halted) engine_launch(e, &op);
    return op_done(e, NULL, y, 1, &x);
}

/* --- rows by index ---------------------------------------------------------------------------- */

/* Returns an array (n) as a table of rows of one element; one with more dimensions as a table of contiguous rows. */
static struct plim_array as_table(const struct tensor *x)
{
    struct plim_array a = x->a;
    if (a.ndim == 1) {
        a.shape[a.ndim] = 1;
        a.stride[a.ndim++] = 1;
    }
    while (a.ndim > 2 && a.stride[1] == a.shape[2] * a.stride[2]) {
        a.shape[1] *= a.shape[2];
        a.stride[1] = a.stride[2];
        a.ndim--;
        for (int d = 2; d < a.ndim; d++) a.shape[d] = a.shape[d + 1], a.stride[d] = a.stride[d + 1];
    }
    return a;
}

static void launch_rows(struct engine *e, enum plim_op_kind kind, const struct plim_array *out,
                        const struct plim_array *in, const struct tensor *indices)
{
    struct plim_op op = {.kind = kind, .n_out = 1, .n_in = 2, .out = {out}, .in = {in, &indices->a}};
    if (!e->halted) engine_launch(e, &op);
}

/* index_backward: zeros, to which the rows are added in the order of their indices, or copied if the indices are
 * distinct. */
static void return_rows(struct engine *e, struct node *n, struct tensor **grads, struct tensor **out, bool differ)
{
    struct tensor *indices = node_saved(e, n, 0), *held[PLIM_INDEX_ADD_NEEDS] = {NULL};
    struct plim_need needs[PLIM_INDEX_ADD_NEEDS];
    if (e->halted) return;
    struct tensor *dx = tensor_keep(op_full(e, (enum plim_dtype)grads[0]->a.dtype, (int)n->ints[0],
                                            n->ints + 1, 0));
    plim_index_add_needs(&e->device->info, tensor_elements(indices), n->ints[1], needs);
    op_allocate_needs(e, PLIM_INDEX_ADD_NEEDS, needs, held);
    struct plim_array table = as_table(dx), rows = as_table(grads[0]);
    if (differ)
        launch_rows(e, PLIM_OP_PUT_ROWS, &dx->a, &grads[0]->a, indices);
    else
        launch_rows(e, PLIM_OP_EMBEDDING_BACKWARD, &table, &rows, indices);
    op_release_needs(e, needs, held, PLIM_INDEX_ADD_NEEDS, PLIM_INDEX_ADD_NEEDS);
    out[0] = dx;
}

static void rows_backward(struct engine *e, struct node *n, struct tensor **grads, struct tensor **out)
{
    return_rows(e, n, grads, out, false);
}
static const struct node_kind rows_kind = {"IndexBackward0", rows_backward};

static void different_rows_backward(struct engine *e, struct node *n, struct tensor **grads, struct tensor **out)
{
    return_rows(e, n, grads, out, true);
}
static const struct node_kind different_rows_kind = {"IndexBackward0", different_rows_backward};

static struct tensor *take_rows(struct engine *e, struct tensor *x, struct tensor *indices,
                                const struct node_kind *kind)
{
    struct tensor *operands[2] = {x, indices};
    if (e->halted) return op_halted(e, 2, operands);
    struct node *n = op_node(e, kind, 1, &x);
    op_save_shape(n, x);
    if (n) node_save(e, n, 0, indices);
    int64_t shape[PLIM_MAX_DIMS];
    memcpy(shape, x->a.shape, sizeof shape);
    shape[0] = tensor_elements(indices);
    struct tensor *y = tensor_empty(e, (enum plim_dtype)x->a.dtype, x->a.ndim, shape);
    launch_rows(e, PLIM_OP_TAKE_ROWS, &y->a, &x->a, indices);
    return op_done(e, n, y, 2, operands);
}

/* zeros.index_add_(0, indices, grad) of vectors */
static void select_rows_backward(struct engine *e, struct node *n, struct tensor **grads, struct tensor **out)
{
    struct tensor *indices = node_saved(e, n, 0);
    if (e->halted) return;
    out[0] = tensor_keep(op_full(e, (enum plim_dtype)grads[0]->a.dtype, (int)n->ints[0], n->ints + 1, 0));
    launch_rows(e, PLIM_OP_PUT_ROWS, &out[0]->a, &grads[0]->a, indices);
}
static const struct node_kind select_rows_kind = {"IndexSelectBackward0", select_rows_backward};

struct tensor *op_select_rows(struct engine *e, struct tensor *x, struct tensor *indices)
{
    return take_rows(e, x, indices, &select_rows_kind);
}

struct tensor *op_rows(struct engine *e, struct tensor *x, struct tensor *indices)
{
    return take_rows(e, x, indices, &rows_kind);
}

struct tensor *op_different_rows(struct engine *e, struct tensor *x, struct tensor *indices)
{
    return take_rows(e, x, indices, &different_rows_kind);
}

/* index_backward(), like that of rows. */
static void index_at_backward(struct engine *e, struct node *n, struct tensor **grads, struct tensor **out)
{
    enum { DIM = 6, INDEX };
    struct tensor *held[PLIM_INDEX_ADD_NEEDS] = {NULL};
    struct plim_need needs[PLIM_INDEX_ADD_NEEDS];
    if (e->halted) return;
    int dim = (int)n->ints[DIM];
    struct tensor *dx = tensor_keep(op_full(e, (enum plim_dtype)grads[0]->a.dtype, (int)n->ints[0], n->ints + 1, 0));
    plim_index_add_needs(&e->device->info, 1, n->ints[1 + dim], needs);
    op_allocate_needs(e, PLIM_INDEX_ADD_NEEDS, needs, held);
    struct tensor *part = tensor_keep(op_slice(e, dx, dim, n->ints[INDEX], 1));
    op_copy_(e, part, grads[0]);
    tensor_drop(e, part);
    op_release_needs(e, needs, held, PLIM_INDEX_ADD_NEEDS, PLIM_INDEX_ADD_NEEDS);
    out[0] = dx;
}
static const struct node_kind index_at_kind = {"IndexBackward0", index_at_backward};

struct tensor *op_index_at(struct engine *e, struct tensor *x, int dim, int64_t index)
{
    enum { DIM = 6, INDEX };
    if (e->halted) return op_halted(e, 1, &x);
    struct node *n = op_node(e, &index_at_kind, 1, &x);
    bool grad = e->grad_enabled, was = tensor_enter(x);
    op_save_shape(n, x);
    e->grad_enabled = false;
    struct tensor *indices = tensor_keep(op_full(e, PLIM_I64, SHAPE(1), (double)index));
    if (n) {
        n->ints[DIM] = dim;
        n->ints[INDEX] = index;
        node_save(e, n, 0, indices);
    }
    int64_t shape[PLIM_MAX_DIMS];
    memcpy(shape, x->a.shape, sizeof shape);
    shape[dim] = 1;
    struct tensor *y = tensor_empty(e, (enum plim_dtype)x->a.dtype, x->a.ndim, shape);
    struct tensor *part = tensor_keep(op_slice(e, x, dim, index, 1));
    op_copy_(e, y, part);
    tensor_drop_all(e, part, indices);
    e->grad_enabled = grad;
    y = op_done(e, n, y, 0, NULL);
    tensor_leave(e, x, was);
    return y;
}

/* gather_backward: zeros of the shape of self, to which the gradient is added at the gathered positions. Only the shape
 * of self is used, but the formula saves it. ints[0]: whether indices of a row may be equal. */
static void gather_backward(struct engine *e, struct node *n, struct tensor **grads, struct tensor **out)
{
    struct tensor *x = node_saved(e, n, 0), *indices = node_saved(e, n, 1);
    if (e->halted) return;
    struct tensor *dx =
        tensor_keep(op_full(e, (enum plim_dtype)grads[0]->a.dtype, x->a.ndim, x->a.shape, 0));
    struct tensor *operands[] = {dx, grads[0], indices};
    if (n->ints[0]) op_launch(e, (struct plim_op){.kind = PLIM_OP_ADD_BY_INDEX}, 1, 2, operands);
    else scatter(e, dx, indices, grads[0]);
    out[0] = dx;
}
static const struct node_kind gather_kind = {"GatherBackward0", gather_backward};

static struct tensor *gather_last(struct engine *e, struct tensor *x, struct tensor *indices, bool are_alike)
{
    struct tensor *operands[2] = {x, indices};
    if (e->halted) return op_halted(e, 2, operands);
    struct node *n = op_node(e, &gather_kind, 1, &x);
    if (n) {
        n->ints[0] = are_alike;
        node_save(e, n, 0, x);
        node_save(e, n, 1, indices);
    }
    struct tensor *y = tensor_empty(e, (enum plim_dtype)x->a.dtype, x->a.ndim, indices->a.shape);
    struct plim_op op = {
        .kind = PLIM_OP_GATHER, .n_out = 1, .n_in = 2, .out = {&y->a}, .in = {&x->a, &indices->a}};
    if (!e->halted) engine_launch(e, &op);
    return op_done(e, n, y, 2, operands);
}

struct tensor *op_gather_last(struct engine *e, struct tensor *x, struct tensor *indices)
{
    return gather_last(e, x, indices, false);
}

struct tensor *op_gather_any(struct engine *e, struct tensor *x, struct tensor *indices)
{
    return gather_last(e, x, indices, true);
}

/* The same along the first dimension, with distinct indices. */
static void gather_rows_backward(struct engine *e, struct node *n, struct tensor **grads, struct tensor **out)
{
    struct tensor *x = node_saved(e, n, 0), *indices = node_saved(e, n, 1);
    if (e->halted) return;
    out[0] = tensor_keep(op_full(e, (enum plim_dtype)grads[0]->a.dtype, x->a.ndim, x->a.shape, 0));
    launch_rows(e, PLIM_OP_PUT_ROWS, &out[0]->a, &grads[0]->a, indices);
}
static const struct node_kind gather_rows_kind = {"GatherBackward0", gather_rows_backward};

struct tensor *op_gather_rows(struct engine *e, struct tensor *x, struct tensor *indices)
{
    struct tensor *operands[2] = {x, indices};
    if (e->halted) return op_halted(e, 2, operands);
    struct node *n = op_node(e, &gather_rows_kind, 1, &x);
    if (n) {
        node_save(e, n, 0, x);
        node_save(e, n, 1, indices);
    }
    int64_t shape[PLIM_MAX_DIMS];
    memcpy(shape, x->a.shape, sizeof shape);
    shape[0] = indices->a.shape[0];
    struct tensor *y = tensor_empty(e, (enum plim_dtype)x->a.dtype, x->a.ndim, shape);
    launch_rows(e, PLIM_OP_TAKE_ROWS, &y->a, &x->a, indices);
    return op_done(e, n, y, 2, operands);
}

void op_scatter_(struct engine *e, struct tensor *x, struct tensor *indices, struct tensor *from)
{
    struct tensor *operands[2] = {indices, from};
    if (!e->halted) scatter(e, x, indices, from);
    op_halted(e, 2, operands);
}

/* --- in place --------------------------------------------------------------------------------- */

static void launch_fill(struct engine *e, struct tensor *y, struct tensor *x, struct tensor *mask, double value)
{
    struct plim_op op = {.kind = PLIM_OP_MASKED_FILL,
                         .n_out = 1,
                         .n_in = 2,
                         .alpha = value,
                         .out = {&y->a},
                         .in = {&x->a, &mask->a}};
    if (!e->halted) engine_launch(e, &op);
}

static void masked_fill_backward(struct engine *e, struct node *n, struct tensor **grads,
                                 struct tensor **out)
{
    out[0] = tensor_keep(op_masked_fill(e, grads[0], node_saved(e, n, 0), 0));
}
static const struct node_kind masked_fill_kind = {"MaskedFillBackward0", masked_fill_backward};

struct tensor *op_masked_fill(struct engine *e, struct tensor *x, struct tensor *mask, double value)
{
    struct tensor *operands[2] = {x, mask};
    if (e->halted) return op_halted(e, 2, operands);
    struct node *n = op_node(e, &masked_fill_kind, 1, &x);
    if (n) node_save(e, n, 0, mask);
    struct tensor *y = op_result(e, 1, &x, (enum plim_dtype)x->a.dtype, x->a.ndim, x->a.shape, NULL);
    launch_fill(e, y, x, mask, value);
    return op_done(e, n, y, 2, operands);
}

struct tensor *op_masked_fill_(struct engine *e, struct tensor *x, struct tensor *mask, double value)
{
    struct tensor *operands[2] = {x, mask};
    if (e->halted) return op_halted(e, 2, operands);
    struct node *n = op_node(e, &masked_fill_kind, 1, &x);
    if (n) node_save(e, n, 0, mask);
    struct tensor *y = op_in_place(e, x);
    launch_fill(e, y, x, mask, value);
    return op_done(e, n, y, 2, operands);
}

enum { SELF, OTHER };

struct tensor *op_div_(struct engine *e, struct tensor *x, struct tensor *other)
{
    struct tensor *operands[2] = {x, other};
    if (e->halted) return op_halted(e, 2, operands);
    struct node *n = op_node(e, &op_div_kind, 2, operands);
    if (n) {
        struct tensor *before = other->requires_grad ? tensor_keep(op_detached_clone(e, x)) : NULL;
        if (x->requires_grad) node_save(e, n, OTHER, other);
        if (before && !e->halted) node_save(e, n, SELF, before);
        tensor_drop(e, before);
    }
    op_binary_(e, PLIM_BINARY_DIV, x, other);
    return op_done(e, n, op_in_place(e, x), 2, operands);
}

static void mul_in_place_backward(struct engine *e, struct node *n, struct tensor **grads, struct tensor **out)
{
    out[SELF] = tensor_keep(op_mul_scalar(e, grads[0], n->number));
}
static const struct node_kind mul_in_place_kind = {"MulBackward0", mul_in_place_backward};

struct tensor *op_mul_scalar_(struct engine *e, struct tensor *x, double b)
{
    if (e->halted) return op_halted(e, 1, &x);
    struct node *n = op_node(e, &mul_in_place_kind, 1, &x);
    if (n) n->number = b;
    op_binary_scalar_(e, PLIM_BINARY_MUL, x, b);
    return op_done(e, n, op_in_place(e, x), 1, &x);
}
