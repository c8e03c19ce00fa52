/* Elementwise operations and their derivatives. */
#include "ops.h"
#include <math.h>

struct tensor *op_broadcast_result(struct engine *e, int count, struct tensor *const *x, enum plim_dtype dtype)
{
    int64_t shape[PLIM_MAX_DIMS], stride[PLIM_MAX_DIMS];
    int ndim = 0;
    for (int i = 0; i < count; i++) ndim = x[i]->a.ndim > ndim ? x[i]->a.ndim : ndim;
    for (int d = 0; d < ndim; d++) shape[d] = 1;
    for (int i = 0; i < count; i++)
        for (int d = 0, lead = ndim - x[i]->a.ndim; d < x[i]->a.ndim; d++)
            if (x[i]->a.shape[d] != 1) shape[lead + d] = x[i]->a.shape[d];
    op_result_strides(count, x, ndim, shape, stride);
    return op_result(e, count, x, dtype, ndim, shape, stride);
}

/* bf16 with fp16 or fp32 gives fp32; a float takes precedence over an integer. */
static enum plim_dtype promote(const struct tensor *a, const struct tensor *b)
{
    enum plim_dtype x = (enum plim_dtype)a->a.dtype, y = (enum plim_dtype)b->a.dtype;
    if (x == y) return x;
    if (x > PLIM_F16) return y > PLIM_F16 && x < y ? x : y;
    if (y > PLIM_F16) return x;
    return PLIM_F32;
}

/* --- launches --------------------------------------------------------------------------------- */

static void launch_unary(struct engine *e, struct tensor *y, struct tensor *x, enum plim_unary f,
                         double alpha, double beta)
{
    struct plim_op op = {.kind = PLIM_OP_UNARY,
                         .n_out = 1,
                         .n_in = 1,
                         .unary = (uint8_t)f,
                         .alpha = alpha,
                         .beta = beta,
                         .out = {&y->a},
                         .in = {&x->a}};
    if (!e->halted) engine_launch(e, &op);
}

static void launch_binary(struct engine *e, struct tensor *y, struct tensor *a, struct tensor *b,
                          enum plim_binary f, double alpha)
{
    struct plim_op op = {.kind = PLIM_OP_BINARY,
                         .n_out = 1,
                         .n_in = b ? 2 : 1,
                         .binary = (uint8_t)f,
                         .alpha = alpha,
                         .out = {&y->a},
                         .in = {&a->a, b ? &b->a : NULL}};
    if (!e->halted) engine_launch(e, &op);
}

/* --- two tensors ------------------------------------------------------------------------------ */

enum { SELF, OTHER }; /* edges and saved slots of binary operations */

static struct tensor *binary(struct engine *e, const struct node_kind *kind, enum plim_binary f,
                             struct tensor *a, struct tensor *b, bool saves)
{
    struct tensor *x[2] = {a, b};
    if (e->halted) return op_halted(e, 2, x);
    struct node *n = kind ? op_node(e, kind, 2, x) : NULL;
    /* each is needed for the other's gradient; `other` is packed first */
    if (n && saves && a->requires_grad) node_save(e, n, OTHER, b);
    if (n && saves && b->requires_grad) node_save(e, n, SELF, a);
    enum plim_dtype dtype = f >= PLIM_BINARY_EQ ? PLIM_BOOL : promote(a, b);
    struct tensor *y = op_broadcast_result(e, 2, x, dtype);
    launch_binary(e, y, a, b, f, 1);
    return op_done(e, n, y, 2, x);
}

static void add_backward(struct engine *e, struct node *n, struct tensor **grads,
                         struct tensor **out)
{
    (void)e;
    for (int i = OTHER; i >= SELF; i--)
        if (node_wants(n, i)) out[i] = tensor_ref(grads[0]);
}
static const struct node_kind add_kind = {"AddBackward0", add_backward};

