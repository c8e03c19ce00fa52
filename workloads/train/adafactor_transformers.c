/* transformers.optimization.Adafactor as Trainer configures it (optim="adafactor": scale_parameter and relative_step
 * off): one loop over the parameters of both groups. torch.optim's Adafactor is in adafactor.c. */
#include "optimizer.h"
#include <math.h>

enum { ROW, COLUMN, WHOLE, RMS }; /* states */

/* eps[0], clip_threshold, decay_rate */
static const double EPSILON = 1e-30, CLIP = 1, DECAY_RATE = -0.8;

/* Variables of the loop, which keep their tensors from one parameter to the next, as in Python. */
struct locals {
    struct tensor *grad, *parameter, *update;
};

/* torch.zeros(shape).to(grad), allocated on the host first; `gone` is the dimension of grad that the shape lacks. */
static struct tensor *sums_like(struct engine *e, const struct tensor *grad, int gone)
{
    int64_t shape[PLIM_MAX_DIMS];
    int ndim = 0;
    for (int d = 0; d < grad->a.ndim; d++)
        if (d != gone) shape[ndim++] = grad->a.shape[d];
    return tensor_keep(op_full(e, (enum plim_dtype)grad->a.dtype, ndim, shape, 0));
}

static void make_states(struct engine *e, struct optimizer *o, size_t i, struct tensor *grad)
{
    enum plim_memory_class before = engine_set_class(e, PLIM_MEMORY_OPTIMIZER);
    if (grad->a.ndim > 1) {
        o->state[ROW][i] = sums_like(e, grad, grad->a.ndim - 1);
        o->state[COLUMN][i] = sums_like(e, grad, grad->a.ndim - 2);
    } else {
        o->state[WHOLE][i] = tensor_keep(op_full_like(e, grad, 0));
    }
    engine_set_class(e, before);
}

/* `variable` = x in fp32: x itself if it is fp32 */
static void widen(struct engine *e, struct tensor **variable, struct tensor *x)
{
    tensor_set(e, variable, x);
    tensor_set(e, variable, op_to(e, x, PLIM_F32));
}

/* x.norm(2) / x.numel() ** 0.5; named */
static struct tensor *rms(struct engine *e, struct tensor *x)
{
    struct tensor *norm = tensor_keep(op_reduce(e, x, (1u << x->a.ndim) - 1, false, PLIM_BINARY_HYPOT, 1, PLIM_F32));
    struct tensor *y = tensor_keep(op_div_scalar(e, norm, sqrt((double)tensor_elements(x))));
    tensor_drop(e, norm);
    return y;
}

/* sums.mul_(beta2t).add_(x.mean(dim), alpha=1 - beta2t) */
static void move(struct engine *e, struct tensor *sums, struct tensor *x, int dim, double beta)
{
    op_binary_scalar_(e, PLIM_BINARY_MUL, sums, beta);
    struct tensor *mean = tensor_keep(op_reduce(e, x, 1u << dim, false, PLIM_BINARY_ADD,
                                                1 / (double)tensor_size(x, dim), PLIM_F32));
    op_add_scaled_(e, sums, mean, 1 - beta);
    tensor_drop(e, mean);
}

/* _approx_sq_grad() */
static struct tensor *approximate(struct engine *e, struct tensor *row, struct tensor *column)
{
    struct tensor *mean = tensor_keep(op_mean_last(e, row));
    struct tensor *of_row = tensor_keep(op_div(e, row, mean));
    tensor_drop(e, mean);
    op_unary_(e, PLIM_UNARY_RSQRT, of_row);
    struct tensor *of_column = tensor_keep(op_unary(e, op_unsqueeze(e, column, -2), PLIM_UNARY_RSQRT));
    struct tensor *product = tensor_keep(op_mul(e, op_unsqueeze(e, of_row, -1), of_column));
    tensor_drop_all(e, of_row, of_column);
    return tensor_yield(product);
}

static void find_update(struct engine *e, struct optimizer *o, size_t i, double beta, struct locals *l)
{
    struct tensor *square = tensor_keep(op_mul(e, l->grad, l->grad));
    struct tensor *more = tensor_keep(op_add_scalar(e, square, EPSILON));
    tensor_drop(e, square);
    tensor_set(e, &l->update, tensor_yield(more));
    if (e->halted) return;
    if (l->grad->a.ndim > 1) {
        move(e, o->state[ROW][i], l->update, l->grad->a.ndim - 1, beta);
        move(e, o->state[COLUMN][i], l->update, l->grad->a.ndim - 2, beta);
        tensor_set(e, &l->update, approximate(e, o->state[ROW][i], o->state[COLUMN][i]));
    } else {
        op_binary_scalar_(e, PLIM_BINARY_MUL, o->state[WHOLE][i], beta);
        op_add_scaled_(e, o->state[WHOLE][i], l->update, 1 - beta);
        tensor_set(e, &l->update, op_unary(e, o->state[WHOLE][i], PLIM_UNARY_RSQRT));
    }
    op_binary_(e, PLIM_BINARY_MUL, l->update, l->grad);
}

/* update /= max(rms(update) / clip_threshold, 1) */
static void clip(struct engine *e, struct tensor *update)
{
    struct tensor *size = rms(e, update);
    struct tensor *share = tensor_keep(op_div_scalar(e, size, CLIP));
    tensor_drop(e, size);
    op_binary_scalar_(e, PLIM_BINARY_MAX, share, 1);
    op_binary_(e, PLIM_BINARY_DIV, update, share);
    tensor_drop(e, share);
}

static void step(struct engine *e, struct optimizer *o, struct tensor *found_inf, struct tensor *grad_scale)
{
    (void)found_inf;
    (void)grad_scale;
    struct locals l = {0};
    double beta = 1 - pow((double)o->steps, DECAY_RATE);
    for (size_t i = 0; i < o->count && !e->halted; i++) {
        struct tensor *x = o->params[i];
        widen(e, &l.grad, o->grads[i]);
        if (!o->started && !e->halted) make_states(e, o, i, l.grad);
        widen(e, &l.parameter, x);
        if (e->halted) break;
        tensor_set(e, &o->state[RMS][i], tensor_yield(rms(e, l.parameter)));
        find_update(e, o, i, beta, &l);
        if (e->halted) break;
        clip(e, l.update);
        op_binary_scalar_(e, PLIM_BINARY_MUL, l.update, OPTIMIZER_RATE);
        struct tensor *change = tensor_keep(op_neg(e, l.update));
        op_add_scaled_(e, l.parameter, change, 1);
        tensor_drop(e, change);
        if (!e->halted && l.parameter->storage != x->storage) op_copy_(e, x, l.parameter);
    }
    tensor_drop_all(e, l.grad, l.parameter, l.update);
}

const struct optimizer_kind optimizer_adafactor_transformers = {.name = "adafactor", .step = step, .walks = true};
