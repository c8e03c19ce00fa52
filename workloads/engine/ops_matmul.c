/* Matrix products: mm, addmm, bmm, baddbmm, and matmul and linear, which use them. */
#include "devices/needs/needs.h"
#include "ops.h"
#include "blas_workspace.h"
#include <string.h>

enum { SELF, MAT2 };          /* mm, bmm */
enum { BIAS, MAT1, FACTOR2 }; /* addmm, baddbmm: self, mat1, mat2 */

static struct tensor *t(struct engine *e, struct tensor *x)
{
    return op_transpose(e, x, -2, -1);
}

/* isInputCompliesAddmmCudaLt (native/cuda/Blas.cpp): cuBLASLt adds a bias, but not if the weight has only one row or
 * column. */
static bool is_lt(const struct tensor *b, const struct tensor *c)
{
    return c && c->a.ndim == 1 && b->a.shape[0] > 1 && b->a.shape[1] > 1;
}

static void launch(struct engine *e, struct tensor *y, struct tensor *a, struct tensor *b,
                   struct tensor *c, double beta, double alpha)
{
    bool bias_epilogue = c && c->a.ndim == 1;
    if (e->meta) return; /* the workspace is GPU memory */
    struct storage *workspace = blas_workspace_acquire(e, is_lt(b, c));
    if (e->halted) return;
    struct plim_array scratch = {.data = workspace->address,
                                 .shape = {workspace->bytes},
                                 .stride = {1},
                                 .ndim = 1,
                                 .dtype = PLIM_U8};
    struct plim_op op = {.kind = PLIM_OP_MATMUL,
                         .n_out = 1,
                         .n_in = (uint8_t)(c ? 3 : 2),
                         .n_scratch = 1,
                         .alpha = alpha,
                         .beta = beta,
                         .epilogue = bias_epilogue ? PLIM_EPILOGUE_BIAS : PLIM_EPILOGUE_NONE,
                         .tf32 = e->tf32,
                         .out = {&y->a},
                         .in = {&a->a, &b->a, c ? &c->a : NULL},
                         .scratch = {&scratch}};
    engine_launch(e, &op);
    blas_workspace_release(e, workspace);
}

/* Returns a batch of matrices itself, if cuBLAS accepts its row-major or column-major layout, otherwise a copy
 * (prepare_batch_matrix_for_cublas() in native/cuda/Blas.cpp); named. */
static struct tensor *dense_matrices(struct engine *e, struct tensor *x)
{
    if (e->halted) return tensor_ref(x);
    int64_t rows = x->a.shape[1], columns = x->a.shape[2], row = x->a.stride[1], column = x->a.stride[2];
    bool by_columns = row == 1 && column >= rows, by_rows = column == 1 && row >= columns;
    return by_columns || by_rows ? tensor_ref(x) : tensor_keep(op_detached_clone(e, x));
}

/* launch() for batches. */
static void launch_batch(struct engine *e, struct tensor *y, struct tensor *a, struct tensor *b,
                         struct tensor *c, double beta, double alpha)
{
    struct tensor *left = dense_matrices(e, a), *right = dense_matrices(e, b);
    launch(e, y, left, right, c, beta, alpha);
    tensor_drop_all(e, right, left);
}

static struct tensor *product_shape(struct engine *e, const struct tensor *a,
                                    const struct tensor *b)
{
    int64_t shape[3];
    int n = a->a.ndim;
    memcpy(shape, a->a.shape, sizeof *shape * (size_t)n);
    shape[n - 1] = b->a.shape[n - 1];
    return tensor_empty(e, (enum plim_dtype)a->a.dtype, n, shape);
}

static bool column_major(const struct tensor *x)
{
    return x->a.ndim == 2 && x->a.stride[0] == 1 && x->a.stride[1] == x->a.shape[0];
}

/* --- products without autocast ---------------------------------------------------------------- */

static struct tensor *mm(struct engine *e, struct tensor *a, struct tensor *b);

