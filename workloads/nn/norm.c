/* Norms and activations, with the steps of their Python code. */
#include "nn.h"
#include "workloads/engine/ops_liger.h"

/* Defaults of torch.nn.LayerNorm and of the families' rms_norm_eps. */
static const double LAYER_EPSILON = 1e-5, RMS_EPSILON = 1e-6;

void nn_norm_create(struct engine *e, struct parameters *p, struct norm *n, enum norm_kind kind,
                    int64_t size, bool bias)
{
    *n = (struct norm){.kind = kind};
    if (kind == NORM_LAYER_FP32) return;
    n->weight = nn_parameter(e, p, kind == NORM_RMS_GEMMA ? INIT_ZEROS : INIT_ONES, SHAPE(size));
    if (bias) n->bias = nn_parameter(e, p, INIT_ZEROS, SHAPE(size));
}

void nn_norm_create_of_heads(struct engine *e, struct parameters *p, struct norm *n, enum norm_kind kind,
                             int64_t heads, int64_t size)
{
    *n = (struct norm){.kind = kind, .weight = nn_parameter(e, p, INIT_ONES, SHAPE(heads, size))};
    n->weight->odd_name = true;
}

/* x.float() * rsqrt(mean(x.float()^2) + eps), with one kernel per step; named. *variance: the mean, which is a Python
 * variable. */
static struct tensor *normed(struct engine *e, struct tensor *x, struct tensor **variance)
{
    struct tensor *h = tensor_hold(op_to(e, x, PLIM_F32));
    *variance = tensor_keep(op_mean_last(e, op_pow_scalar(e, h, 2)));
    tensor_set(e, &h, op_mul(e, h, op_rsqrt(e, op_add_scalar(e, *variance, RMS_EPSILON))));
    return h;
}

static struct tensor *rms_norm(struct engine *e, const struct norm *n, struct tensor *x)
{
    bool was = tensor_enter(x);
    enum plim_dtype dtype = (enum plim_dtype)x->a.dtype;
    struct tensor *variance, *h = normed(e, x, &variance);
    struct tensor *y = n->kind == NORM_RMS_OLMO ? op_to(e, op_mul(e, n->weight, h), dtype)
                                                : op_mul(e, n->weight, op_to(e, h, dtype));
    tensor_drop(e, h);
    tensor_drop(e, variance);
    tensor_leave(e, x, was);
    return y;
}

/* A gated norm and its gate. */
struct gated_norm {
    const struct norm *norm;
    struct tensor *gate;
};
static struct tensor *gated(struct engine *e, const void *module, struct tensor *x)
{
    const struct gated_norm *g = module;
    enum plim_dtype dtype = (enum plim_dtype)x->a.dtype;
    struct tensor *variance, *h = normed(e, x, &variance);
    tensor_set(e, &h, op_mul(e, g->norm->weight, op_to(e, h, dtype)));
    tensor_set(e, &h, op_mul(e, h, op_silu(e, op_to(e, g->gate, PLIM_F32))));
    struct tensor *y = tensor_hold(op_to(e, h, dtype));
    tensor_drop_all(e, h, variance);
    return tensor_yield(y);
}

/* x (B, S, W) as (B, S, groups, W / groups) */
static struct tensor *grouped(struct engine *e, struct tensor *x, int64_t groups)
{
    return op_view(e, x, SHAPE(x->a.shape[0], x->a.shape[1], groups, tensor_size(x, 2) / groups));
}

static struct tensor *gated_first(struct engine *e, const void *module, struct tensor *x)
{
    const struct gated_norm *g = module;
    enum plim_dtype dtype = (enum plim_dtype)x->a.dtype;
    struct tensor *h = tensor_hold(op_to(e, x, PLIM_F32)), *variance;
    tensor_set(e, &h, op_mul(e, h, op_silu(e, op_to(e, g->gate, PLIM_F32))));
    if (g->norm->groups && !e->halted) tensor_set(e, &h, grouped(e, h, g->norm->groups));
    struct tensor *scaled = normed(e, h, &variance);
    tensor_drop(e, h);
    if (g->norm->groups && !e->halted) tensor_set(e, &scaled, op_view(e, scaled, x->a.ndim, x->a.shape));
    struct tensor *y = tensor_keep(op_mul(e, g->norm->weight, op_to(e, scaled, dtype)));
    tensor_drop_all(e, scaled, variance);
    return tensor_yield(y);
}

