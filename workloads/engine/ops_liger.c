/* The kernels of liger-kernel 0.8 that transformers' use_liger_kernel applies to llama and related models: what
 * LigerRMSNormFunction, LigerRopeFunction, LigerSiLUMulFunction, LigerGELUMulFunction and
 * LigerFusedLinearCrossEntropyFunction allocate, keep and overwrite. Each Triton kernel is an operation of its own
 * (RMS_NORM, ROTATE, GATED, CROSS_ENTROPY and their backward). Triton's kernels round some intermediate results to the
 * 16-bit type of a factor, these operations do not. */
#include "ops.h"
#include "ops_liger.h"

enum { GENERATION_OF_ADDMM = 80 }; /* compute capability from which gradients are accumulated in place */

/* Python's autograd.Function runs its forward without gradients. */
static bool enter_function(struct engine *e)
{
    bool grad = e->grad_enabled;
    e->grad_enabled = false;
    return grad;
}

/* Returns another tensor on the memory of `x`, like .view(); named. */
static struct tensor *same_memory(struct engine *e, struct tensor *x)
{
    return tensor_keep(tensor_alias(e, x, x->a.ndim, x->a.shape, x->a.stride, 0));
}

/* --- RMSNorm ---------------------------------------------------------------------------------- */

enum { NORM_X, NORM_WEIGHT, NORM_RSTD };

/* dX overwrites dY (`in_place`) or has its own memory; dW is the sum of partial sums, one per multiprocessor. */
static void differentiate_rms_norm(struct engine *e, struct node *n, struct tensor **grads, struct tensor **out,
                                   bool in_place)
{
    struct tensor *x = node_saved(e, n, NORM_X), *weight = node_saved(e, n, NORM_WEIGHT),
                  *rstd = node_saved(e, n, NORM_RSTD);
    if (e->halted) return;
    int64_t parts = e->device->info.multiprocessors, width = tensor_size(x, -1);
    struct tensor *dy = tensor_hold(op_contiguous(e, grads[0]));
    struct tensor *partial =
        node_wants(n, NORM_WEIGHT) ? tensor_keep(tensor_empty(e, PLIM_F32, SHAPE(parts, width))) : NULL;
    struct tensor *dx = in_place ? tensor_ref(dy) : tensor_keep(op_full_like(e, dy, 0));
    struct plim_op op = {.kind = PLIM_OP_RMS_NORM_BACKWARD, .beta = n->number};
    if (partial)
        op_launch(e, op, 2, 4, (struct tensor *[]){dx, partial, dy, x, weight, rstd});
    else
        op_launch(e, op, 1, 4, (struct tensor *[]){dx, dy, x, weight, rstd});
    if (node_wants(n, NORM_X)) out[NORM_X] = same_memory(e, dx);
    tensor_drop(e, dx);
    if (partial && !e->halted) {
        struct tensor *sum = op_reduce(e, partial, 1, false, PLIM_BINARY_ADD, 1, PLIM_F32);
        out[NORM_WEIGHT] = tensor_keep(op_to(e, sum, (enum plim_dtype)weight->a.dtype));
    }
    tensor_drop(e, partial);
    tensor_drop(e, dy);
}

static void rms_norm_backward(struct engine *e, struct node *n, struct tensor **grads, struct tensor **out)
{
    differentiate_rms_norm(e, n, grads, out, true);
}
static const struct node_kind rms_norm_kind = {"LigerRMSNormFunctionBackward", rms_norm_backward};

static void rms_norm_apart_backward(struct engine *e, struct node *n, struct tensor **grads, struct tensor **out)
{
    differentiate_rms_norm(e, n, grads, out, false);
}
static const struct node_kind rms_norm_apart_kind = {"LigerRMSNormFunctionBackward", rms_norm_apart_backward};