/* d(a b)/da, d(a b)/db, in the layout of a and b (mm_mat1_backward, mm_mat2_backward) */
static struct tensor *grad_of_left(struct engine *e, struct tensor *grad, struct tensor *b,
                                   bool a_is_column_major)
{
    if (a_is_column_major) return t(e, mm(e, b, t(e, grad)));
    return mm(e, grad, t(e, b));
}

static struct tensor *grad_of_right(struct engine *e, struct tensor *grad, struct tensor *a,
                                    bool b_is_column_major)
{
    if (b_is_column_major) return t(e, mm(e, t(e, grad), a));
    return mm(e, t(e, a), grad);
}

static void mm_backward(struct engine *e, struct node *n, struct tensor **grads,
                        struct tensor **out)
{
    struct tensor *b = node_wants(n, SELF) ? node_saved(e, n, MAT2) : NULL;
    struct tensor *a = node_wants(n, MAT2) ? node_saved(e, n, SELF) : NULL;
    if (a) out[MAT2] = tensor_keep(grad_of_right(e, grads[0], a, n->ints[1]));
    if (b) out[SELF] = tensor_keep(grad_of_left(e, grads[0], b, n->ints[0]));
}
static const struct node_kind mm_kind = {"MmBackward0", mm_backward};

static struct tensor *mm(struct engine *e, struct tensor *a, struct tensor *b)
{
    struct tensor *x[2] = {a, b};
    if (e->halted) return op_halted(e, 2, x);
    struct node *n = op_node(e, &mm_kind, 2, x);
    if (n) {
        n->ints[0] = column_major(a);
        n->ints[1] = column_major(b);
        if (a->requires_grad) node_save(e, n, MAT2, b);
        if (b->requires_grad) node_save(e, n, SELF, a);
    }
    struct tensor *y = product_shape(e, a, b);
    launch(e, y, a, b, NULL, 0, 1);
    return op_done(e, n, y, 2, x);
}

void op_mm_scaled(struct engine *e, struct tensor *y, struct tensor *a, struct tensor *b, double beta, double alpha)
{
    struct tensor *x[2] = {a, b};
    if (!e->halted) launch(e, y, a, b, beta == 0 ? NULL : y, beta, alpha);
    op_halted(e, 2, x);
}

void op_mm_into(struct engine *e, struct tensor *y, struct tensor *a, struct tensor *b, bool adds)
{
    op_mm_scaled(e, y, a, b, adds, 1);
}

static void addmm_backward(struct engine *e, struct node *n, struct tensor **grads,
                           struct tensor **out)
{
    struct tensor *b = node_wants(n, MAT1) ? node_saved(e, n, FACTOR2) : NULL;
    struct tensor *a = node_wants(n, FACTOR2) ? node_saved(e, n, MAT1) : NULL;
    if (b) out[MAT1] = tensor_keep(grad_of_left(e, grads[0], b, n->ints[0]));
    if (a) out[FACTOR2] = tensor_keep(grad_of_right(e, grads[0], a, n->ints[1]));
    if (node_wants(n, BIAS)) out[BIAS] = tensor_ref(grads[0]); /* summed by the autograd engine */
}
static const struct node_kind addmm_kind = {"AddmmBackward0", addmm_backward};

static struct tensor *addmm(struct engine *e, struct tensor *bias, struct tensor *a,
                            struct tensor *b)
{
    struct tensor *x[3] = {bias, a, b};
    if (e->halted) return op_halted(e, 3, x);
    struct node *n = op_node(e, &addmm_kind, 3, x);
    if (n) {
        n->ints[0] = column_major(a);
        n->ints[1] = column_major(b);
        if (b->requires_grad) node_save(e, n, MAT1, a);
        if (a->requires_grad) node_save(e, n, FACTOR2, b);
    }
    struct tensor *y = product_shape(e, a, b);
    launch(e, y, a, b, bias, 1, 1);
    return op_done(e, n, y, 3, x);
}

static struct tensor *bmm(struct engine *e, struct tensor *a, struct tensor *b);

