/* torch.optim.Adafactor: its loop over single tensors, the default. */
#include "optimizer.h"
#include <math.h>
#include <string.h>

enum { ROW_VAR, COL_VAR, VARIANCE };

/* Defaults of torch.optim.Adafactor: eps (the first is None: the type's epsilon), beta2_decay, d. */
static const double EPSILON1 = 0x1p-23, EPSILON2 = 1e-3, BETA2_DECAY = -0.8, CLIP = 1;

/* Returns zeros in the shape of `like`, except that dimension `flat` is 1; -1 is the last dimension. */
static struct tensor *state(struct engine *e, const struct tensor *like, int flat)
{
    int64_t shape[PLIM_MAX_DIMS];
    memcpy(shape, like->a.shape, sizeof shape);
    shape[tensor_dim(like, flat)] = 1;
    return tensor_keep(op_full(e, (enum plim_dtype)like->a.dtype, like->a.ndim, shape, 0));
}

static void make_states(struct engine *e, struct optimizer *o)
{
    enum plim_memory_class before = engine_set_class(e, PLIM_MEMORY_OPTIMIZER);
    for (size_t i = 0; i < o->count; i++) {
        const struct tensor *grad = o->grads[i];
        if (grad->a.ndim > 1) {
            o->state[ROW_VAR][i] = state(e, grad, -1);
            o->state[COL_VAR][i] = state(e, grad, -2);
        } else {
            o->state[VARIANCE][i] = tensor_keep(op_full_like(e, grad, 0));
        }
    }
    engine_set_class(e, before);
}

/* x.norm(2).item() / x.numel() ** 0.5 */
static double rms(struct engine *e, struct tensor *x)
{
    struct tensor *norm = tensor_keep(op_reduce(e, x, (1u << x->a.ndim) - 1, false,
                                                PLIM_BINARY_HYPOT, 1, (enum plim_dtype)x->a.dtype));
    double value = e->halted ? 0 : engine_item(e, norm) / sqrt((double)tensor_elements(x));
    tensor_drop(e, norm);
    return value;
}

/* Variables of the loop, which keep their tensors from one parameter to the next, as in Python. */
struct locals {
    struct tensor *row_mean, *col_mean, *grad_squared, *estimate, *update;
};

/* norm over one dimension, squared, divided: three kernels in place */
static void mean_of_squares(struct engine *e, struct tensor **variable, struct tensor *grad,
                            int dim)
{
    tensor_set(e, variable,
               op_reduce(e, grad, 1u << tensor_dim(grad, dim), true, PLIM_BINARY_HYPOT, 1,
                         (enum plim_dtype)grad->a.dtype));
    op_binary_(e, PLIM_BINARY_MUL, *variable, *variable);
    if (!e->halted) op_binary_scalar_(e, PLIM_BINARY_DIV, *variable, (double)tensor_size(grad, dim));
}

static void factored(struct engine *e, struct optimizer *o, size_t i, double weight,
                     struct locals *l)
{
    struct tensor *row = o->state[ROW_VAR][i], *col = o->state[COL_VAR][i], *grad = o->grads[i];
    mean_of_squares(e, &l->row_mean, grad, -1);
    op_lerp_(e, row, l->row_mean, weight);
    mean_of_squares(e, &l->col_mean, grad, -2);
    op_lerp_(e, col, l->col_mean, weight);
    tensor_set(e, &l->estimate, op_matmul(e, row, col));
    if (e->halted) return;
    struct tensor *mean = tensor_keep(op_reduce(e, row, 1u << tensor_dim(row, -2), true,
                                                PLIM_BINARY_ADD, 1 / (double)tensor_size(row, -2),
                                                (enum plim_dtype)row->a.dtype));
    op_binary_scalar_(e, PLIM_BINARY_MAX, mean, EPSILON1);
    op_binary_(e, PLIM_BINARY_DIV, l->estimate, mean);
    tensor_drop(e, mean);
}

static void whole(struct engine *e, struct optimizer *o, size_t i, double weight, struct locals *l)
{
    struct tensor *grad = o->grads[i], *variance = o->state[VARIANCE][i];
    tensor_set(e, &l->grad_squared, op_mul(e, grad, grad));
    op_lerp_(e, variance, l->grad_squared, weight);
    tensor_set(e, &l->estimate, op_copy_like(e, variance, variance));
}

static void step(struct engine *e, struct optimizer *o, struct tensor *found_inf,
                 struct tensor *grad_scale)
{
    (void)found_inf;
    (void)grad_scale;
    if (!o->started) make_states(e, o);
    struct locals l = {0};
    double now = (double)o->steps, weight = pow(now, BETA2_DECAY);
    double rate = fmin(OPTIMIZER_RATE, 1 / sqrt(now));
    for (size_t i = 0; i < o->count && !e->halted; i++) {
        double alpha = fmax(EPSILON2, rms(e, o->params[i])) * rate;
        if (o->grads[i]->a.ndim > 1)
            factored(e, o, i, weight, &l);
        else
            whole(e, o, i, weight, &l);
        op_binary_scalar_(e, PLIM_BINARY_MAX, l.estimate, EPSILON1 * EPSILON1);
        tensor_set(e, &l.update, l.estimate); /* rsqrt_ works in place: two variables refer to one tensor */
        op_unary_(e, PLIM_UNARY_RSQRT, l.update);
        op_binary_(e, PLIM_BINARY_MUL, l.update, o->grads[i]);
        double denominator = fmax(1, rms(e, l.update) / CLIP);
        op_add_scaled_(e, o->params[i], l.update, -alpha / denominator);
    }
    tensor_drop_all(e, l.row_mean, l.col_mean, l.grad_squared, l.estimate, l.update);
}

const struct optimizer_kind optimizer_adafactor = {.name = "adafactor", .step = step};