struct tensor *op_liger_rms_norm(struct engine *e, struct tensor *x, struct tensor *weight, double epsilon,
                                 double offset, bool in_place)
{
    struct tensor *given[2] = {x, weight};
    if (e->halted) return op_halted(e, 2, given);
    bool was = tensor_enter(x);
    struct node *n = op_node(e, in_place ? &rms_norm_kind : &rms_norm_apart_kind, 2, given);
    bool grad = enter_function(e);
    struct tensor *dense = tensor_hold(op_contiguous(e, x));
    struct tensor *y = tensor_empty(e, (enum plim_dtype)x->a.dtype, x->a.ndim, x->a.shape);
    struct tensor *rstd =
        tensor_keep(tensor_empty(e, PLIM_F32, SHAPE(tensor_elements(x) / tensor_size(x, -1))));
    struct plim_op op = {.kind = PLIM_OP_RMS_NORM, .alpha = epsilon, .beta = offset};
    op_launch(e, op, 2, 2, (struct tensor *[]){y, rstd, dense, weight});
    e->grad_enabled = grad;
    if (n) {
        n->number = offset;
        node_save(e, n, NORM_X, dense);
        node_save(e, n, NORM_WEIGHT, weight);
        node_save_output(e, n, NORM_RSTD, rstd);
    }
    tensor_drop(e, dense);
    tensor_drop(e, rstd);
    y = op_done(e, n, y, 0, NULL);
    tensor_leave(e, x, was);
    return y;
}

/* --- LayerNorm -------------------------------------------------------------------------------- */

enum { LAYER_X, LAYER_WEIGHT, LAYER_BIAS, LAYER_MEAN, LAYER_RSTD };

/* _DW.sum(dim=0).to(W.dtype); named */
static struct tensor *sum_parts(struct engine *e, struct tensor *partial, struct tensor *parameter)
{
    if (!partial || e->halted) return NULL;
    struct tensor *sum = op_reduce(e, partial, 1, false, PLIM_BINARY_ADD, 1, PLIM_F32);
    return tensor_keep(op_to(e, sum, (enum plim_dtype)parameter->a.dtype));
}

/* One kernel computes dX and, for each multiprocessor, partial sums of dW and dB. */
static void layer_norm_backward(struct engine *e, struct node *n, struct tensor **grads, struct tensor **out)
{
    struct tensor *x = node_saved(e, n, LAYER_X), *weight = node_saved(e, n, LAYER_WEIGHT),
                  *bias = node_saved(e, n, LAYER_BIAS), *mean = node_saved(e, n, LAYER_MEAN),
                  *rstd = node_saved(e, n, LAYER_RSTD);
    if (e->halted) return;
    int64_t parts = e->device->info.multiprocessors, width = tensor_size(x, -1);
    struct tensor *dy = tensor_hold(op_contiguous(e, grads[0]));
    struct tensor *partial[2] = {NULL, NULL};
    for (int i = 0; i < 2; i++)
        if (node_wants(n, LAYER_WEIGHT + i)) partial[i] = tensor_keep(tensor_empty(e, PLIM_F32, SHAPE(parts, width)));
    struct tensor *dx = tensor_keep(op_full_like(e, x, 0));
    op_launch(e, (struct plim_op){.kind = PLIM_OP_LAYER_NORM_BACKWARD}, 1, 5,
              (struct tensor *[]){dx, dy, x, mean, rstd, weight});
    if (partial[0] && partial[1])
        op_launch(e, (struct plim_op){.kind = PLIM_OP_LAYER_NORM_BACKWARD_PARAMS}, 2, 4,
                  (struct tensor *[]){partial[0], partial[1], dy, x, mean, rstd});
    if (node_wants(n, LAYER_X)) out[LAYER_X] = same_memory(e, dx);
    tensor_drop(e, dx);
    out[LAYER_WEIGHT] = sum_parts(e, partial[0], weight);
    out[LAYER_BIAS] = sum_parts(e, partial[1], bias);
    tensor_drop_all(e, partial[0], partial[1], dy);
}
static const struct node_kind liger_layer_norm_kind = {"LigerLayerNormFunctionBackward", layer_norm_backward};

