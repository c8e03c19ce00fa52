/* Triangular systems (native/BatchLinearAlgebra.cpp). */
#include "devices/needs/needs.h"
#include "ops.h"
#include <string.h>

enum { MATRIX, RIGHT }; /* edges */
enum { SAVED_MATRIX, SAVED_RESULT };

/* Returns a column-major tensor of the shape of x. */
static struct tensor *empty_by_columns(struct engine *e, const struct tensor *x)
{
    int64_t shape[PLIM_MAX_DIMS];
    int last = x->a.ndim - 1;
    memcpy(shape, x->a.shape, sizeof shape);
    shape[last] = x->a.shape[last - 1];
    shape[last - 1] = x->a.shape[last];
    return op_transpose(e, tensor_empty(e, (enum plim_dtype)x->a.dtype, x->a.ndim, shape), -2, -1);
}

/* True if each matrix has contiguous rows or contiguous columns and the matrices are adjacent. */
static bool is_ready(const struct tensor *a)
{
    struct tensor turned = *a;
    int last = a->a.ndim - 1;
    turned.a.stride[last] = a->a.stride[last - 1];
    turned.a.stride[last - 1] = a->a.stride[last];
    turned.a.shape[last] = a->a.shape[last - 1];
    turned.a.shape[last - 1] = a->a.shape[last];
    return tensor_is_contiguous(a) || tensor_is_contiguous(&turned);
}

/* Returns x of a x = b, which cuBLAS computes in place; named. cuBLAS receives the matrices as lists of their
 * addresses, unless they are few and large. */
static struct tensor *solve(struct engine *e, struct tensor *a, struct tensor *b, bool upper)
{
    struct tensor *x = tensor_keep(empty_by_columns(e, b)), *ready = tensor_ref(a),
                  *lists[2] = {NULL, NULL};
    if (e->halted) return x;
    if (!is_ready(a)) {
        tensor_set(e, &ready, empty_by_columns(e, a));
        op_copy_(e, ready, a);
    }
    int64_t bytes = plim_triangular_list_bytes(&a->a);
    for (int i = 0; i < 2 && bytes; i++) lists[i] = tensor_keep(tensor_empty_bytes(e, bytes));
    struct plim_op op = {.kind = PLIM_OP_SOLVE_TRIANGULAR,
                         .n_out = 1,
                         .n_in = 2,
                         .upper = upper,
                         .out = {&x->a},
                         .in = {&ready->a, &b->a}};
    if (!e->halted) engine_launch(e, &op);
    tensor_drop_all(e, lists[1], lists[0], ready);
    return x;
}

/* linalg_solve_triangular_backward: db = a^-T dy, da = -(db x^T) below its diagonal, or above it */
static void solve_backward(struct engine *e, struct node *n, struct tensor **grads,
                           struct tensor **out)
{
    struct tensor *a = node_saved(e, n, SAVED_MATRIX), *x = node_saved(e, n, SAVED_RESULT);
    if (e->halted) return;
    bool upper = n->ints[0];
    struct tensor *turned = tensor_keep(op_transpose(e, a, -2, -1));
    struct tensor *db = solve(e, turned, grads[0], !upper);
    if (node_wants(n, MATRIX)) {
        struct tensor *da = tensor_keep(op_matmul(e, db, op_transpose(e, x, -2, -1)));
        tensor_set(e, &da, op_neg(e, da));
        tensor_set(e, &da, upper ? op_triu(e, da, 1) : op_tril(e, da, -1));
        out[MATRIX] = da;
    }
    tensor_drop(e, turned);
    if (node_wants(n, RIGHT))
        out[RIGHT] = db;
    else
        tensor_drop(e, db);
}
static const struct node_kind solve_kind = {"LinalgSolveTriangularBackward0", solve_backward};

struct tensor *op_solve_triangular(struct engine *e, struct tensor *a, struct tensor *b, bool upper)
{
    struct tensor *operands[2] = {a, b};
    if (e->halted) return op_halted(e, 2, operands);
    struct node *n = op_node(e, &solve_kind, 2, operands);
    if (n) {
        n->ints[0] = upper;
        node_save(e, n, SAVED_MATRIX, a);
    }
    struct tensor *x = solve(e, a, b, upper);
    if (n && !e->halted) node_save_output(e, n, SAVED_RESULT, x);
    return op_done(e, n, tensor_yield(x), 2, operands);
}