struct tensor *nn_norm_gated(struct engine *e, const struct norm *n, struct tensor *x, struct tensor *gate)
{
    if (e->halted) return op_halted(e, 1, &x);
    const struct gated_norm g = {n, gate};
    return nn_run(e, (struct tensor *const[]){n->weight, NULL}, NN_NORM,
                  n->kind == NORM_RMS_GATED_FIRST ? gated_first : gated, &g, x);
}

/* The same in fp32 until the end, with weight + 1. */
static struct tensor *rms_norm_gemma(struct engine *e, const struct norm *n, struct tensor *x)
{
    bool was = tensor_enter(x);
    struct tensor *h = tensor_hold(op_to(e, x, PLIM_F32));
    struct tensor *mean = op_mean_last(e, op_pow_scalar(e, h, 2));
    struct tensor *y = tensor_keep(op_mul(e, h, op_rsqrt(e, op_add_scalar(e, mean, RMS_EPSILON))));
    tensor_drop(e, h);
    tensor_set(e, &y, op_mul(e, y, op_add_scalar(e, op_to(e, n->weight, PLIM_F32), 1)));
    tensor_set(e, &y, op_to(e, y, (enum plim_dtype)x->a.dtype));
    tensor_leave(e, x, was);
    return tensor_yield(y);
}

/* The same with a power instead of rsqrt; the weight is used as it is, or NULL. */
static struct tensor *rms_norm_gemma4(struct engine *e, const struct norm *n, struct tensor *x)
{
    bool was = tensor_enter(x);
    struct tensor *h = tensor_hold(op_to(e, x, PLIM_F32));
    struct tensor *mean = tensor_keep(op_add_scalar(e, op_mean_last(e, op_pow_scalar(e, h, 2)), RMS_EPSILON));
    struct tensor *y = tensor_keep(op_mul(e, h, op_pow_scalar(e, mean, -0.5)));
    tensor_drop_all(e, h, mean);
    if (n->weight) tensor_set(e, &y, op_mul(e, y, op_to(e, n->weight, PLIM_F32)));
    tensor_set(e, &y, op_to(e, y, (enum plim_dtype)x->a.dtype));
    tensor_leave(e, x, was);
    return tensor_yield(y);
}

/* weight.float() * ((x - mean) * rsqrt(mean((x - mean)^2) + eps)) of x.float() */
static struct tensor *layer_norm_steps(struct engine *e, const struct norm *n, struct tensor *x)
{
    bool was = tensor_enter(x);
    struct tensor *h = tensor_hold(op_to(e, x, PLIM_F32));
    struct tensor *mean = tensor_keep(op_mean_last(e, h));
    struct tensor *variance = tensor_keep(op_mean_last(e, op_pow_scalar(e, op_sub(e, h, mean), 2)));
    struct tensor *centred = op_sub(e, h, mean);
    tensor_set(e, &h, op_mul(e, centred, op_rsqrt(e, op_add_scalar(e, variance, LAYER_EPSILON))));
    tensor_set(e, &h, op_mul(e, op_to(e, n->weight, PLIM_F32), h));
    struct tensor *y = tensor_hold(op_to(e, h, (enum plim_dtype)x->a.dtype));
    tensor_drop_all(e, h, mean, variance);
    tensor_leave(e, x, was);
    return tensor_yield(y);
}

/* Multiplies x itself, not its fp32 copy. */
static struct tensor *rms_norm_t5(struct engine *e, const struct norm *n, struct tensor *x)
{
    bool was = tensor_enter(x);
    struct tensor *squares = op_pow_scalar(e, op_to(e, x, PLIM_F32), 2);
    struct tensor *variance = tensor_keep(op_mean_last(e, squares));
    struct tensor *h = tensor_keep(op_mul(e, x, op_rsqrt(e, op_add_scalar(e, variance, RMS_EPSILON))));
    enum plim_dtype dtype = (enum plim_dtype)n->weight->a.dtype;
    if (dtype != PLIM_F32) tensor_set(e, &h, op_to(e, h, dtype));
    struct tensor *y = op_mul(e, n->weight, h);
    tensor_drop_all(e, h, variance);
    tensor_leave(e, x, was);
    return y;
}