struct tensor *op_liger_layer_norm(struct engine *e, struct tensor *x, struct tensor *weight, struct tensor *bias,
                                   double epsilon)
{
    struct tensor *given[3] = {x, weight, bias};
    if (e->halted) return op_halted(e, 3, given);
    bool was = tensor_enter(x);
    struct node *n = op_node(e, &liger_layer_norm_kind, 3, given);
    bool grad = enter_function(e);
    struct tensor *dense = tensor_hold(op_contiguous(e, x));
    int64_t rows = tensor_elements(x) / tensor_size(x, -1);
    struct tensor *y = tensor_empty(e, (enum plim_dtype)x->a.dtype, x->a.ndim, x->a.shape);
    struct tensor *mean = tensor_keep(tensor_empty(e, PLIM_F32, SHAPE(rows)));
    struct tensor *rstd = tensor_keep(tensor_empty(e, PLIM_F32, SHAPE(rows)));
    op_launch(e, (struct plim_op){.kind = PLIM_OP_LAYER_NORM, .alpha = epsilon}, 3, 3,
              (struct tensor *[]){y, mean, rstd, dense, weight, bias});
    e->grad_enabled = grad;
    if (n) {
        node_save(e, n, LAYER_X, dense);
        node_save(e, n, LAYER_WEIGHT, weight);
        node_save(e, n, LAYER_BIAS, bias);
        node_save_output(e, n, LAYER_MEAN, mean);
        node_save_output(e, n, LAYER_RSTD, rstd);
    }
    tensor_drop_all(e, dense, mean, rstd);
    y = op_done(e, n, y, 0, NULL);
    tensor_leave(e, x, was);
    return y;
}

/* --- rotary embedding ------------------------------------------------------------------------- */

enum { ROPE_COS, ROPE_SIN };

/* Rotates both in place if they are in (B, S, A, D) order in memory; otherwise rotates copies in that order. op: the
 * kernel's parameters; *angles: cos and sin, contiguous, as the kernel needs them; named. */
static void turn(struct engine *e, struct plim_op op, struct tensor *const x[2], struct tensor *const given[2],
                 struct tensor *angles[2], struct tensor *y[2])
{
    struct tensor *dense[2];
    for (int i = 0; i < 2; i++)
        dense[i] = tensor_hold(op_contiguous(e, op_transpose(e, x[i], 1, 2)));
    for (int i = 0; i < 2; i++) angles[i] = tensor_hold(op_contiguous(e, given[i]));
    op_launch(e, op, 2, 4, (struct tensor *[]){dense[0], dense[1], dense[0], dense[1], angles[0], angles[1]});
    for (int i = 0; i < 2; i++) {
        y[i] = tensor_keep(op_transpose(e, dense[i], 1, 2));
        tensor_drop(e, dense[i]);
    }
}

static void rope_backward(struct engine *e, struct node *n, struct tensor **grads,
                          struct tensor **out)
{
    struct tensor *const saved[2] = {node_saved(e, n, ROPE_COS), node_saved(e, n, ROPE_SIN)};
    struct tensor *angles[2], *turned[2];
    if (e->halted) return;
    struct plim_op back = {.kind = PLIM_OP_ROTATE, .pairs = n->ints[0], .beta = -1};
    turn(e, back, grads, saved, angles, turned);
    tensor_drop_all(e, angles[0], angles[1]);
    for (int i = 0; i < 2; i++) {
        if (node_wants(n, i))
            out[i] = turned[i];
        else
            tensor_drop(e, turned[i]);
    }
}
static const struct node_kind rope_kind = {"LigerRopeFunctionBackward", rope_backward};

void op_liger_rope(struct engine *e, struct tensor *const x[2], struct tensor *const angles[2], int64_t pairs,
                   struct tensor *y[2])
{
    y[0] = y[1] = e->poison;
    if (e->halted) return;
    struct node *n = op_node(e, &rope_kind, 2, x);
    bool grad = enter_function(e);
    struct tensor *dense[2];
    turn(e, (struct plim_op){.kind = PLIM_OP_ROTATE, .pairs = pairs, .beta = 1}, x, angles, dense, y);
    e->grad_enabled = grad;
    if (n && !e->halted) {
        n->ints[0] = pairs;
        node_save(e, n, ROPE_COS, dense[0]);
        node_save(e, n, ROPE_SIN, dense[1]);
        for (int i = 0; i < 2; i++) node_attach(n, y[i]);
    }
    tensor_drop_all(e, dense[0], dense[1]);
}

/* --- SwiGLU and GeGLU ------------------------------------------------------------------------- */

enum { GATE, UP };

/* Both gradients overwrite the saved tensors: ensure_contiguous()'s copies of the halves of one projection. */
static void gated_backward(struct engine *e, struct node *n, struct tensor **grads, struct tensor **out)
{
    struct tensor *gate = node_saved(e, n, GATE), *up = node_saved(e, n, UP);
    if (e->halted) return;
    struct tensor *dy = tensor_hold(op_contiguous(e, grads[0]));
    struct plim_op op = {.kind = PLIM_OP_GATED_BACKWARD, .unary = (uint8_t)n->ints[0]};
    op_launch(e, op, 2, 3, (struct tensor *[]){gate, up, dy, gate, up});
    if (node_wants(n, GATE)) out[GATE] = same_memory(e, gate);
    if (node_wants(n, UP)) out[UP] = same_memory(e, up);
    tensor_drop(e, dy);
}
static const struct node_kind gated_kind = {"LigerSiLUMulFunctionBackward", gated_backward};

