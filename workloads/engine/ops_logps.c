/* Operations on fp32 logits in TRL 1.9's selective_log_softmax() (trainer/utils.py) and DPOTrainer
 * (trainer/dpo_trainer.py), and their gradients. */
#include "ops.h"
#include <math.h>
#include <stdlib.h>

/* --- torch.stack([torch.logsumexp(row, dim=-1) for row in x]) ------------------------------------ */

/* The results of all rows, saved for backward. */
struct row_results {
    int64_t count;
    struct tensor *of[];
};

static void drop_results(struct engine *e, void *context)
{
    struct row_results *results = context;
    for (int64_t i = 0; i < results->count; i++) tensor_drop(e, results->of[i]);
    engine_free_host(e, results);
}

/* logsumexp_out_impl() (aten/src/ATen/native/ReduceOps.cpp) of x (n, V), lent: (n), named */
static struct tensor *logsumexp(struct engine *e, struct tensor *x)
{
    int64_t rows = e->halted ? 0 : x->a.shape[0];
    struct tensor *most = tensor_keep(op_reduce(e, x, 2, true, PLIM_BINARY_MAX, 1, PLIM_F32));
    struct tensor *size = tensor_keep(op_unary(e, most, PLIM_UNARY_ABS));
    struct tensor *is_infinite = tensor_keep(op_compare_scalar(e, PLIM_BINARY_EQ, size, INFINITY));
    tensor_set(e, &most, op_masked_fill_(e, most, is_infinite, 0));
    tensor_drop_all(e, is_infinite, size);
    struct tensor *powers = tensor_keep(op_sub(e, x, most));
    if (!e->halted) op_unary_(e, PLIM_UNARY_EXP, powers);
    struct tensor *y = tensor_keep(op_reduce(e, powers, 2, false, PLIM_BINARY_ADD, 1, PLIM_F32));
    struct tensor *flat = tensor_keep(op_view(e, most, SHAPE(rows)));
    if (!e->halted) op_unary_(e, PLIM_UNARY_LOG, y);
    if (!e->halted) op_add_(e, y, flat);
    tensor_drop_all(e, flat, powers, most);
    return y;
}

/* Writes `part` to row i of x. */
static void put_row(struct engine *e, struct tensor *x, int64_t i, struct tensor *part)
{
    struct tensor *row = tensor_keep(op_select(e, x, 0, i));
    op_copy_(e, row, part);
    tensor_drop(e, row);
}

/* grad * (self - result).exp() of each row, starting with the last, and their stack (UnbindBackward0). */
static void row_logsumexp_backward(struct engine *e, struct node *n, struct tensor **grads, struct tensor **out)
{
    struct tensor *x = node_saved(e, n, 0);
    struct row_results *results = n->context;
    struct tensor **parts = calloc((size_t)results->count, sizeof(struct tensor *));
    if (!parts) engine_fail(e, PLIM_NOMEM);
    for (int64_t i = results->count; i-- > 0 && !e->halted;) {
        struct tensor *difference = tensor_keep(op_sub(e, op_select(e, x, 0, i), op_unsqueeze(e, results->of[i], -1)));
        struct tensor *share = tensor_keep(op_exp(e, difference));
        parts[i] = tensor_keep(op_mul(e, op_unsqueeze(e, op_select(e, grads[0], 0, i), -1), share));
        tensor_drop_all(e, share, difference, results->of[i]);
        results->of[i] = NULL;
    }
    tensor_drop(e, grads[0]);
    grads[0] = NULL;
    if (!e->halted) out[0] = tensor_keep(tensor_empty(e, PLIM_F32, x->a.ndim, x->a.shape));
    for (int64_t i = 0; i < results->count && parts; i++) {
        if (!e->halted) put_row(e, out[0], i, parts[i]);
        tensor_drop(e, parts[i]);
    }
    free(parts);
}
static const struct node_kind row_logsumexp_kind = {"UnbindBackward0", row_logsumexp_backward};

