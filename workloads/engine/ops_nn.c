/* Norms, softmax, losses, dropout, embedding: one ATen kernel each. */
#include "devices/needs/needs.h"
#include "ops.h"
#include <math.h>
#include <string.h>

static int64_t rows_of(const struct tensor *x)
{
    return tensor_elements(x) / tensor_size(x, -1);
}

/* --- layer norm ------------------------------------------------------------------------------- */

enum { LN_INPUT, LN_WEIGHT, LN_BIAS };
enum { LN_SAVED_BIAS, LN_SAVED_INPUT, LN_SAVED_WEIGHT, LN_SAVED_MEAN, LN_SAVED_RSTD };

/* The second pass for many rows: sums the partial sums (rows, width) of a parameter's gradient into a new array, which
 * replaces the gradient. */
static void sum_partials(struct engine *e, struct tensor *partials, struct tensor **gradient)
{
    enum plim_dtype dtype = (enum plim_dtype)(*gradient)->a.dtype;
    tensor_set(e, gradient, op_reduce(e, partials, 1, false, PLIM_BINARY_ADD, 1, dtype));
}

/* `dweight` and `dbias` point to variables; *dbias may be NULL. */
static void layer_norm_params_backward(struct engine *e, struct tensor *dy, struct tensor *x,
                                       struct tensor *mean, struct tensor *rstd,
                                       struct tensor **dweight, struct tensor **dbias)
{
    int64_t width = tensor_size(x, -1),
            rows = plim_layer_norm_partial_rows(&e->device->info, rows_of(x), width);
    enum plim_dtype dtype = (enum plim_dtype)(*dweight)->a.dtype;
    struct tensor *partial_weight =
        rows ? tensor_keep(tensor_empty(e, dtype, SHAPE(rows, width))) : NULL;
    struct tensor *partial_bias =
        rows && *dbias ? tensor_keep(tensor_empty(e, dtype, SHAPE(rows, width))) : NULL;
    struct tensor *to_weight = rows ? partial_weight : *dweight,
                  *to_bias = rows ? partial_bias : *dbias;
    struct plim_op op = {.kind = PLIM_OP_LAYER_NORM_BACKWARD_PARAMS,
                         .n_out = (uint8_t)(to_bias ? 2 : 1),
                         .n_in = 4,
                         .out = {&to_weight->a, to_bias ? &to_bias->a : NULL},
                         .in = {&dy->a, &x->a, &mean->a, &rstd->a}};
    if (!e->halted) engine_launch(e, &op);
    if (rows && !e->halted) sum_partials(e, partial_weight, dweight);
    if (partial_bias && !e->halted) sum_partials(e, partial_bias, dbias);
    tensor_drop(e, partial_bias);
    tensor_drop(e, partial_weight);
}

static void layer_norm_backward(struct engine *e, struct node *n, struct tensor **grads,
                                struct tensor **out)
{
    struct tensor *input = node_saved(e, n, LN_SAVED_INPUT),
                  *weight = node_saved(e, n, LN_SAVED_WEIGHT);
    struct tensor *mean = node_saved(e, n, LN_SAVED_MEAN), *rstd = node_saved(e, n, LN_SAVED_RSTD);
    struct tensor *x = tensor_hold(op_contiguous(e, input));
    if (node_wants(n, LN_INPUT))
        out[LN_INPUT] =
            tensor_keep(tensor_empty(e, (enum plim_dtype)x->a.dtype, x->a.ndim, x->a.shape));
    if (node_wants(n, LN_WEIGHT))
        out[LN_WEIGHT] =
            tensor_keep(tensor_empty_like(e, weight, (enum plim_dtype)weight->a.dtype));
    if (node_wants(n, LN_BIAS)) {
        struct tensor *like = weight ? weight : node_saved(e, n, LN_SAVED_BIAS);
        out[LN_BIAS] = tensor_keep(tensor_empty_like(e, like, (enum plim_dtype)like->a.dtype));
    }
    struct tensor *dy = tensor_hold(op_contiguous(e, grads[0]));
    if (out[LN_INPUT] && !e->halted) {
        struct plim_op op = {.kind = PLIM_OP_LAYER_NORM_BACKWARD,
                             .n_out = 1,
                             .n_in = (uint8_t)(weight ? 5 : 4),
                             .out = {&out[LN_INPUT]->a},
                             .in = {&dy->a, &x->a, &mean->a, &rstd->a, weight ? &weight->a : NULL}};
        engine_launch(e, &op);
    }
    if (out[LN_WEIGHT] && !e->halted)
        layer_norm_params_backward(e, dy, x, mean, rstd, &out[LN_WEIGHT], &out[LN_BIAS]);
    tensor_drop(e, dy);
    tensor_drop(e, x);
}
static const struct node_kind layer_norm_kind = {"NativeLayerNormBackward0", layer_norm_backward};