struct tensor *op_add(struct engine *e, struct tensor *a, struct tensor *b)
{
    return binary(e, &add_kind, PLIM_BINARY_ADD, a, b, false);
}

struct tensor *op_plus_(struct engine *e, struct tensor *x, struct tensor *other)
{
    struct tensor *operands[2] = {x, other};
    if (e->halted) return op_halted(e, 2, operands);
    struct node *n = op_node(e, &add_kind, 2, operands);
    op_add_(e, x, other);
    return op_done(e, n, op_in_place(e, x), 2, operands);
}

static void sub_backward(struct engine *e, struct node *n, struct tensor **grads,
                         struct tensor **out)
{
    if (node_wants(n, OTHER)) out[OTHER] = tensor_keep(op_neg(e, grads[0]));
    if (node_wants(n, SELF)) out[SELF] = tensor_ref(grads[0]);
}
static const struct node_kind sub_kind = {"SubBackward0", sub_backward};

struct tensor *op_sub(struct engine *e, struct tensor *a, struct tensor *b)
{
    return binary(e, &sub_kind, PLIM_BINARY_SUB, a, b, false);
}

static void mul_backward(struct engine *e, struct node *n, struct tensor **grads,
                         struct tensor **out)
{
    struct tensor *other = node_wants(n, SELF) ? node_saved(e, n, OTHER) : NULL;
    struct tensor *self = node_wants(n, OTHER) ? node_saved(e, n, SELF) : NULL;
    if (self) out[OTHER] = tensor_keep(op_mul(e, grads[0], self));
    if (other) out[SELF] = tensor_keep(op_mul(e, grads[0], other));
}
static const struct node_kind mul_kind = {"MulBackward0", mul_backward};

struct tensor *op_mul(struct engine *e, struct tensor *a, struct tensor *b)
{
    return binary(e, &mul_kind, PLIM_BINARY_MUL, a, b, true);
}

struct tensor *op_mul_(struct engine *e, struct tensor *x, struct tensor *other)
{
    struct tensor *operands[2] = {x, other};
    if (e->halted) return op_halted(e, 2, operands);
    struct node *n = op_node(e, &mul_kind, 2, operands);
    if (n) node_save(e, n, OTHER, other);
    op_binary_(e, PLIM_BINARY_MUL, x, other);
    return op_done(e, n, op_in_place(e, x), 2, operands);
}

/* -grad * ((self / other) / other) and grad / other */
static void div_backward(struct engine *e, struct node *n, struct tensor **grads,
                         struct tensor **out)
{
    struct tensor *other = node_saved(e, n, OTHER);
    struct tensor *self = node_wants(n, OTHER) ? node_saved(e, n, SELF) : NULL;
    if (self) {
        struct tensor *once = tensor_keep(op_div(e, self, other));
        struct tensor *twice = tensor_keep(op_div(e, once, other));
        struct tensor *negative = tensor_keep(op_neg(e, grads[0]));
        out[OTHER] = tensor_keep(op_mul(e, negative, twice));
        tensor_drop_all(e, negative, twice, once);
    }
    if (node_wants(n, SELF)) out[SELF] = tensor_keep(op_div(e, grads[0], other));
}
const struct node_kind op_div_kind = {"DivBackward0", div_backward};

struct tensor *op_div(struct engine *e, struct tensor *a, struct tensor *b)
{
    return binary(e, &op_div_kind, PLIM_BINARY_DIV, a, b, true);
}

struct tensor *op_pow(struct engine *e, struct tensor *a, struct tensor *b)
{
    return binary(e, NULL, PLIM_BINARY_POW, a, b, false);
}

struct tensor *op_maximum(struct engine *e, struct tensor *a, struct tensor *b)
{
    return binary(e, NULL, PLIM_BINARY_MAX, a, b, false);
}

struct tensor *op_minimum(struct engine *e, struct tensor *a, struct tensor *b)
{
    return binary(e, NULL, PLIM_BINARY_MIN, a, b, false);
}

