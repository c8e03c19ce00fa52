/* Norms and activations, in the steps of their Python code. */
#include "nn.h"

/* Defaults of torch.nn.LayerNorm and of the families' rms_norm_eps; a model's own changes nothing
 * but values. */
static const double LAYER_EPSILON = 1e-5, RMS_EPSILON = 1e-6;

void nn_norm_create(struct graph *g, struct parameters *p, struct norm *n, enum norm_kind kind,
                    int64_t size, bool bias)
{
    *n = (struct norm){.kind = kind};
    n->weight = nn_parameter(g, p, kind == NORM_RMS_GEMMA ? INIT_ZEROS : INIT_ONES, SHAPE(size));
    if (bias) n->bias = nn_parameter(g, p, INIT_ZEROS, SHAPE(size));
}

/* x.float() * rsqrt(mean(x.float()^2) + eps), every step a kernel */
static struct tensor *rms_norm(struct graph *g, const struct norm *n, struct tensor *x)
{
    bool was = tensor_enter(x);
    enum plim_dtype dtype = (enum plim_dtype)x->a.dtype;
    struct tensor *h = tensor_hold(op_to(g, x, PLIM_F32));
    struct tensor *variance = tensor_keep(op_mean_last(g, op_pow_scalar(g, h, 2)));
    tensor_set(g, &h, op_mul(g, h, op_rsqrt(g, op_add_scalar(g, variance, RMS_EPSILON))));
    struct tensor *y = n->kind == NORM_RMS_OLMO ? op_to(g, op_mul(g, n->weight, h), dtype)
                                                : op_mul(g, n->weight, op_to(g, h, dtype));
    tensor_drop(g, h);
    tensor_drop(g, variance);
    tensor_leave(g, x, was);
    return y;
}

/* the same in fp32 to the end, with a weight that counts from 1 */
static struct tensor *rms_norm_gemma(struct graph *g, const struct norm *n, struct tensor *x)
{
    bool was = tensor_enter(x);
    struct tensor *h = tensor_hold(op_to(g, x, PLIM_F32));
    struct tensor *mean = op_mean_last(g, op_pow_scalar(g, h, 2));
    struct tensor *y = tensor_keep(op_mul(g, h, op_rsqrt(g, op_add_scalar(g, mean, RMS_EPSILON))));
    tensor_drop(g, h);
    tensor_set(g, &y, op_mul(g, y, op_add_scalar(g, op_to(g, n->weight, PLIM_F32), 1)));
    tensor_set(g, &y, op_to(g, y, (enum plim_dtype)x->a.dtype));
    tensor_leave(g, x, was);
    return tensor_yield(y);
}

struct tensor *nn_norm(struct graph *g, const struct norm *n, struct tensor *x)
{
    if (g->halted) return op_halted(g, 1, &x);
    if (n->kind == NORM_LAYER) return op_layer_norm(g, x, n->weight, n->bias, LAYER_EPSILON);
    if (n->kind == NORM_RMS_GEMMA) return rms_norm_gemma(g, n, x);
    return rms_norm(g, n, x);
}

/* 0.5 * x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3))), every step a kernel */
static struct tensor *gelu_new(struct graph *g, struct tensor *x)
{
    bool was = tensor_enter(x);
    struct tensor *half = op_mul_scalar(g, x, 0.5);
    struct tensor *cube = op_mul_scalar(g, op_pow_scalar(g, x, 3), 0.044715);
    struct tensor *inner = op_mul_scalar(g, op_add(g, x, cube), 0.7978845608028654);
    struct tensor *y = op_mul(g, half, op_add_scalar(g, op_tanh(g, inner), 1));
    tensor_leave(g, x, was);
    return y;
}

void nn_softcap(struct graph *g, struct tensor **x, double cap)
{
    tensor_set(g, x, op_div_scalar(g, *x, cap));
    tensor_set(g, x, op_tanh(g, *x));
    tensor_set(g, x, op_mul_scalar(g, *x, cap));
}

struct tensor *nn_activation(struct graph *g, enum plim_activation f, struct tensor *x)
{
    switch (f) {
    case PLIM_ACTIVATION_GELU:
        return op_gelu(g, x, false);
    case PLIM_ACTIVATION_GELU_PYTORCH_TANH:
        return op_gelu(g, x, true);
    case PLIM_ACTIVATION_GELU_NEW:
        return gelu_new(g, x);
    case PLIM_ACTIVATION_SILU:
        return op_silu(g, x);
    case PLIM_ACTIVATION_RELU:
        return op_relu(g, x);
    }
    return x;
}