struct tensor *op_layer_norm(struct engine *e, struct tensor *x, struct tensor *weight,
                             struct tensor *bias, double epsilon)
{
    if (e->halted) return op_halted(e, 1, &x);
    struct tensor *operands[3] = {x, weight, bias};
    bool was[3];
    for (int i = LN_BIAS; i >= LN_INPUT; i--) { /* C++ evaluates the last argument first */
        if (operands[i]) operands[i] = autocast_fp32(e, operands[i]);
        was[i] = tensor_enter(operands[i]);
    }
    x = operands[LN_INPUT];
    weight = operands[LN_WEIGHT];
    bias = operands[LN_BIAS];
    struct node *n = op_node(e, &layer_norm_kind, 3, operands);
    if (n) {
        node_save(e, n, LN_SAVED_BIAS, bias);
        node_save(e, n, LN_SAVED_INPUT, x);
        node_save(e, n, LN_SAVED_WEIGHT, weight);
    }
    bool own = !e->halted && !tensor_is_contiguous(x), grad = e->grad_enabled;
    e->grad_enabled = false;
    struct tensor *dense = own ? tensor_keep(op_clone(e, x)) : x;
    e->grad_enabled = grad;
    int64_t rows = e->halted ? 1 : rows_of(x);
    struct tensor *y = tensor_empty(e, (enum plim_dtype)x->a.dtype, x->a.ndim, x->a.shape);
    struct tensor *mean = tensor_keep(tensor_empty(e, PLIM_F32, 1, &rows));
    struct tensor *rstd = tensor_keep(tensor_empty(e, PLIM_F32, 1, &rows));
    struct plim_op op = {.kind = PLIM_OP_LAYER_NORM,
                         .n_out = 3,
                         .n_in = 3,
                         .alpha = epsilon,
                         .out = {&y->a, &mean->a, &rstd->a},
                         .in = {&dense->a, weight ? &weight->a : NULL, bias ? &bias->a : NULL}};
    if (!e->halted) engine_launch(e, &op);
    if (n) {
        node_save_output(e, n, LN_SAVED_MEAN, mean);
        node_save_output(e, n, LN_SAVED_RSTD, rstd);
    }
    if (own) tensor_drop(e, dense);
    tensor_drop(e, rstd);
    tensor_drop(e, mean);
    y = op_done(e, n, y, 0, NULL);
    for (int i = LN_INPUT; i <= LN_BIAS; i++) tensor_leave(e, operands[i], was[i]);
    return y;
}

/* --- softmax ---------------------------------------------------------------------------------- */

static struct tensor *softmax_grad(struct engine *e, struct tensor *dy, struct tensor *y,
                                   enum plim_op_kind kind, enum plim_dtype dtype)
{
    struct tensor *dense = op_contiguous(e, dy);
    if (dense != dy) tensor_keep(dense);
    struct tensor *dx = op_result(e, 1, &y, dtype, y->a.ndim, y->a.shape, NULL);
    /* for softmax, gradient times result is computed beforehand; log_softmax needs only the gradient */
    bool product = kind == PLIM_OP_SOFTMAX_BACKWARD;
    struct tensor *scaled = product ? op_mul(e, dense, y) : dense;
    if (product) tensor_keep(scaled);
    struct plim_op op = {
        .kind = kind, .n_out = 1, .n_in = 2, .out = {&dx->a}, .in = {&scaled->a, &y->a}};
    if (!e->halted) engine_launch(e, &op);
    if (product) tensor_drop(e, scaled);
    if (dense != dy) tensor_drop(e, dense);
    return tensor_keep(dx);
}

static void softmax_backward(struct engine *e, struct node *n, struct tensor **grads,
                             struct tensor **out)
{
    out[0] = softmax_grad(e, grads[0], node_saved(e, n, 0), PLIM_OP_SOFTMAX_BACKWARD,
                          (enum plim_dtype)n->ints[0]);
}
static const struct node_kind softmax_kind = {"SoftmaxBackward0", softmax_backward};