struct tensor *op_compare(struct engine *e, enum plim_binary f, struct tensor *a, struct tensor *b)
{
    return binary(e, NULL, f, a, b, false);
}

/* --- a tensor and a number -------------------------------------------------------------------- */

static struct tensor *with_number(struct engine *e, const struct node_kind *kind,
                                  enum plim_binary f, struct tensor *x, double number)
{
    if (e->halted) return op_halted(e, 1, &x);
    struct node *n = kind ? op_node(e, kind, 1, &x) : NULL;
    if (n) n->number = number; /* a number is not seen by hooks */
    enum plim_dtype dtype = f >= PLIM_BINARY_EQ ? PLIM_BOOL : (enum plim_dtype)x->a.dtype;
    struct tensor *y = op_broadcast_result(e, 1, &x, dtype);
    launch_binary(e, y, x, NULL, f, number);
    return op_done(e, n, y, 1, &x);
}

struct tensor *op_compare_scalar(struct engine *e, enum plim_binary f, struct tensor *a, double b)
{
    return with_number(e, NULL, f, a, b);
}

struct tensor *op_add_scalar(struct engine *e, struct tensor *a, double b)
{
    return with_number(e, &add_kind, PLIM_BINARY_ADD, a, b);
}

static void rsub_backward(struct engine *e, struct node *n, struct tensor **grads, struct tensor **out)
{
    (void)n;
    out[SELF] = tensor_keep(op_neg(e, grads[0]));
}
static const struct node_kind rsub_kind = {"RsubBackward1", rsub_backward};

struct tensor *op_rsub_scalar(struct engine *e, struct tensor *a, double b)
{
    return with_number(e, &rsub_kind, PLIM_BINARY_RSUB, a, b);
}

struct tensor *op_true_div_scalar(struct engine *e, struct tensor *a, double b)
{
    if (e->halted) return op_halted(e, 1, &a);
    struct tensor *y = op_broadcast_result(e, 1, &a, PLIM_F32);
    launch_binary(e, y, a, NULL, PLIM_BINARY_DIV, b);
    return op_done(e, NULL, y, 1, &a);
}

static void mul_scalar_backward(struct engine *e, struct node *n, struct tensor **grads,
                                struct tensor **out)
{
    out[SELF] = tensor_keep(op_mul_scalar(e, grads[0], n->number));
}
static const struct node_kind mul_scalar_kind = {"MulBackward0", mul_scalar_backward};

struct tensor *op_mul_scalar(struct engine *e, struct tensor *a, double b)
{
    return with_number(e, &mul_scalar_kind, PLIM_BINARY_MUL, a, b);
}

static void div_scalar_backward(struct engine *e, struct node *n, struct tensor **grads,
                                struct tensor **out)
{
    out[SELF] = tensor_keep(op_div_scalar(e, grads[0], n->number));
}
static const struct node_kind div_scalar_kind = {"DivBackward0", div_scalar_backward};

struct tensor *op_div_scalar(struct engine *e, struct tensor *a, double b)
{
    return with_number(e, &div_scalar_kind, PLIM_BINARY_DIV, a, b);
}

/* grad * (exponent * self^(exponent - 1)) */
static void pow_backward(struct engine *e, struct node *n, struct tensor **grads,
                         struct tensor **out)
{
    struct tensor *self = node_saved(e, n, SELF);
    struct tensor *power = tensor_keep(op_pow_scalar(e, self, n->number - 1));
    struct tensor *slope = tensor_keep(op_mul_scalar(e, power, n->number));
    out[SELF] = tensor_keep(op_mul(e, grads[0], slope));
    tensor_drop(e, slope);
    tensor_drop(e, power);
}
static const struct node_kind pow_kind = {"PowBackward0", pow_backward};

