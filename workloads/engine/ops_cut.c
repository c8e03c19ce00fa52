#include "ops_cut.h"
#include "ops.h"
#include <math.h>

enum { LOCK_ROWS = PLIM_LINEAR_LOSS_TILE, LOCK_COLUMNS = PLIM_LINEAR_LOSS_COLUMNS }; /* elements guarded by one lock */
enum { SHIFT = 1 };                                                                  /* from a row to its label */
enum { X, WEIGHT, BIAS, LSE, TARGETS, VALIDS, AVERAGES };

static int64_t divide_up(int64_t n, int64_t by)
{
    return (n + by - 1) / by;
}

static const struct plim_array *array_of(const struct tensor *x)
{
    return x ? &x->a : NULL;
}

/* _build_flat_valids() of utils.py: the positions of labels that are not ignored, without the first, (found) int64;
 * named. */
static struct tensor *valid_places(struct engine *e, struct tensor *labels, int64_t found)
{
    int64_t length = tensor_size(labels, 1);
    struct tensor *later = tensor_hold(op_slice(e, labels, 1, SHIFT, length - SHIFT));
    struct tensor *counts =
        tensor_keep(op_compare_scalar(e, PLIM_BINARY_NE, later, PLIM_IGNORED_TARGET));
    struct tensor *indices = tensor_keep(op_coordinates(e, counts, found));
    tensor_drop_all(e, later, counts);
    struct tensor *narrow = tensor_keep(op_to(e, indices, PLIM_I32));
    tensor_drop(e, indices);
    if (e->halted) return narrow;
    struct tensor *rows = tensor_hold(op_select(e, narrow, 1, 0));
    op_binary_scalar_(e, PLIM_BINARY_MUL, rows, (double)length);
    tensor_drop(e, rows);
    struct tensor *flat = tensor_keep(op_reduce(e, narrow, 2, false, PLIM_BINARY_ADD, 1, PLIM_I64));
    tensor_drop(e, narrow);
    return flat;
}

/* sort_logit_avg() of cce.py: argsort, which TorchInductor leaves to ATen; named */
static struct tensor *order_of(struct engine *e, struct tensor *averages)
{
    struct tensor *sorted[2];
    op_sort(e, averages, sorted);
    tensor_drop(e, tensor_keep(sorted[0]));
    struct tensor *indices = tensor_keep(sorted[1]),
                  *order = tensor_keep(op_to(e, indices, PLIM_I32));
    tensor_drop(e, indices);
    return order;
}

static struct tensor *locks_of(struct engine *e, int64_t rows, int64_t width)
{
    return tensor_keep(
        op_full(e, PLIM_I32, SHAPE(divide_up(rows, LOCK_ROWS), divide_up(width, LOCK_COLUMNS)), 0));
}

/* cce_backward_kernel() of cce_backward.py: recomputes the logits and computes both gradients from them. The package's
 * kernel skips tiles that are too small to matter, and classes are sorted for that; ours computes all, in the given
 * order. */
static void cut_backward(struct engine *e, struct node *n, struct tensor **grads,
                         struct tensor **out)
{
    struct tensor *x = node_saved(e, n, X), *weight = node_saved(e, n, WEIGHT),
                  *bias = node_saved(e, n, BIAS), *averages = node_saved(e, n, AVERAGES),
                  *lse = node_saved(e, n, LSE), *targets = node_saved(e, n, TARGETS),
                  *valids = node_saved(e, n, VALIDS), *locks[2] = {NULL}, *dbias = NULL;
    if (e->halted) return;
    struct tensor *order = averages ? order_of(e, averages) : NULL;
    if (node_wants(n, X)) out[X] = tensor_keep(op_full_like(e, x, 0));
    if (node_wants(n, WEIGHT)) out[WEIGHT] = tensor_keep(op_full_like(e, weight, 0));
    if (node_wants(n, BIAS)) dbias = tensor_keep(op_full(e, PLIM_F32, 1, bias->a.shape, 0));
    if (out[X]) locks[0] = locks_of(e, n->ints[0], tensor_size(x, 1));
    if (out[WEIGHT]) locks[1] = locks_of(e, tensor_size(weight, 0), tensor_size(x, 1));
    const struct plim_op op = {
        .kind = PLIM_OP_LINEAR_LSE_BACKWARD,
        .n_out = 3,
        .n_in = 7,
        .n_scratch = 2,
        .softcap = n->number,
        .beta = n->scale,
        .dim = SHIFT,
        .out = {array_of(out[X]), array_of(out[WEIGHT]), array_of(dbias)},
        .in = {&grads[0]->a, &x->a, &weight->a, &lse->a, &targets->a, &valids->a, array_of(bias)},
        .scratch = {array_of(locks[0]), array_of(locks[1])}};
    if (!e->halted) engine_launch(e, &op);
    if (dbias) out[BIAS] = tensor_hold(op_to(e, dbias, (enum plim_dtype)bias->a.dtype));
    tensor_drop_all(e, dbias, locks[0], locks[1], order);
}
static const struct node_kind cut_kind = {"LinearCrossEntropyFunctionBackward", cut_backward};