static void log_softmax_backward(struct engine *e, struct node *n, struct tensor **grads,
                                 struct tensor **out)
{
    out[0] = softmax_grad(e, grads[0], node_saved(e, n, 0), PLIM_OP_LOG_SOFTMAX_BACKWARD,
                          (enum plim_dtype)n->ints[0]);
}
static const struct node_kind log_softmax_kind = {"LogSoftmaxBackward0", log_softmax_backward};

static struct tensor *softmax(struct engine *e, struct tensor *x, const struct node_kind *kind,
                              enum plim_op_kind op_kind, enum plim_dtype dtype)
{
    if (e->halted) return op_halted(e, 1, &x);
    struct node *n = op_node(e, kind, 1, &x);
    if (n) n->ints[0] = x->a.dtype;
    struct tensor *y = op_result(e, 1, &x, dtype, x->a.ndim, x->a.shape, NULL);
    /* host_softmax() of aten/src/ATen/native/cuda/SoftMax.cu: input_.contiguous() */
    struct tensor *copy = tensor_is_contiguous(x) ? NULL : tensor_keep(op_detached_clone(e, x));
    struct plim_op op = {.kind = op_kind, .n_out = 1, .n_in = 1, .out = {&y->a}, .in = {copy ? &copy->a : &x->a}};
    if (!e->halted) engine_launch(e, &op);
    tensor_drop(e, copy);
    if (n) node_save_output(e, n, 0, y);
    return op_done(e, n, y, 1, &x);
}

struct tensor *op_softmax(struct engine *e, struct tensor *x, enum plim_dtype dtype)
{
    if (e->halted) return op_halted(e, 1, &x);
    /* fp16 is cast inside the kernel, bf16 by a copy before it */
    if (x->a.dtype != dtype && !(x->a.dtype == PLIM_F16 && dtype == PLIM_F32))
        x = op_to(e, x, dtype);
    return softmax(e, x, &softmax_kind, PLIM_OP_SOFTMAX, dtype);
}

struct tensor *op_log_softmax(struct engine *e, struct tensor *x)
{
    return softmax(e, x, &log_softmax_kind, PLIM_OP_LOG_SOFTMAX, (enum plim_dtype)x->a.dtype);
}

struct tensor *op_safe_softmax(struct engine *e, struct tensor *x)
{
    if (e->halted) return op_halted(e, 1, &x);
    bool was = tensor_enter(x), grad = e->grad_enabled;
    struct tensor *y = softmax(e, x, &softmax_kind, PLIM_OP_SOFTMAX, (enum plim_dtype)x->a.dtype);
    e->grad_enabled = false;
    struct tensor *masked = tensor_keep(op_compare_scalar(e, PLIM_BINARY_EQ, x, -INFINITY));
    struct tensor *rows = tensor_keep(
        op_reduce(e, masked, 1u << (x->a.ndim - 1), true, PLIM_BINARY_AND, 1, PLIM_BOOL));
    struct tensor *zero = tensor_keep(op_full(e, PLIM_F32, 0, NULL, 0));
    if (!e->halted) {
        struct plim_op op = {.kind = PLIM_OP_WHERE,
                             .n_out = 1,
                             .n_in = 3,
                             .out = {&y->a},
                             .in = {&rows->a, &zero->a, &y->a}};
        engine_launch(e, &op);
    }
    tensor_drop(e, zero);
    tensor_drop(e, rows);
    tensor_drop(e, masked);
    e->grad_enabled = grad;
    tensor_leave(e, x, was);
    return y;
}

/* --- cross entropy ---------------------------------------------------------------------------- */

enum { NLL_SELF, NLL_TARGET, NLL_TOTAL };

static void nll_loss_backward(struct engine *e, struct node *n, struct tensor **grads,
                              struct tensor **out)
{
    struct tensor *self = node_saved(e, n, NLL_SELF), *target = node_saved(e, n, NLL_TARGET),
                  *total = node_saved(e, n, NLL_TOTAL);
    struct tensor *dx =
        op_result(e, 1, &self, (enum plim_dtype)self->a.dtype, self->a.ndim, self->a.shape, NULL);
    op_fill_(e, dx, 0);
    struct plim_op op = {.kind = PLIM_OP_NLL_LOSS_BACKWARD,
                         .n_out = 1,
                         .n_in = 3,
                         .out = {&dx->a},
                         .in = {&grads[0]->a, &target->a, &total->a}};
    if (!e->halted) engine_launch(e, &op);
    out[0] = tensor_keep(dx);
}
static const struct node_kind nll_kind = {"NllLossBackward0", nll_loss_backward};