struct tensor *op_pow_scalar(struct engine *e, struct tensor *x, double exponent)
{
    if (e->halted) return op_halted(e, 1, &x);
    x = autocast_fp32(e, x);
    struct node *n = op_node(e, &pow_kind, 1, &x);
    if (n) {
        n->number = exponent;
        node_save(e, n, SELF, x);
    }
    struct tensor *y = op_broadcast_result(e, 1, &x, (enum plim_dtype)x->a.dtype);
    launch_unary(e, y, x, PLIM_UNARY_POW, exponent, 0);
    return op_done(e, n, y, 1, &x);
}

/* --- in place --------------------------------------------------------------------------------- */

void op_binary_(struct engine *e, enum plim_binary f, struct tensor *a, struct tensor *b)
{
    launch_binary(e, a, a, b, f, 1);
}

void op_unary_(struct engine *e, enum plim_unary f, struct tensor *a)
{
    launch_unary(e, a, a, f, 0, 0);
}

void op_clamp_(struct engine *e, struct tensor *a, double low, double high)
{
    launch_unary(e, a, a, PLIM_UNARY_CLAMP, low, high);
}

void op_lerp_(struct engine *e, struct tensor *a, struct tensor *b, double weight)
{
    launch_binary(e, a, a, b, PLIM_BINARY_LERP, weight);
}

void op_add_scaled_(struct engine *e, struct tensor *a, struct tensor *b, double factor)
{
    launch_binary(e, a, a, b, PLIM_BINARY_ADD, factor);
}

void op_add_(struct engine *e, struct tensor *a, struct tensor *b)
{
    launch_binary(e, a, a, b, PLIM_BINARY_ADD, 1);
}

void op_binary_scalar_(struct engine *e, enum plim_binary f, struct tensor *a, double b)
{
    launch_binary(e, a, a, NULL, f, b);
}

/* --- one tensor ------------------------------------------------------------------------------- */

enum saves { SAVES_NOTHING, SAVES_INPUT, SAVES_RESULT };

static struct tensor *unary(struct engine *e, const struct node_kind *kind, enum plim_unary f,
                            struct tensor *x, enum saves saves)
{
    if (e->halted) return op_halted(e, 1, &x);
    struct node *n = kind ? op_node(e, kind, 1, &x) : NULL;
    if (n && saves == SAVES_INPUT) node_save(e, n, 0, x);
    struct tensor *y = op_broadcast_result(e, 1, &x, (enum plim_dtype)x->a.dtype);
    launch_unary(e, y, x, f, 0, 0);
    if (n && saves == SAVES_RESULT && !e->halted) node_save_output(e, n, 0, y);
    return op_done(e, n, y, 1, &x);
}

struct tensor *op_unary(struct engine *e, struct tensor *x, enum plim_unary f)
{
    return unary(e, NULL, f, x, SAVES_NOTHING);
}

/* Returns x with zeros on one side of a diagonal. */
static struct tensor *triangle(struct engine *e, struct tensor *x, enum plim_op_kind kind, int diagonal)
{
    if (e->halted) return op_halted(e, 1, &x);
    struct tensor *y = op_broadcast_result(e, 1, &x, (enum plim_dtype)x->a.dtype);
    struct plim_op op = {
        .kind = kind, .n_out = 1, .n_in = 1, .dim = (int8_t)diagonal, .out = {&y->a}, .in = {&x->a}};
    if (!e->halted) engine_launch(e, &op);
    return op_done(e, NULL, y, 1, &x);
}

struct tensor *op_tril(struct engine *e, struct tensor *x, int diagonal)
{
    return triangle(e, x, PLIM_OP_TRIL, diagonal);
}

struct tensor *op_triu(struct engine *e, struct tensor *x, int diagonal)
{
    return triangle(e, x, PLIM_OP_TRIU, diagonal);
}

static void neg_backward(struct engine *e, struct node *n, struct tensor **grads,
                         struct tensor **out)
{
    (void)n;
    out[0] = tensor_keep(op_neg(e, grads[0]));
}
static const struct node_kind neg_kind = {"NegBackward0", neg_backward};