struct tensor *op_liger_gated(struct engine *e, enum plim_unary f, struct tensor *gate, struct tensor *up)
{
    struct tensor *given[2] = {gate, up};
    if (e->halted) return op_halted(e, 2, given);
    bool was[2] = {tensor_enter(gate), tensor_enter(up)};
    struct node *n = op_node(e, &gated_kind, 2, given);
    bool grad = enter_function(e);
    struct tensor *dense[2] = {tensor_hold(op_contiguous(e, gate)), tensor_hold(op_contiguous(e, up))};
    struct tensor *y = tensor_empty(e, (enum plim_dtype)gate->a.dtype, gate->a.ndim, gate->a.shape);
    struct plim_op op = {.kind = PLIM_OP_GATED, .unary = (uint8_t)f};
    op_launch(e, op, 1, 2, (struct tensor *[]){y, dense[GATE], dense[UP]});
    e->grad_enabled = grad;
    if (n) {
        n->ints[0] = f;
        node_save(e, n, GATE, dense[GATE]);
        node_save(e, n, UP, dense[UP]);
    }
    tensor_drop_all(e, dense[GATE], dense[UP]);
    y = op_done(e, n, y, 0, NULL);
    tensor_leave(e, gate, was[GATE]);
    tensor_leave(e, up, was[UP]);
    return y;
}

/* --- cross entropy ---------------------------------------------------------------------------- */

/* torch.equal(grad, 1.0), which the host reads. On a simulated device, which has no values, returns `simulated`. */
static bool is_one(struct engine *e, struct tensor *grad, bool simulated)
{
    struct tensor *one = tensor_keep(op_full(e, PLIM_F32, 0, NULL, 1));
    struct tensor *same = op_compare(e, PLIM_BINARY_EQ, grad, one);
    struct tensor *all = tensor_keep(op_reduce(e, same, 0, false, PLIM_BINARY_AND, 1, PLIM_BOOL));
    bool answer = engine_item(e, all) != 0;
    tensor_drop(e, all);
    tensor_drop(e, one);
    return e->device->info.simulated ? simulated : answer;
}

/* Counts the targets that are not ignored, which the host reads; *scale is 1 / their number. A caller that requests the
 * sum and divides it itself also gets this mean, and divides by 1. Returns the comparison, which outlives the call;
 * named. */
static struct tensor *count_targets(struct engine *e, struct tensor *target, double *scale)
{
    struct tensor *counts = tensor_keep(op_compare_scalar(e, PLIM_BINARY_NE, target, PLIM_IGNORED_TARGET));
    struct tensor *number = tensor_keep(op_reduce(e, counts, 1, false, PLIM_BINARY_ADD, 1, PLIM_I64));
    double found = engine_item(e, number);
    *scale = found > 0 ? 1 / found : 0;
    tensor_drop(e, number);
    return counts;
}

/* assert that fold(target * counts) compares with `bound`, which the host reads. */
static void check_targets(struct engine *e, struct tensor *target, struct tensor *counts, enum plim_binary fold,
                          enum plim_binary compares, double bound)
{
    struct tensor *found = op_reduce(e, op_mul(e, target, counts), 1, false, fold, 1, PLIM_I64);
    struct tensor *is_within = tensor_keep(op_compare_scalar(e, compares, found, bound));
    engine_item(e, is_within);
    tensor_drop(e, is_within);
}

/* The gradient has replaced the logits in forward, and is scaled in place. */
static void cross_entropy_backward(struct engine *e, struct node *n, struct tensor **grads, struct tensor **out)
{
    struct tensor *logits = node_saved(e, n, 0);
    if (e->halted) return;
    if (!is_one(e, grads[0], false)) op_binary_(e, PLIM_BINARY_MUL, logits, grads[0]);
    out[0] = same_memory(e, logits);
}
static const struct node_kind cross_entropy_kind = {"LigerCrossEntropyFunctionBackward", cross_entropy_backward};