/* --- forward ---------------------------------------------------------------------------------- */

/* Operands of the forward's kernels. */
struct operands {
    struct tensor *x, *targets, *valids;
};

/* cce_lse_forward_kernel() of cce_lse_forward.py; the mean logits are needed only in backward; both are named. */
static struct tensor *logsumexp(struct engine *e, const struct cut_call *c, const struct operands *of,
                                struct tensor **averages, bool learns)
{
    struct tensor *lse = tensor_keep(op_full(e, PLIM_F32, SHAPE(c->found), -INFINITY));
    struct tensor *locks =
        tensor_keep(op_full(e, PLIM_I32, SHAPE(divide_up(c->found, LOCK_ROWS)), 0));
    *averages = learns ? tensor_keep(op_full(e, PLIM_F32, SHAPE(tensor_size(c->weight, 0)), 0)) : NULL;
    const struct plim_op op = {.kind = PLIM_OP_LINEAR_LSE,
                               .n_out = 2,
                               .n_in = 4,
                               .n_scratch = 1,
                               .softcap = c->softcap,
                               .out = {&lse->a, array_of(*averages)},
                               .in = {&of->x->a, &c->weight->a, &of->valids->a, array_of(c->bias)},
                               .scratch = {&locks->a}};
    if (!e->halted) engine_launch(e, &op);
    tensor_drop(e, locks);
    return lse;
}

/* softcapping() of utils.py, one kernel of TorchInductor's; named */
static struct tensor *capped(struct engine *e, struct tensor *x, double cap)
{
    struct tensor *y = tensor_keep(tensor_empty_like(e, x, PLIM_F32));
    const struct plim_op op = {.kind = PLIM_OP_UNARY,
                               .n_out = 1,
                               .n_in = 1,
                               .unary = PLIM_UNARY_SOFTCAP,
                               .alpha = cap,
                               .out = {&y->a},
                               .in = {&x->a}};
    if (!e->halted) engine_launch(e, &op);
    tensor_drop(e, x);
    return y;
}

/* Returns the negative logits of the targets (indexed_dot.py), named. */
static struct tensor *target_logits(struct engine *e, const struct cut_call *c, const struct operands *of)
{
    struct tensor *y = tensor_keep(op_full(e, PLIM_F32, SHAPE(c->found), 0));
    const struct plim_op op = {
        .kind = PLIM_OP_LINEAR_TARGET,
        .n_out = 1,
        .n_in = 5,
        .dim = SHIFT,
        .out = {&y->a},
        .in = {&of->x->a, &c->weight->a, &of->targets->a, &of->valids->a, array_of(c->bias)}};
    if (!e->halted) engine_launch(e, &op);
    return c->softcap > 0 ? capped(e, y, c->softcap) : y;
}

/* Returns the factor of each loss in the result. */
static double scale_of(const struct cut_call *c)
{
    return c->is_sum ? 1 : 1.0 / (double)c->found;
}

static void save(struct engine *e, struct node *n, const struct cut_call *c, const struct operands *of,
                 struct tensor *lse, struct tensor *averages)
{
    if (!n || e->halted) return;
    n->ints[0] = c->found;
    n->number = c->softcap;
    n->scale = scale_of(c);
    node_save(e, n, X, of->x);
    node_save(e, n, WEIGHT, c->weight);
    node_save(e, n, BIAS, c->bias);
    node_save(e, n, LSE, lse);
    node_save(e, n, TARGETS, of->targets);
    node_save(e, n, VALIDS, of->valids);
    node_save(e, n, AVERAGES, averages);
    node_retain(e, n, of->valids); /* ctx.params */
}

struct tensor *op_cut_cross_entropy(struct engine *e, const struct cut_call *c)
{
    if (e->halted) return e->poison;
    int64_t width = tensor_size(c->x, -1), rows = tensor_elements(c->x) / width;
    struct tensor *dense = tensor_hold(op_contiguous(e, c->x));
    struct operands of;
    of.valids = valid_places(e, c->labels, c->found);
    of.x = tensor_hold(op_view(e, dense, SHAPE(rows, width)));
    of.targets = tensor_hold(op_view(e, c->labels, SHAPE(rows)));
    struct tensor *given[3] = {of.x, c->weight, c->bias}, *averages;
    bool grad = e->grad_enabled,
         learns = !e->halted && (of.x->requires_grad || c->weight->requires_grad);
    struct node *n = op_node(e, &cut_kind, 3, given);
    e->grad_enabled = false; /* an autograd.Function's forward runs without gradients */
    struct tensor *lse = logsumexp(e, c, &of, &averages, learns);
    struct tensor *losses = target_logits(e, c, &of);
    op_add_(e, losses, lse);
    struct tensor *y = op_reduce(e, losses, 1, false, PLIM_BINARY_ADD, scale_of(c), PLIM_F32);
    e->grad_enabled = grad;
    save(e, n, c, &of, lse, averages);
    tensor_drop_all(e, losses, averages, lse, of.targets, of.x, of.valids, dense);
    return op_done(e, n, y, 0, NULL);
}