struct tensor *op_neg(struct engine *e, struct tensor *x)
{
    return unary(e, &neg_kind, PLIM_UNARY_NEG, x, SAVES_NOTHING);
}

/* (-0.5 * grad) * result^3, the power first */
static void rsqrt_backward(struct engine *e, struct node *n, struct tensor **grads,
                           struct tensor **out)
{
    struct tensor *cube = tensor_keep(op_pow_scalar(e, node_saved(e, n, 0), 3));
    struct tensor *half = tensor_keep(op_mul_scalar(e, grads[0], -0.5));
    out[0] = tensor_keep(op_mul(e, half, cube));
    tensor_drop(e, half);
    tensor_drop(e, cube);
}
static const struct node_kind rsqrt_kind = {"RsqrtBackward0", rsqrt_backward};

struct tensor *op_rsqrt(struct engine *e, struct tensor *x)
{
    return unary(e, &rsqrt_kind, PLIM_UNARY_RSQRT, autocast_fp32(e, x), SAVES_RESULT);
}

/* derivatives that are one kernel of (grad, saved) */
static void kernel_backward(struct engine *e, struct node *n, struct tensor **grads,
                            struct tensor **out, enum plim_unary f)
{
    struct tensor *x[2] = {grads[0], node_saved(e, n, 0)};
    struct tensor *y = op_broadcast_result(e, 2, x, promote(x[0], x[1]));
    struct plim_op op = {.kind = PLIM_OP_UNARY_BACKWARD,
                         .n_out = 1,
                         .n_in = 2,
                         .unary = (uint8_t)f,
                         .out = {&y->a},
                         .in = {&x[0]->a, &x[1]->a}};
    if (!e->halted) engine_launch(e, &op);
    out[0] = tensor_keep(y);
}

#define KERNEL_DERIVATIVE(name, kind_name, f)                                                      \
    static void name##_backward(struct engine *e, struct node *n, struct tensor **grads,           \
                                struct tensor **out)                                               \
    {                                                                                              \
        kernel_backward(e, n, grads, out, f);                                                      \
    }                                                                                              \
    static const struct node_kind name##_kind = {kind_name, name##_backward};

KERNEL_DERIVATIVE(tanh, "TanhBackward0", PLIM_UNARY_TANH)
KERNEL_DERIVATIVE(silu, "SiluBackward0", PLIM_UNARY_SILU)
KERNEL_DERIVATIVE(relu, "ReluBackward0", PLIM_UNARY_RELU)
KERNEL_DERIVATIVE(sigmoid, "SigmoidBackward0", PLIM_UNARY_SIGMOID)
KERNEL_DERIVATIVE(softplus, "SoftplusBackward0", PLIM_UNARY_SOFTPLUS)
KERNEL_DERIVATIVE(log_sigmoid, "LogSigmoidBackward0", PLIM_UNARY_LOG_SIGMOID)
KERNEL_DERIVATIVE(gelu, "GeluBackward0", PLIM_UNARY_GELU)
KERNEL_DERIVATIVE(gelu_tanh, "GeluBackward0", PLIM_UNARY_GELU_TANH)

struct tensor *op_tanh(struct engine *e, struct tensor *x)
{
    return unary(e, &tanh_kind, PLIM_UNARY_TANH, x, SAVES_RESULT);
}

struct tensor *op_silu(struct engine *e, struct tensor *x)
{
    return unary(e, &silu_kind, PLIM_UNARY_SILU, x, SAVES_INPUT);
}

struct tensor *op_relu(struct engine *e, struct tensor *x)
{
    return unary(e, &relu_kind, PLIM_UNARY_RELU, x, SAVES_RESULT);
}

struct tensor *op_sigmoid(struct engine *e, struct tensor *x)
{
    return unary(e, &sigmoid_kind, PLIM_UNARY_SIGMOID, x, SAVES_RESULT);
}