static void bmm_backward(struct engine *e, struct node *n, struct tensor **grads,
                         struct tensor **out)
{
    struct tensor *b = node_wants(n, SELF) ? node_saved(e, n, MAT2) : NULL;
    struct tensor *a = node_wants(n, MAT2) ? node_saved(e, n, SELF) : NULL;
    if (a) out[MAT2] = tensor_keep(bmm(e, t(e, a), grads[0]));
    if (b) out[SELF] = tensor_keep(bmm(e, grads[0], t(e, b)));
}
static const struct node_kind bmm_kind = {"BmmBackward0", bmm_backward};

static struct tensor *bmm(struct engine *e, struct tensor *a, struct tensor *b)
{
    struct tensor *x[2] = {a, b};
    if (e->halted) return op_halted(e, 2, x);
    struct node *n = op_node(e, &bmm_kind, 2, x);
    if (n && a->requires_grad) node_save(e, n, MAT2, b);
    if (n && b->requires_grad) node_save(e, n, SELF, a);
    struct tensor *y = product_shape(e, a, b);
    launch_batch(e, y, a, b, NULL, 0, 1);
    return op_done(e, n, y, 2, x);
}

/* --- with autocast ---------------------------------------------------------------------------- */

/* The operands of a call, as given and as cast by autocast. Both live until the end of the call. */
struct operands {
    struct tensor *given[3], *used[3];
    bool given_floats[3], used_floats[3];
};

/* Casts from the last operand to the first: the order in which the C++ compiler evaluates the
 * arguments of PyTorch's call. */
static void cast_operands(struct engine *e, struct operands *o, const int order[3])
{
    for (int i = 0; i < 3; i++) o->given_floats[i] = tensor_enter(o->given[i]);
    for (int i = 0; i < 3; i++) {
        int k = order[i];
        o->used[k] = o->given[k] ? autocast_low(e, o->given[k]) : NULL;
        o->used_floats[k] = tensor_enter(o->used[k]);
    }
}

static void leave_operands(struct engine *e, struct operands *o)
{
    for (int i = 0; i < 3; i++) {
        tensor_leave(e, o->used[i], o->used_floats[i]);
        tensor_leave(e, o->given[i], o->given_floats[i]);
    }
}

static const int last_first[3] = {2, 1, 0};

struct tensor *op_addmm(struct engine *e, struct tensor *bias, struct tensor *a, struct tensor *b)
{
    struct operands o = {.given = {bias, a, b}};
    if (e->halted) return op_halted(e, 3, o.given);
    cast_operands(e, &o, last_first);
    struct tensor *y = addmm(e, o.used[BIAS], o.used[MAT1], o.used[FACTOR2]);
    leave_operands(e, &o);
    return y;
}

/* order of the names: batch1, batch2, self */
static void baddbmm_backward(struct engine *e, struct node *n, struct tensor **grads,
                             struct tensor **out)
{
    double alpha = n->number;
    if (node_wants(n, MAT1)) {
        struct tensor *y = bmm(e, grads[0], t(e, node_saved(e, n, FACTOR2)));
        out[MAT1] = tensor_keep(alpha == 1 ? y : op_mul_scalar(e, y, alpha));
    }
    if (node_wants(n, FACTOR2)) {
        struct tensor *y = bmm(e, t(e, node_saved(e, n, MAT1)), grads[0]);
        out[FACTOR2] = tensor_keep(alpha == 1 ? y : op_mul_scalar(e, y, alpha));
    }
    if (node_wants(n, BIAS)) out[BIAS] = tensor_ref(grads[0]);
}
static const struct node_kind baddbmm_kind = {"BaddbmmBackward0", baddbmm_backward};

static struct tensor *baddbmm(struct engine *e, struct tensor *c, struct tensor *a,
                              struct tensor *b, double beta, double alpha)
{
    struct tensor *x[3] = {c, a, b};
    if (e->halted) return op_halted(e, 3, x);
    struct node *n = op_node(e, &baddbmm_kind, 3, x);
    if (n) {
        n->number = alpha;
        if (b->requires_grad) node_save(e, n, MAT1, a);
        if (a->requires_grad) node_save(e, n, FACTOR2, b);
    }
    struct tensor *y = product_shape(e, a, b);
    launch_batch(e, y, a, b, beta == 0 ? NULL : c, beta, alpha);
    return op_done(e, n, y, 3, x);
}