struct tensor *op_cross_entropy(struct engine *e, struct tensor *logits, struct tensor *target)
{
    struct tensor *given[2] = {logits, target};
    if (e->halted) return op_halted(e, 2, given);
    bool was_logits = tensor_enter(logits), was_target = tensor_enter(target);
    struct tensor *logs = tensor_keep(softmax(e, logits, &log_softmax_kind, PLIM_OP_LOG_SOFTMAX,
                                              (enum plim_dtype)logits->a.dtype));
    struct tensor *x = tensor_hold(autocast_fp32(e, logs)); /* autocast casts only the loss to fp32 */
    struct tensor *operands[1] = {x};
    struct node *n = e->halted ? NULL : op_node(e, &nll_kind, 1, operands);
    if (n) {
        node_save(e, n, NLL_SELF, x);
        node_save(e, n, NLL_TARGET, target);
    }
    struct tensor *loss = tensor_empty(e, (enum plim_dtype)x->a.dtype, 0, NULL);
    struct tensor *total = tensor_keep(tensor_empty(e, (enum plim_dtype)x->a.dtype, 0, NULL));
    struct plim_op op = {.kind = PLIM_OP_NLL_LOSS,
                         .n_out = 2,
                         .n_in = 2,
                         .out = {&loss->a, &total->a},
                         .in = {&x->a, &target->a}};
    if (!e->halted) engine_launch(e, &op);
    if (n) node_save_output(e, n, NLL_TOTAL, total);
    tensor_drop_all(e, total, x, logs);
    loss = op_done(e, n, loss, 0, NULL);
    tensor_leave(e, target, was_target);
    tensor_leave(e, logits, was_logits);
    return loss;
}

/* --- mean squared error ----------------------------------------------------------------------- */

enum { MSE_SELF, MSE_TARGET };

/* 2 / n (x - target), times the gradient, a scalar. */
static void mse_loss_backward(struct engine *e, struct node *n, struct tensor **grads, struct tensor **out)
{
    struct tensor *self = node_saved(e, n, MSE_SELF), *target = node_saved(e, n, MSE_TARGET);
    struct tensor *dx = tensor_keep(op_sub(e, self, target));
    op_binary_scalar_(e, PLIM_BINARY_MUL, dx, 2 / n->number);
    op_binary_(e, PLIM_BINARY_MUL, dx, grads[0]);
    out[0] = dx;
}
static const struct node_kind mse_kind = {"MseLossBackward0", mse_loss_backward};

struct tensor *op_mse_loss(struct engine *e, struct tensor *x, struct tensor *target)
{
    struct tensor *given[2] = {x, target};
    if (e->halted) return op_halted(e, 2, given);
    bool was_target = tensor_enter(target), grad = e->grad_enabled;
    struct tensor *wide = tensor_hold(autocast_fp32(e, x)), *operands[1] = {wide};
    double count = (double)tensor_elements(wide);
    struct node *n = op_node(e, &mse_kind, 1, operands);
    if (n) {
        n->number = count;
        node_save(e, n, MSE_SELF, wide);
        node_save(e, n, MSE_TARGET, target);
    }
    e->grad_enabled = false;
    /* the loss is allocated with the size of the input, and then becomes a scalar in place (mse_loss in Loss.cpp) */
    struct tensor *room = tensor_keep(tensor_empty_like(e, wide, PLIM_F32));
    struct tensor *loss = tensor_alias(e, room, 0, room->a.shape, room->a.stride, 0);
    struct tensor *squares = tensor_keep(op_sub(e, wide, target));
    op_binary_(e, PLIM_BINARY_MUL, squares, squares);
    op_reduce_to(e, squares, (1u << wide->a.ndim) - 1, PLIM_BINARY_ADD, 1 / count, loss);
    e->grad_enabled = grad;
    tensor_drop_all(e, squares, room, wide);
    loss = op_done(e, n, loss, 0, NULL);
    tensor_leave(e, target, was_target);
    return loss;
}

/* --- dropout ---------------------------------------------------------------------------------- */

static void dropout_backward(struct engine *e, struct node *n, struct tensor **grads,
                             struct tensor **out)
{
    struct tensor *x[2] = {grads[0], node_saved(e, n, 0)};
    int64_t stride[PLIM_MAX_DIMS];
    op_result_strides(2, x, grads[0]->a.ndim, grads[0]->a.shape, stride);
    struct tensor *dx = tensor_empty_strided(e, (enum plim_dtype)grads[0]->a.dtype,
                                             grads[0]->a.ndim, grads[0]->a.shape, stride);
    struct plim_op op = {.kind = PLIM_OP_BINARY,
                         .n_out = 1,
                         .n_in = 2,
                         .binary = PLIM_BINARY_MUL,
                         .alpha = n->number,
                         .out = {&dx->a},
                         .in = {&x[0]->a, &x[1]->a}};
    if (!e->halted) engine_launch(e, &op);
    out[0] = tensor_keep(dx);
}
static const struct node_kind dropout_kind = {"NativeDropoutBackward0", dropout_backward};