struct tensor *op_liger_cross_entropy(struct engine *e, struct tensor *logits, struct tensor *target)
{
    struct tensor *given[2] = {logits, target};
    if (e->halted) return op_halted(e, 2, given);
    bool was[2] = {tensor_enter(logits), tensor_enter(target)};
    struct node *n = op_node(e, &cross_entropy_kind, 1, given);
    bool grad = enter_function(e);
    struct tensor *loss =
        tensor_keep(op_full(e, (enum plim_dtype)logits->a.dtype, SHAPE(logits->a.shape[0]), 0));
    struct plim_op op = {.kind = PLIM_OP_CROSS_ENTROPY};
    struct tensor *counts = count_targets(e, target, &op.alpha);
    check_targets(e, target, counts, PLIM_BINARY_MAX, PLIM_BINARY_LT, (double)logits->a.shape[1]);
    check_targets(e, target, counts, PLIM_BINARY_MIN, PLIM_BINARY_GE, 0);
    if (n)
        op_launch(e, op, 2, 2, (struct tensor *[]){loss, logits, logits, target});
    else
        op_launch(e, op, 1, 2, (struct tensor *[]){loss, logits, target});
    struct tensor *y = op_reduce(e, loss, 1, false, PLIM_BINARY_ADD, 1, PLIM_F32);
    e->grad_enabled = grad;
    if (n) node_save(e, n, 0, logits);
    tensor_drop_all(e, loss, counts);
    y = op_done(e, n, y, 0, NULL);
    tensor_leave(e, logits, was[0]);
    tensor_leave(e, target, was[1]);
    return y;
}

/* --- fused linear cross entropy --------------------------------------------------------------- */

enum { LOSS_X, LOSS_WEIGHT };

/* Both gradients were computed in forward. */
static void linear_cross_entropy_backward(struct engine *e, struct node *n, struct tensor **grads,
                                          struct tensor **out)
{
    struct tensor *dx = node_saved(e, n, LOSS_X), *dweight = node_saved(e, n, LOSS_WEIGHT);
    if (e->halted) return;
    if (!is_one(e, grads[0], true)) {
        op_binary_(e, PLIM_BINARY_MUL, dx, grads[0]);
        if (node_wants(n, LOSS_WEIGHT)) op_binary_(e, PLIM_BINARY_MUL, dweight, grads[0]);
    }
    if (node_wants(n, LOSS_X)) out[LOSS_X] = tensor_ref(dx);
    if (node_wants(n, LOSS_WEIGHT)) out[LOSS_WEIGHT] = tensor_ref(dweight);
}
static const struct node_kind linear_cross_entropy_kind = {
    "LigerFusedLinearCrossEntropyFunctionBackward", linear_cross_entropy_backward};

struct loss_call {
    struct tensor *x, *weight, *target; /* (rows, hidden), (classes, hidden), (rows) */
    struct tensor *dx, *dweight, *loss; /* dweight NULL: not needed */
    struct tensor *logits;              /* memory for all chunks; NULL: each chunk allocates its own */
    bool wants_gradients;
    double scale, cap; /* scale of the losses; cap of the logits, 0: none */
};

/* dweight += dlogits^T x */
static void add_to_weight(struct engine *e, const struct loss_call *c, struct tensor *dlogits,
                          struct tensor *x)
{
    enum plim_dtype low = (enum plim_dtype)dlogits->a.dtype;
    bool wide = c->dweight->a.dtype == PLIM_F32;
    bool in_place = e->device->info.compute_capability >= GENERATION_OF_ADDMM &&
                    low != PLIM_F32 && (wide || c->dweight->a.dtype == low);
    if (in_place) {
        struct tensor *rows = tensor_hold(op_to(e, x, low));
        op_mm_into(e, c->dweight, op_transpose(e, dlogits, 0, 1), rows, true);
        tensor_drop(e, rows);
        return;
    }
    struct tensor *product = tensor_keep(op_matmul(e, op_transpose(e, dlogits, 0, 1), x));
    tensor_set(e, &product, op_to(e, product, PLIM_F32));
    op_add_(e, c->dweight, product);
    tensor_drop(e, product);
}