struct tensor *op_baddbmm(struct engine *e, struct tensor *c, struct tensor *a, struct tensor *b,
                          double beta, double alpha)
{
    struct operands o = {.given = {c, a, b}};
    if (e->halted) return op_halted(e, 3, o.given);
    cast_operands(e, &o, last_first);
    struct tensor *y = baddbmm(e, o.used[BIAS], o.used[MAT1], o.used[FACTOR2], beta, alpha);
    leave_operands(e, &o);
    return y;
}

struct tensor *op_bmm(struct engine *e, struct tensor *a, struct tensor *b)
{
    struct operands o = {.given = {a, b}};
    if (e->halted) return op_halted(e, 2, o.given);
    cast_operands(e, &o, last_first);
    struct tensor *y = bmm(e, o.used[0], o.used[1]);
    leave_operands(e, &o);
    return y;
}

/* --- matmul and linear ------------------------------------------------------------------------ */

/* x (.., k) times b (k, n): folds x to two dimensions and runs one mm; the result of _unsafe_view() is not a view. */
static struct tensor *folded(struct engine *e, struct tensor *x, struct tensor *b)
{
    int64_t shape[PLIM_MAX_DIMS], rows = 1;
    int n = x->a.ndim;
    memcpy(shape, x->a.shape, sizeof shape);
    for (int i = 0; i < n - 1; i++) rows *= shape[i];
    shape[n - 1] = b->a.shape[1];
    struct tensor *flat = op_reshape(e, x, SHAPE(rows, x->a.shape[n - 1]));
    struct tensor *y = op_view(e, mm(e, flat, b), n, shape);
    if (!e->halted) y->is_view = false;
    return y;
}

/* folds the batch dimensions of an operand into one */
static struct tensor *batched(struct engine *e, struct tensor *x, int ndim, const int64_t *shape)
{
    int64_t batch = 1;
    for (int i = 0; i < ndim - 2; i++) batch *= shape[i];
    struct tensor *wide = op_expand(e, x, ndim, shape);
    return op_reshape(e, wide, SHAPE(batch, shape[ndim - 2], shape[ndim - 1]));
}

/* should_fold() (native/LinearAlgebra.cpp): if b needs a gradient, which would otherwise be one per matrix of the
 * batch, and if folding needs no copy. */
static bool folds(const struct tensor *a, const struct tensor *b)
{
    bool lies_together = true;
    for (int i = 0; i + 2 < a->a.ndim; i++)
        lies_together &= a->a.stride[i] == a->a.stride[i + 1] * a->a.shape[i + 1];
    return b->requires_grad || lies_together;
}

static struct tensor *matmul(struct engine *e, struct tensor *a, struct tensor *b)
{
    if (a->a.ndim == 2 && b->a.ndim == 2) return mm(e, a, b);
    if (b->a.ndim == 2 && folds(a, b)) return folded(e, a, b);
    int ndim = a->a.ndim > b->a.ndim ? a->a.ndim : b->a.ndim;
    int64_t left[PLIM_MAX_DIMS], right[PLIM_MAX_DIMS], shape[PLIM_MAX_DIMS];
    for (int i = 0; i < ndim - 2; i++) {
        int ia = i - (ndim - a->a.ndim), ib = i - (ndim - b->a.ndim);
        int64_t na = ia < 0 ? 1 : a->a.shape[ia], nb = ib < 0 ? 1 : b->a.shape[ib];
        left[i] = right[i] = shape[i] = na == 1 ? nb : na;
    }
    for (int i = 2; i > 0; i--) {
        left[ndim - i] = tensor_size(a, -i);
        right[ndim - i] = tensor_size(b, -i);
    }
    shape[ndim - 2] = left[ndim - 2];
    shape[ndim - 1] = right[ndim - 1];
    struct tensor *l = batched(e, a, ndim, left);
    struct tensor *r = batched(e, b, ndim, right);
    return op_view(e, bmm(e, l, r), ndim, shape);
}