struct tensor *op_row_logsumexp(struct engine *e, struct tensor *x)
{
    if (e->halted) return op_halted(e, 1, &x);
    bool was = tensor_enter(x), grad = e->grad_enabled;
    int64_t rows = x->a.shape[0];
    struct node *n = op_node(e, &row_logsumexp_kind, 1, &x);
    struct row_results *results = engine_allocate_host(e, sizeof *results + (size_t)rows * sizeof(struct tensor *));
    e->grad_enabled = false;
    for (int64_t i = 0; i < rows && !e->halted; i++) {
        struct tensor *row = tensor_keep(op_select(e, x, 0, i));
        results->of[results->count++] = logsumexp(e, row);
        tensor_drop(e, row);
    }
    struct tensor *y = e->halted ? e->poison : tensor_keep(tensor_empty(e, PLIM_F32, 2, x->a.shape));
    for (int64_t i = 0; i < rows && !e->halted; i++) put_row(e, y, i, results->of[i]);
    e->grad_enabled = grad;
    if (n && results) {
        node_save(e, n, 0, x);
        n->context = results;
        n->drop_context = drop_results;
    } else if (results) {
        drop_results(e, results);
    }
    y = op_done(e, n, tensor_yield(y), 0, NULL);
    tensor_leave(e, x, was);
    return y;
}

/* --- x.gather(-1, indices.unsqueeze(-1)) --------------------------------------------------------- */

/* Launches row by row, because the kernels need contiguous rows. */
static void launch_rows(struct engine *e, enum plim_op_kind kind, struct tensor *to, struct tensor *from,
                        struct tensor *indices)
{
    for (int64_t i = 0; !e->halted && i < indices->a.shape[0]; i++) {
        struct tensor *row[3] = {tensor_keep(op_select(e, to, 0, i)), tensor_keep(op_select(e, from, 0, i)),
                                 tensor_keep(op_unsqueeze(e, op_select(e, indices, 0, i), -1))};
        op_launch(e, (struct plim_op){.kind = kind}, 1, 2, row);
        tensor_drop_list(e, row, 3);
    }
}

/* See op_gather_last(): zeros, to which the gradient is added; only the shape of self is used. */
static void row_gather_backward(struct engine *e, struct node *n, struct tensor **grads, struct tensor **out)
{
    struct tensor *x = node_saved(e, n, 0), *indices = node_saved(e, n, 1);
    if (e->halted) return;
    struct tensor *dx = tensor_keep(op_full(e, PLIM_F32, x->a.ndim, x->a.shape, 0));
    launch_rows(e, PLIM_OP_SCATTER, dx, grads[0], indices);
    out[0] = dx;
}
static const struct node_kind row_gather_kind = {"GatherBackward0", row_gather_backward};

struct tensor *op_row_gather(struct engine *e, struct tensor *x, struct tensor *indices)
{
    struct tensor *operands[2] = {x, indices};
    if (e->halted) return op_halted(e, 2, operands);
    bool grad = e->grad_enabled, were[2] = {tensor_enter(x), tensor_enter(indices)};
    struct node *n = op_node(e, &row_gather_kind, 1, &x);
    if (n) {
        node_save(e, n, 0, x);
        node_save(e, n, 1, indices);
    }
    struct tensor *y = tensor_keep(tensor_empty(e, PLIM_F32, SHAPE(x->a.shape[0], x->a.shape[1], 1)));
    e->grad_enabled = false;
    launch_rows(e, PLIM_OP_GATHER, y, x, indices);
    e->grad_enabled = grad;
    y = op_done(e, n, tensor_yield(y), 0, NULL);
    for (int i = 0; i < 2; i++) tensor_leave(e, operands[i], were[i]);
    return y;
}

/* --- TRL 1.16's kernel of log-probabilities and entropies ------------------------------------------ */

enum { LOGITS, LABELS, LOG_Z, EXPECTED };

/* Reads x once and writes y, for the simulated clock. */
static void launch_stand_in(struct engine *e, struct plim_op op, struct tensor *y, struct tensor *x)
{
    op.n_out = op.n_in = 1;
    op.out[0] = &y->a;
    op.in[0] = &x->a;
    if (!e->halted) engine_launch(e, &op);
}