/* torch's LayerNorm in fp32. */
static struct tensor *layer_norm_fp32(struct engine *e, struct tensor *x)
{
    bool was = tensor_enter(x);
    struct tensor *y = op_layer_norm(e, op_to(e, x, PLIM_F32), NULL, NULL, LAYER_EPSILON);
    y = op_to(e, y, (enum plim_dtype)x->a.dtype);
    tensor_leave(e, x, was);
    return y;
}

/* NemotronLayerNorm1P.forward() (modeling_nemotron.py:74): all operands are cast, and autocast is disabled. */
static struct tensor *layer_norm_1p(struct engine *e, const struct norm *n, struct tensor *x)
{
    bool was = tensor_enter(x), mixed = e->autocast.on;
    enum plim_dtype low = e->autocast.dtype;
    struct tensor *shifted = tensor_keep(op_add_scalar(e, n->weight, 1));
    struct tensor *input = tensor_hold(mixed ? op_to(e, x, low) : x);
    struct tensor *weight = tensor_hold(mixed ? op_to(e, shifted, low) : shifted);
    struct tensor *bias = tensor_hold(mixed ? op_to(e, n->bias, low) : n->bias);
    tensor_drop(e, shifted);
    e->autocast.on = false;
    struct tensor *y = op_layer_norm(e, input, weight, bias, LAYER_EPSILON);
    e->autocast.on = mixed;
    tensor_drop_all(e, input, weight, bias);
    tensor_leave(e, x, was);
    return y;
}

static struct tensor *forward(struct engine *e, const void *module, struct tensor *x)
{
    const struct norm *n = module;
    if (n->kind == NORM_LAYER)
        return op_layer_norm(e, x, n->weight, n->bias, n->epsilon ? n->epsilon : LAYER_EPSILON);
    if (n->kind == NORM_LAYER_FP32) return layer_norm_fp32(e, x);
    if (n->kind == NORM_LAYER_1P) return layer_norm_1p(e, n, x);
    if (n->kind == NORM_LAYER_STEPS) return layer_norm_steps(e, n, x);
    if (n->kind == NORM_RMS_T5) return rms_norm_t5(e, n, x);
    if (n->kind == NORM_RMS_GEMMA4) return rms_norm_gemma4(e, n, x);
    if (n->kind == NORM_RMS_GEMMA) return rms_norm_gemma(e, n, x);
    if (n->kind == NORM_RMS_LIGER || n->kind == NORM_RMS_LIGER_APART)
        return op_liger_rms_norm(e, x, n->weight, RMS_EPSILON, n->offset, n->kind == NORM_RMS_LIGER);
    if (n->kind == NORM_LAYER_LIGER) return op_liger_layer_norm(e, x, n->weight, n->bias, n->epsilon);
    return rms_norm(e, n, x);
}

struct tensor *nn_norm(struct engine *e, const struct norm *n, struct tensor *x)
{
    if (e->halted) return op_halted(e, 1, &x);
    if (!n->weight) {
        nn_begin(e);
        return nn_end(e, forward(e, n, x));
    }
    return nn_run(e, (struct tensor *const[]){n->weight, n->bias, NULL}, NN_NORM, forward, n, x);
}

/* 0.5 * x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3))), with one kernel per step. */
struct tensor *nn_gelu_new(struct engine *e, struct tensor *x)
{
    bool was = tensor_enter(x);
    struct tensor *half = op_mul_scalar(e, x, 0.5);
    struct tensor *cube = op_mul_scalar(e, op_pow_scalar(e, x, 3), 0.044715);
    struct tensor *inner = op_mul_scalar(e, op_add(e, x, cube), 0.7978845608028654);
    struct tensor *y = op_mul(e, half, op_add_scalar(e, op_tanh(e, inner), 1));
    tensor_leave(e, x, was);
    return y;
}

void nn_softcap(struct engine *e, struct tensor **x, double cap)
{
    tensor_set(e, x, op_div_scalar(e, *x, cap));
    tensor_set(e, x, op_tanh(e, *x));
    tensor_set(e, x, op_mul_scalar(e, *x, cap));
}