struct tensor *op_gelu(struct engine *e, struct tensor *x, bool tanh_formula)
{
    if (tanh_formula) return unary(e, &gelu_tanh_kind, PLIM_UNARY_GELU_TANH, x, SAVES_INPUT);
    return unary(e, &gelu_kind, PLIM_UNARY_GELU, x, SAVES_INPUT);
}

struct tensor *op_softplus(struct engine *e, struct tensor *x)
{
    return unary(e, &softplus_kind, PLIM_UNARY_SOFTPLUS, autocast_fp32(e, x), SAVES_INPUT);
}

struct tensor *op_log_sigmoid(struct engine *e, struct tensor *x)
{
    return unary(e, &log_sigmoid_kind, PLIM_UNARY_LOG_SIGMOID, x, SAVES_INPUT);
}

/* grad * result */
static void exp_backward(struct engine *e, struct node *n, struct tensor **grads, struct tensor **out)
{
    out[0] = tensor_keep(op_mul(e, grads[0], node_saved(e, n, 0)));
}
static const struct node_kind exp_kind = {"ExpBackward0", exp_backward};

struct tensor *op_exp(struct engine *e, struct tensor *x)
{
    return unary(e, &exp_kind, PLIM_UNARY_EXP, autocast_fp32(e, x), SAVES_RESULT);
}

/* 2 / sqrt(pi) * exp(-self^2) * grad; all intermediate results live until its end */
static void erf_backward(struct engine *e, struct node *n, struct tensor **grads, struct tensor **out)
{
    static const double slope = 1.1283791670955126; /* 2 / sqrt(pi) */
    struct tensor *square = tensor_keep(op_pow_scalar(e, node_saved(e, n, 0), 2));
    struct tensor *below = tensor_keep(op_neg(e, square)), *bell = tensor_keep(op_exp(e, below));
    struct tensor *scaled = tensor_keep(op_mul_scalar(e, bell, slope));
    out[0] = tensor_keep(op_mul(e, scaled, grads[0]));
    tensor_drop_all(e, square, below, bell, scaled);
}
static const struct node_kind erf_kind = {"ErfBackward0", erf_backward};

struct tensor *op_erf(struct engine *e, struct tensor *x)
{
    return unary(e, &erf_kind, PLIM_UNARY_ERF, x, SAVES_INPUT);
}

/* grad / (self + 1) */
static void log1p_backward(struct engine *e, struct node *n, struct tensor **grads, struct tensor **out)
{
    struct tensor *above = tensor_keep(op_add_scalar(e, node_saved(e, n, 0), 1));
    out[0] = tensor_keep(op_div(e, grads[0], above));
    tensor_drop(e, above);
}
static const struct node_kind log1p_kind = {"Log1PBackward0", log1p_backward};

struct tensor *op_log1p(struct engine *e, struct tensor *x)
{
    if (e->halted) return op_halted(e, 1, &x);
    x = autocast_fp32(e, x);
    struct node *n = op_node(e, &log1p_kind, 1, &x);
    if (n) node_save(e, n, 0, x);
    struct tensor *y = op_broadcast_result(e, 1, &x, (enum plim_dtype)x->a.dtype);
    launch_binary(e, y, x, NULL, PLIM_BINARY_ADD, 1);
    launch_unary(e, y, y, PLIM_UNARY_LOG, 0, 0); /* in place: PyTorch has one kernel for both */
    return op_done(e, n, y, 1, &x);
}

/* --- where ------------------------------------------------------------------------------------ */

static void where_backward(struct engine *e, struct node *n, struct tensor **grads,
                           struct tensor **out)
{
    struct tensor *condition = node_saved(e, n, 0);
    if (node_wants(n, 0))
        out[0] = tensor_keep(
            op_where(e, condition, grads[0], NULL, (enum plim_dtype)grads[0]->a.dtype, 0, 0));
    if (node_wants(n, 1))
        out[1] = tensor_keep(
            op_where(e, condition, NULL, grads[0], (enum plim_dtype)grads[0]->a.dtype, 0, 0));
}
static const struct node_kind where_kind = {"WhereBackward0", where_backward};