/* A device that computes does it by other operations. */
static void fill_label_log_probs(struct engine *e, struct tensor *x, struct tensor *labels, struct tensor *y,
                                 struct tensor *log_z)
{
    struct tensor *norms = tensor_keep(op_row_logsumexp(e, x)), *chosen = tensor_keep(op_row_gather(e, x, labels));
    struct tensor *each = tensor_keep(op_sub(e, chosen, op_unsqueeze(e, norms, -1)));
    struct tensor *flat = tensor_keep(op_view(e, each, y->a.ndim, y->a.shape));
    op_copy_(e, y, flat);
    op_copy_(e, log_z, norms);
    tensor_drop_all(e, flat, each, chosen, norms);
}

/* grad * (one at the label - softmax) */
static void fill_label_gradient(struct engine *e, struct tensor *dx, struct tensor *x, struct tensor *labels,
                                struct tensor *log_z, struct tensor *grad)
{
    struct tensor *share = tensor_keep(op_exp(e, op_sub(e, x, op_unsqueeze(e, log_z, -1))));
    struct tensor *negative = tensor_keep(op_neg(e, grad));
    struct tensor *all = tensor_keep(op_mul(e, share, op_unsqueeze(e, negative, -1)));
    op_copy_(e, dx, all);
    struct tensor *chosen = tensor_keep(op_row_gather(e, dx, labels));
    tensor_set(e, &chosen, op_add(e, chosen, op_unsqueeze(e, grad, -1)));
    launch_rows(e, PLIM_OP_SCATTER, dx, chosen, labels);
    tensor_drop_all(e, chosen, all, negative, share);
}

static void label_log_probs_backward(struct engine *e, struct node *n, struct tensor **grads, struct tensor **out)
{
    struct tensor *x = node_saved(e, n, LOGITS), *labels = node_saved(e, n, LABELS), *log_z = node_saved(e, n, LOG_Z);
    if (e->halted) return;
    struct tensor *dx = tensor_keep(tensor_empty(e, PLIM_F32, x->a.ndim, x->a.shape));
    struct tensor *grad = tensor_keep(op_contiguous(e, grads[0]));
    struct plim_op read = {.kind = PLIM_OP_UNARY, .unary = PLIM_UNARY_EXP};
    if (e->device->info.simulated) launch_stand_in(e, read, dx, x);
    else if (!e->halted) fill_label_gradient(e, dx, x, labels, log_z, grad);
    tensor_drop(e, grad);
    out[0] = dx;
}
static const struct node_kind label_log_probs_kind = {"_LogProbEntropyFunctionBackward", label_log_probs_backward};

struct tensor *op_label_log_probs(struct engine *e, struct tensor *logits, struct tensor *labels)
{
    struct tensor *operands[2] = {logits, labels}, *made[4];
    if (e->halted) return op_halted(e, 2, operands);
    bool grad = e->grad_enabled, were[2] = {tensor_enter(logits), tensor_enter(labels)};
    struct node *n = op_node(e, &label_log_probs_kind, 1, &logits);
    /* the log-probabilities, entropies, log Z and expected logits */
    for (int i = 0; i < 4; i++) made[i] = tensor_keep(tensor_empty(e, PLIM_F32, 2, labels->a.shape));
    struct plim_op read = {.kind = PLIM_OP_REDUCE, .binary = PLIM_BINARY_ADD, .dims = 1u << 2, .alpha = 1};
    e->grad_enabled = false;
    if (e->device->info.simulated) launch_stand_in(e, read, made[0], logits);
    else if (!e->halted) fill_label_log_probs(e, logits, labels, made[0], made[2]);
    e->grad_enabled = grad;
    if (n && !e->halted) {
        node_save(e, n, LOGITS, logits);
        node_save(e, n, LABELS, labels);
        node_save(e, n, LOG_Z, made[2]);
        node_save(e, n, EXPECTED, made[3]);
    }
    tensor_drop_list(e, made + 1, 3);
    struct tensor *y = op_done(e, n, tensor_yield(made[0]), 0, NULL);
    for (int i = 0; i < 2; i++) tensor_leave(e, operands[i], were[i]);
    return y;
}

/* --- x[mask] ------------------------------------------------------------------------------------- */

/* Converts `indices` (m) of elements of (rows, n) to indices of elements of (rows, n + more). PyTorch's kernel
 * uses strides instead; a simulated device has no values. */