/* Computes the logits of some rows, their gradient in the same memory, and the gradients derived from it. */
static void run_chunk(struct engine *e, const struct loss_call *c, int64_t start, int64_t count)
{
    struct tensor *x = tensor_hold(op_slice(e, c->x, 0, start, count));
    struct tensor *loss = tensor_hold(op_slice(e, c->loss, 0, start, count));
    struct tensor *dx = tensor_hold(op_slice(e, c->dx, 0, start, count));
    struct tensor *target = tensor_hold(op_slice(e, c->target, 0, start, count));
    struct tensor *logits;
    enum plim_memory_class before = engine_set_class(e, PLIM_MEMORY_LOGITS);
    if (c->logits) {
        logits = tensor_hold(op_slice(e, c->logits, 0, 0, count));
        op_mm_into(e, logits, x, op_transpose(e, c->weight, 0, 1), false);
    } else {
        logits = tensor_keep(op_matmul(e, x, op_transpose(e, c->weight, 0, 1)));
    }
    engine_set_class(e, before);
    struct plim_op op = {.kind = PLIM_OP_CROSS_ENTROPY, .alpha = c->scale, .beta = c->cap};
    if (c->wants_gradients)
        op_launch(e, op, 2, 2, (struct tensor *[]){loss, logits, logits, target});
    else
        op_launch(e, op, 1, 2, (struct tensor *[]){loss, logits, target});
    if (!c->wants_gradients) {
        /* without gradients, the loss is the only result */
    } else if (c->logits) {
        op_mm_into(e, dx, logits, tensor_ref(c->weight), false);
    } else {
        struct tensor *product = tensor_keep(op_matmul(e, logits, c->weight));
        op_copy_(e, dx, product);
        tensor_drop(e, product);
    }
    if (c->dweight && !e->halted) add_to_weight(e, c, logits, x);
    tensor_drop_all(e, logits, dx, loss, x, target);
}

static int64_t divide_up(int64_t n, int64_t by)
{
    return (n + by - 1) / by;
}

/* Returns the number of rows whose logits are at most `budget` times as large as x (rows, hidden), rounded up to a
 * power of two. */
static int64_t rows_of_chunk(int64_t rows, int64_t hidden, int64_t classes, int64_t budget)
{
    int64_t wanted = divide_up(rows, divide_up(classes, budget * hidden)), chunk = 1;
    while (chunk < wanted) chunk *= 2;
    return chunk < rows ? chunk : rows;
}

struct tensor *op_liger_linear_cross_entropy(struct engine *e, struct tensor *x, struct tensor *weight,
                                             struct tensor *target, int64_t budget, double cap)
{
    struct tensor *given[2] = {x, weight};
    if (e->halted) return op_halted(e, 1, &x);
    bool was = tensor_enter(x);
    struct node *n = op_node(e, &linear_cross_entropy_kind, 2, given);
    bool grad = enter_function(e);
    bool plain = x->a.dtype == weight->a.dtype && (!e->autocast.on || x->a.dtype == e->autocast.dtype);
    int64_t rows = x->a.shape[0], classes = weight->a.shape[0];
    int64_t chunk = rows_of_chunk(rows, x->a.shape[1], classes, budget ? budget : 1);
    struct loss_call c = {.x = x, .weight = weight, .target = target, .wants_gradients = n != NULL, .cap = cap};
    c.dx = tensor_keep(op_full_like(e, x, 0));
    if (n && node_wants(n, LOSS_WEIGHT)) c.dweight = tensor_keep(op_full_like(e, weight, 0));
    c.loss = tensor_keep(op_full(e, PLIM_F32, SHAPE(rows), 0));
    struct tensor *counts = count_targets(e, target, &c.scale);
    enum plim_memory_class before = engine_set_class(e, PLIM_MEMORY_LOGITS);
    if (plain)
        c.logits = tensor_keep(tensor_empty(e, (enum plim_dtype)x->a.dtype, SHAPE(chunk, classes)));
    engine_set_class(e, before);
    for (int64_t i = 0; i < rows && !e->halted; i += chunk)
        run_chunk(e, &c, i, chunk < rows - i ? chunk : rows - i);
    tensor_drop(e, c.logits);
    struct tensor *y = op_reduce(e, c.loss, 1, false, PLIM_BINARY_ADD, 1, PLIM_F32);
    e->grad_enabled = grad;
    if (n && !e->halted) {
        node_save(e, n, LOSS_X, c.dx);
        node_save(e, n, LOSS_WEIGHT, c.dweight);
    }
    tensor_drop_all(e, counts, c.loss, c.dweight, c.dx);
    y = op_done(e, n, y, 0, NULL);
    tensor_leave(e, x, was);
    return y;
}