/* A number is a tensor of one element on the device while the kernel runs. */
static struct tensor *number_on_device(struct engine *e, enum plim_dtype dtype, double value)
{
    return tensor_keep(op_full(e, dtype, 0, NULL, value));
}

struct tensor *op_where(struct engine *e, struct tensor *condition, struct tensor *a,
                        struct tensor *b, enum plim_dtype dtype, double a_number, double b_number)
{
    struct tensor *given[3] = {condition, a, b};
    if (e->halted) return op_halted(e, 3, given);
    struct tensor *left = a ? a : number_on_device(e, dtype, a_number);
    struct tensor *right = b ? b : number_on_device(e, dtype, b_number);
    struct tensor *differentiable[2] = {a, b};
    struct node *n = op_node(e, &where_kind, 2, differentiable);
    if (n) node_save(e, n, 0, condition);
    struct tensor *operands[3] = {condition, left, right};
    struct tensor *y = op_broadcast_result(e, 3, operands, dtype);
    struct plim_op op = {.kind = PLIM_OP_WHERE,
                         .n_out = 1,
                         .n_in = 3,
                         .out = {&y->a},
                         .in = {&condition->a, &left->a, &right->a}};
    if (!e->halted) engine_launch(e, &op);
    if (!b) tensor_drop(e, right);
    if (!a) tensor_drop(e, left);
    return op_done(e, n, y, 3, given);
}

/* --- clamp ------------------------------------------------------------------------------------ */

/* clamp_backward: where(self >= low and self <= high, grad, 0), the zero allocated first; both comparisons live until
 * `where` has run. There is no comparison with an infinite bound. */
static void clamp_backward(struct engine *e, struct node *n, struct tensor **grads, struct tensor **out)
{
    struct tensor *self = node_saved(e, n, 0), *above = NULL, *below = NULL;
    double low = n->number, high = n->scale;
    if (e->halted) return;
    enum plim_dtype dtype = (enum plim_dtype)grads[0]->a.dtype;
    struct tensor *zero = number_on_device(e, dtype, 0);
    if (!isinf(low)) above = tensor_keep(op_compare_scalar(e, PLIM_BINARY_GE, self, low));
    if (!isinf(high)) below = tensor_keep(op_compare_scalar(e, PLIM_BINARY_LE, self, high));
    if (above && below) op_binary_(e, PLIM_BINARY_AND, above, below);
    out[0] = tensor_keep(op_where(e, above ? above : below, grads[0], zero, dtype, 0, 0));
    tensor_drop_all(e, above, below, zero);
}
static const struct node_kind clamp_kind = {"ClampBackward1", clamp_backward};

struct tensor *op_clamp(struct engine *e, struct tensor *x, double low, double high)
{
    if (e->halted) return op_halted(e, 1, &x);
    struct node *n = op_node(e, &clamp_kind, 1, &x);
    if (n) {
        node_save(e, n, 0, x);
        n->number = low;
        n->scale = high;
    }
    struct tensor *y = op_broadcast_result(e, 1, &x, (enum plim_dtype)x->a.dtype);
    launch_unary(e, y, x, PLIM_UNARY_CLAMP, low, high);
    return op_done(e, n, y, 1, &x);
}

struct tensor *op_clip_(struct engine *e, struct tensor *x, double limit)
{
    if (e->halted) return op_halted(e, 1, &x);
    struct node *n = op_node(e, &clamp_kind, 1, &x);
    if (n) {
        struct tensor *before = tensor_keep(op_detached_clone(e, x));
        n->number = -limit;
        n->scale = limit;
        if (!e->halted) node_save(e, n, 0, before);
        tensor_drop(e, before);
    }
    if (!e->halted) op_clamp_(e, x, -limit, limit);
    return op_done(e, n, op_in_place(e, x), 1, &x);
}