struct tensor *op_dropout(struct engine *e, struct tensor *x, double p)
{
    if (e->halted) return op_halted(e, 1, &x);
    if (p == 0 || e->evaluates) return x;
    struct node *n = op_node(e, &dropout_kind, 1, &x);
    if (n) n->number = 1 / (1 - p);
    struct tensor *mask = tensor_keep(tensor_empty_like(e, x, PLIM_BOOL));
    struct tensor *y = tensor_empty_like(e, x, (enum plim_dtype)x->a.dtype);
    struct plim_op op = {.kind = PLIM_OP_DROPOUT,
                         .n_out = 2,
                         .n_in = 1,
                         .alpha = p,
                         .seed = e->seed++,
                         .out = {&y->a, &mask->a},
                         .in = {&x->a}};
    if (!e->halted) engine_launch(e, &op);
    if (n) node_save_output(e, n, 0, mask);
    tensor_drop(e, mask);
    return op_done(e, n, y, 1, &x);
}

/* --- embedding -------------------------------------------------------------------------------- */

static void embedding_backward(struct engine *e, struct node *n, struct tensor **grads,
                               struct tensor **out)
{
    struct tensor *saved = node_saved(e, n, 0), *held[PLIM_EMBEDDING_MAX_NEEDS] = {NULL};
    struct plim_need needs[PLIM_EMBEDDING_MAX_NEEDS];
    int64_t rows = n->ints[0], width = n->ints[1];
    struct tensor *indices = tensor_hold(op_contiguous(e, saved));
    struct tensor *dy = tensor_hold(op_contiguous(e, grads[0])), *dw = NULL;
    if (e->halted) return;
    enum plim_dtype dtype = (enum plim_dtype)dy->a.dtype;
    int count = plim_embedding_backward_needs(&e->device->info, dtype, tensor_elements(indices),
                                              rows, width, e->torch_2_15, needs);
    for (int i = 0; i < count; i++) {
        op_release_needs(e, needs, held, i, i);
        if (needs[i].is_result)
            dw = tensor_keep(op_full(e, dtype, SHAPE(rows, width), 0));
        else
            held[i] = tensor_keep(tensor_empty_bytes(e, needs[i].bytes));
    }
    struct plim_op op = {.kind = PLIM_OP_EMBEDDING_BACKWARD,
                         .n_out = 1,
                         .n_in = 2,
                         .out = {&dw->a},
                         .in = {&dy->a, &indices->a}};
    for (int i = 0; i < count; i++)
        if (held[i]) op.scratch[op.n_scratch++] = &held[i]->a;
    if (!e->halted) engine_launch(e, &op);
    op_release_needs(e, needs, held, count, count);
    tensor_drop(e, dy);
    tensor_drop(e, indices);
    out[0] = dw;
}
static const struct node_kind embedding_kind = {"EmbeddingBackward0", embedding_backward};

struct tensor *op_embedding(struct engine *e, struct tensor *weight, struct tensor *indices)
{
    if (e->halted) return op_halted(e, 1, &indices);
    struct node *n = op_node(e, &embedding_kind, 1, &weight);
    if (n) {
        n->ints[0] = weight->a.shape[0];
        n->ints[1] = weight->a.shape[1];
        node_save(e, n, 0, indices);
    }
    int64_t shape[PLIM_MAX_DIMS];
    int ndim = indices->a.ndim;
    memcpy(shape, indices->a.shape, sizeof shape);
    shape[ndim] = weight->a.shape[1];
    /* weight.index_select(indices.reshape(-1)): expanded indices are copied */
    struct tensor *flat = tensor_hold(op_contiguous(e, indices));
    struct tensor *y = tensor_empty(e, (enum plim_dtype)weight->a.dtype, ndim + 1, shape);
    struct plim_op op = {.kind = PLIM_OP_EMBEDDING,
                         .n_out = 1,
                         .n_in = 2,
                         .out = {&y->a},
                         .in = {&weight->a, &flat->a}};
    if (!e->halted) engine_launch(e, &op);
    tensor_drop(e, flat);
    return op_done(e, n, y, 1, &indices);
}