static void count_all(struct engine *e, struct tensor *indices, int64_t n, int64_t more)
{
    if (e->halted || e->device->info.simulated || !more) return;
    struct tensor *row = tensor_keep(op_unary(e, op_true_div_scalar(e, indices, (double)n), PLIM_UNARY_FLOOR));
    struct tensor *skipped = tensor_keep(op_to(e, op_mul_scalar(e, row, (double)more), PLIM_I64));
    op_add_(e, indices, skipped);
    tensor_drop_all(e, row, skipped);
}

struct tensor *op_apart_where(struct engine *e, struct tensor *x, struct tensor *mask, int64_t found)
{
    struct tensor *operands[2] = {x, mask};
    if (e->halted) return op_halted(e, 2, operands);
    int64_t n = x->a.shape[1], classes = x->a.shape[2], apart = x->a.stride[0] / classes;
    struct tensor *indices = tensor_keep(op_nonzero(e, mask, found));
    struct tensor *y = tensor_keep(tensor_empty(e, PLIM_F32, SHAPE(found, classes)));
    const int64_t shape[] = {(x->a.shape[0] - 1) * apart + n, classes}, stride[] = {classes, 1};
    struct tensor *rows = tensor_keep(tensor_alias(e, x, 2, shape, stride, 0));
    count_all(e, indices, n, apart - n);
    if (!e->halted)
        op_launch(e, (struct plim_op){.kind = PLIM_OP_TAKE_ROWS}, 1, 2, (struct tensor *[]){y, rows, indices});
    tensor_drop_all(e, rows, indices);
    return op_done(e, NULL, tensor_yield(y), 2, operands);
}

/* --- y = x.squeeze(-1); y[mask] = 0 -------------------------------------------------------------- */

/* CopySlices: copies the gradient, and then the part that was overwritten, which is all of it, once more. */
static void zero_where_backward(struct engine *e, struct node *n, struct tensor **grads, struct tensor **out)
{
    struct tensor *mask = node_saved(e, n, 0);
    struct tensor *all = tensor_keep(op_clone(e, grads[0])), *own = tensor_keep(op_clone(e, all));
    if (e->halted) return;
    struct tensor *part = tensor_keep(op_view(e, own, mask->a.ndim, mask->a.shape));
    struct tensor *kept = tensor_keep(op_masked_fill(e, part, mask, 0));
    struct tensor *whole = tensor_keep(op_view(e, kept, grads[0]->a.ndim, grads[0]->a.shape));
    op_copy_(e, all, whole);
    tensor_drop_all(e, whole, kept, part, own);
    out[0] = all;
}
static const struct node_kind zero_where_kind = {"CopySlices", zero_where_backward};

/* AsStridedBackward0: zeros of the base's shape, into which the gradient is copied. */
static void squeezed_backward(struct engine *e, struct node *n, struct tensor **grads, struct tensor **out)
{
    struct tensor *copy = op_clone(e, grads[0]);
    out[0] = tensor_keep(op_view(e, copy, (int)n->ints[0], n->ints + 1));
}
static const struct node_kind squeezed_kind = {"AsStridedBackward0", squeezed_backward};

struct tensor *op_zero_where_(struct engine *e, struct tensor *x, struct tensor *mask)
{
    struct tensor *operands[2] = {x, mask};
    if (e->halted) return op_halted(e, 2, operands);
    struct node *n = op_node(e, &zero_where_kind, 1, &x);
    if (n) node_save(e, n, 0, mask);
    struct tensor *all = tensor_keep(op_done(e, n, op_in_place(e, x), 0, NULL));
    struct node *view = op_node(e, &squeezed_kind, 1, &all);
    op_save_shape(view, all);
    struct tensor *y = tensor_alias(e, all, mask->a.ndim, mask->a.shape, mask->a.stride, 0);
    if (!e->halted) op_launch(e, (struct plim_op){.kind = PLIM_OP_MASKED_FILL}, 1, 2, (struct tensor *[]){y, y, mask});
    y = op_done(e, view, y, 0, NULL);
    tensor_drop(e, all);
    op_halted(e, 2, operands);
    return y;
}