struct tensor *op_matmul(struct engine *e, struct tensor *a, struct tensor *b)
{
    struct operands o = {.given = {a, b}};
    if (e->halted) return op_halted(e, 2, o.given);
    cast_operands(e, &o, last_first);
    struct tensor *y = e->halted ? e->poison : matmul(e, o.used[0], o.used[1]);
    leave_operands(e, &o);
    return y;
}

/* Returns x with all rows in one dimension, copied if necessary. */
static struct tensor *rows_of(struct engine *e, struct tensor *x)
{
    int64_t width = tensor_size(x, -1);
    return op_reshape(e, x, SHAPE(tensor_elements(x) / width, width));
}

enum { INPUT, WEIGHT, LINEAR_BIAS };

static void function_backward(struct engine *e, struct node *n, struct tensor **grads,
                              struct tensor **out)
{
    struct tensor *x = node_saved(e, n, INPUT), *weight = node_saved(e, n, WEIGHT);
    node_saved(e, n, LINEAR_BIAS); /* unpacked with them, but not used */
    if (e->halted) return;
    if (node_wants(n, INPUT)) out[INPUT] = tensor_keep(matmul(e, grads[0], weight));
    if (node_wants(n, WEIGHT))
        out[WEIGHT] = tensor_keep(mm(e, t(e, rows_of(e, grads[0])), rows_of(e, x)));
    if (node_wants(n, LINEAR_BIAS))
        out[LINEAR_BIAS] = tensor_keep(op_sum_to(e, grads[0], 1, &weight->a.shape[0]));
}
static const struct node_kind function_kind = {"LinearFunctionForZeroStage3Backward",
                                               function_backward};

struct tensor *op_linear_function(struct engine *e, struct tensor *x, struct tensor *weight,
                                  struct tensor *bias)
{
    struct tensor *given[3] = {x, weight, bias};
    if (e->halted) return op_halted(e, 3, given);
    struct node *n = op_node(e, &function_kind, bias ? 3 : 2, given);
    bool grad_enabled = e->grad_enabled, was = tensor_enter(x);
    e->grad_enabled = false;
    bool in_one = x->a.ndim == 2 && bias;
    bool in_rows = x->a.ndim > 2 && weight->requires_grad; /* its transpose tells folds() so there, if not here */
    struct tensor *turned = t(e, weight);
    struct tensor *y = in_one ? addmm(e, bias, x, turned) : in_rows ? folded(e, x, turned) : matmul(e, x, turned);
    if (bias && !in_one && !e->halted) op_add_(e, y, bias);
    e->grad_enabled = grad_enabled;
    if (n) {
        node_save(e, n, INPUT, x);
        node_save(e, n, WEIGHT, weight);
        if (bias) node_save(e, n, LINEAR_BIAS, bias);
    }
    y = op_done(e, n, y, 0, NULL);
    tensor_leave(e, x, was);
    return y;
}

static struct tensor *linear(struct engine *e, struct tensor *x, struct tensor *weight,
                             struct tensor *bias)
{
    if (!bias) {
        struct tensor *wt = t(e, weight);
        return x->a.ndim == 2 ? mm(e, x, wt) : folded(e, x, wt);
    }
    if (x->a.ndim == 2) return addmm(e, bias, x, t(e, weight));
    int64_t shape[PLIM_MAX_DIMS], rows = 1;
    int n = x->a.ndim;
    memcpy(shape, x->a.shape, sizeof shape);
    for (int i = 0; i < n - 1; i++) rows *= shape[i];
    int64_t k = shape[n - 1];
    shape[n - 1] = weight->a.shape[0];
    struct tensor *flat = op_reshape(e, x, SHAPE(rows, k));
    return op_view(e, addmm(e, bias, flat, t(e, weight)), n, shape);
}

struct tensor *op_linear(struct engine *e, struct tensor *x, struct tensor *weight,
                         struct tensor *bias)
{
    struct operands o = {.given = {x, weight, bias}};
    if (e->halted) return op_halted(e, 3, o.given);
    cast_operands(e, &o, last_first);
    struct tensor *y = e->halted ? e->poison : linear(e, o.used[0], o.used[1], o.used[2]);
    leave_operands(e, &o);
    return y;
}
