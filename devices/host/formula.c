#include "formula.h"

#include <math.h>

#define SQRT_HALF 0.70710678118654752440        /* sqrt(1/2) */
#define SQRT_2_OVER_PI 0.79788456080286535588   /* sqrt(2/pi) */
#define TWO_OVER_SQRT_PI 1.12837916709551257390
#define SQRT_1_OVER_2_PI 0.39894228040143267794 /* sqrt(1/(2 pi)) */

bool plim_is_integer(double x)
{
    return x >= -0x1p63 && x < 0x1p63 && x == floor(x);
}

/* --- one number ------------------------------------------------------------------------------- */

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

/* The cumulative distribution function of the standard normal distribution. */
static double normal_cdf(double x)
{
    return 0.5 * erfc(-x * SQRT_HALF);
}

static double gelu_tanh_inner(double x)
{
    return tanh(SQRT_2_OVER_PI * (x + 0.044715 * x * x * x));
}

#define FORMULA(name, value)                                                                       \
    static double name(double x, double alpha, double beta)                                        \
    {                                                                                              \
        (void)alpha, (void)beta;                                                                   \
        return value;                                                                              \
    }

FORMULA(unary_neg, -x)
FORMULA(unary_cos, cos(x))
FORMULA(unary_sin, sin(x))
FORMULA(unary_rsqrt, 1 / sqrt(x))
FORMULA(unary_tanh, tanh(x))
FORMULA(unary_silu, x / (1 + exp(-x)))
FORMULA(unary_relu, x <= 0 ? 0 : x)
FORMULA(unary_sigmoid, sigmoid(x))
FORMULA(unary_gelu, normal_cdf(x) * x)
FORMULA(unary_gelu_tanh, 0.5 * x * (1 + gelu_tanh_inner(x)))
FORMULA(unary_pow, pow(x, alpha))
FORMULA(unary_reciprocal, 1 / x)
FORMULA(unary_not, x == 0)
FORMULA(unary_abs, fabs(x))
FORMULA(unary_clamp, (x < alpha ? alpha : x) > beta ? beta : (x < alpha ? alpha : x))
FORMULA(unary_exp, exp(x))
FORMULA(unary_softplus, x > 20 ? x : log1p(exp(x)))
FORMULA(unary_softcap, alpha * tanh(x / alpha))
FORMULA(unary_log, log(x))
FORMULA(unary_log_sigmoid, fmin(x, 0) - log1p(exp(-fabs(x))))
FORMULA(unary_floor, floor(x))
FORMULA(unary_erf, erf(x))

plim_unary_formula *const plim_unary_formulas[PLIM_UNARY_COUNT] = {
    [PLIM_UNARY_NEG] = unary_neg,
    [PLIM_UNARY_COS] = unary_cos,
    [PLIM_UNARY_SIN] = unary_sin,
    [PLIM_UNARY_RSQRT] = unary_rsqrt,
    [PLIM_UNARY_TANH] = unary_tanh,
    [PLIM_UNARY_SILU] = unary_silu,
    [PLIM_UNARY_RELU] = unary_relu,
    [PLIM_UNARY_SIGMOID] = unary_sigmoid,
    [PLIM_UNARY_GELU] = unary_gelu,
    [PLIM_UNARY_GELU_TANH] = unary_gelu_tanh,
    [PLIM_UNARY_POW] = unary_pow,
    [PLIM_UNARY_RECIPROCAL] = unary_reciprocal,
    [PLIM_UNARY_NOT] = unary_not,
    [PLIM_UNARY_ABS] = unary_abs,
    [PLIM_UNARY_CLAMP] = unary_clamp,
    [PLIM_UNARY_EXP] = unary_exp,
    [PLIM_UNARY_SOFTPLUS] = unary_softplus,
    [PLIM_UNARY_SOFTCAP] = unary_softcap,
    [PLIM_UNARY_LOG] = unary_log,
    [PLIM_UNARY_LOG_SIGMOID] = unary_log_sigmoid,
    [PLIM_UNARY_FLOOR] = unary_floor,
    [PLIM_UNARY_ERF] = unary_erf,
};

/* --- derivatives ------------------------------------------------------------------------------ */

/* d/dx 0.5 x (1 + tanh(u)), u = sqrt(2/pi) (x + 0.044715 x^3) */
static double gelu_tanh_slope(double x)
{
    double t = gelu_tanh_inner(x);
    double du = SQRT_2_OVER_PI * (1 + 3 * 0.044715 * x * x);
    return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * du;
}

/* saved: x, or y if PyTorch saves the result */
#define DERIVATIVE(name, value)                                                                    \
    static double name(double dy, double saved, double alpha, double beta)                         \
    {                                                                                              \
        (void)dy, (void)saved, (void)alpha, (void)beta;                                            \
        return value;                                                                              \
    }

DERIVATIVE(neg_slope, -dy)
DERIVATIVE(cos_slope, sin(saved) * -dy)
DERIVATIVE(sin_slope, cos(saved) * dy)
DERIVATIVE(rsqrt_slope, -0.5 * dy / (saved * sqrt(saved)))
DERIVATIVE(tanh_slope, (1 - saved * saved) * dy)
DERIVATIVE(silu_slope, sigmoid(saved) * (1 + saved * (1 - sigmoid(saved))) * dy)
DERIVATIVE(relu_slope, saved <= 0 ? 0 : dy)
DERIVATIVE(sigmoid_slope, dy * (1 - saved) * saved)
DERIVATIVE(gelu_slope,
           (normal_cdf(saved) + saved * SQRT_1_OVER_2_PI * exp(-0.5 * saved * saved)) * dy)
DERIVATIVE(gelu_tanh_derivative, gelu_tanh_slope(saved) * dy)
DERIVATIVE(pow_slope, alpha == 0 ? 0 : dy * alpha * pow(saved, alpha - 1))
DERIVATIVE(reciprocal_slope, -dy / (saved * saved))
DERIVATIVE(abs_slope, saved > 0 ? dy : saved < 0 ? -dy : 0)
DERIVATIVE(clamp_slope, saved >= alpha && saved <= beta ? dy : 0)
DERIVATIVE(exp_slope, dy * exp(saved))
DERIVATIVE(softplus_slope, saved > 20 ? dy : dy * sigmoid(saved))
DERIVATIVE(softcap_slope, dy * (1 - tanh(saved / alpha) * tanh(saved / alpha)))
DERIVATIVE(log_slope, dy / saved)
DERIVATIVE(log_sigmoid_slope, dy * sigmoid(-saved))
DERIVATIVE(floor_slope, 0)
DERIVATIVE(erf_slope, TWO_OVER_SQRT_PI * exp(-saved * saved) * dy)

plim_unary_derivative *const plim_unary_derivatives[PLIM_UNARY_COUNT] = {
    [PLIM_UNARY_NEG] = neg_slope,
    [PLIM_UNARY_COS] = cos_slope,
    [PLIM_UNARY_SIN] = sin_slope,
    [PLIM_UNARY_RSQRT] = rsqrt_slope,
    [PLIM_UNARY_TANH] = tanh_slope,
    [PLIM_UNARY_SILU] = silu_slope,
    [PLIM_UNARY_RELU] = relu_slope,
    [PLIM_UNARY_SIGMOID] = sigmoid_slope,
    [PLIM_UNARY_GELU] = gelu_slope,
    [PLIM_UNARY_GELU_TANH] = gelu_tanh_derivative,
    [PLIM_UNARY_POW] = pow_slope,
    [PLIM_UNARY_RECIPROCAL] = reciprocal_slope,
    [PLIM_UNARY_ABS] = abs_slope,
    [PLIM_UNARY_CLAMP] = clamp_slope,
    [PLIM_UNARY_EXP] = exp_slope,
    [PLIM_UNARY_SOFTPLUS] = softplus_slope,
    [PLIM_UNARY_SOFTCAP] = softcap_slope,
    [PLIM_UNARY_LOG] = log_slope,
    [PLIM_UNARY_LOG_SIGMOID] = log_sigmoid_slope,
    [PLIM_UNARY_FLOOR] = floor_slope,
    [PLIM_UNARY_ERF] = erf_slope,
};

/* --- two numbers ------------------------------------------------------------------------------ */

/* If one is NaN, so is the result. */
static double larger(double a, double b)
{
    return a > b || isnan(a) ? a : b;
}

static double smaller(double a, double b)
{
    return a < b || isnan(a) ? a : b;
}

#define BINARY(name, type, value)                                                                  \
    static type name(type a, type b)                                                               \
    {                                                                                              \
        return value;                                                                              \
    }

BINARY(binary_add, double, a + b)
BINARY(binary_sub, double, a - b)
BINARY(binary_rsub, double, b - a)
BINARY(binary_mul, double, (a * b))
BINARY(binary_div, double, a / b)
BINARY(binary_eq, double, a == b)
BINARY(binary_ne, double, a != b)
BINARY(binary_lt, double, a < b)
BINARY(binary_le, double, a <= b)
BINARY(binary_gt, double, a > b)
BINARY(binary_ge, double, a >= b)
BINARY(binary_and, double, a != 0 && b != 0)
BINARY(binary_or, double, a != 0 || b != 0)

plim_binary_formula *const plim_binary_formulas[PLIM_BINARY_COUNT] = {
    [PLIM_BINARY_ADD] = binary_add,   [PLIM_BINARY_SUB] = binary_sub,
    [PLIM_BINARY_RSUB] = binary_rsub, [PLIM_BINARY_MUL] = binary_mul,
    [PLIM_BINARY_DIV] = binary_div,   [PLIM_BINARY_POW] = pow,
    [PLIM_BINARY_MAX] = larger,       [PLIM_BINARY_MIN] = smaller,
    [PLIM_BINARY_HYPOT] = hypot,      [PLIM_BINARY_EQ] = binary_eq,
    [PLIM_BINARY_NE] = binary_ne,     [PLIM_BINARY_LT] = binary_lt,
    [PLIM_BINARY_LE] = binary_le,     [PLIM_BINARY_GT] = binary_gt,
    [PLIM_BINARY_GE] = binary_ge,     [PLIM_BINARY_AND] = binary_and,
    [PLIM_BINARY_OR] = binary_or,
};

/* --- integers --------------------------------------------------------------------------------- */

/* By squaring, modulo 2^64; 1/x^n is an integer only for 1 and -1, otherwise truncated to 0. */
static int64_t integer_pow(int64_t base, int64_t exponent)
{
    uint64_t y = 1, factor = (uint64_t)base;
    if (exponent < 0) {
        if (base != 1 && base != -1) return 0;
        exponent = exponent % 2 != 0;
    }
    for (; exponent > 0; exponent /= 2, factor *= factor)
        if (exponent % 2) y *= factor;
    return (int64_t)y;
}

/* Sums and products are those of unsigned numbers, where overflow is defined. */
BINARY(integer_add, int64_t, (int64_t)((uint64_t)a + (uint64_t)b))
BINARY(integer_sub, int64_t, (int64_t)((uint64_t)a - (uint64_t)b))
BINARY(integer_rsub, int64_t, (int64_t)((uint64_t)b - (uint64_t)a))
BINARY(integer_mul, int64_t, (int64_t)((uint64_t)a *(uint64_t)b))
BINARY(integer_max, int64_t, a > b ? a : b)
BINARY(integer_min, int64_t, a < b ? a : b)
BINARY(integer_eq, int64_t, a == b)
BINARY(integer_ne, int64_t, a != b)
BINARY(integer_lt, int64_t, a < b)
BINARY(integer_le, int64_t, a <= b)
BINARY(integer_gt, int64_t, a > b)
BINARY(integer_ge, int64_t, a >= b)
BINARY(integer_and, int64_t, a != 0 && b != 0)
BINARY(integer_or, int64_t, a != 0 || b != 0)

plim_binary_integer *const plim_binary_integers[PLIM_BINARY_COUNT] = {
    [PLIM_BINARY_ADD] = integer_add,   [PLIM_BINARY_SUB] = integer_sub,
    [PLIM_BINARY_RSUB] = integer_rsub, [PLIM_BINARY_MUL] = integer_mul,
    [PLIM_BINARY_POW] = integer_pow,   [PLIM_BINARY_MAX] = integer_max,
    [PLIM_BINARY_MIN] = integer_min,   [PLIM_BINARY_EQ] = integer_eq,
    [PLIM_BINARY_NE] = integer_ne,     [PLIM_BINARY_LT] = integer_lt,
    [PLIM_BINARY_LE] = integer_le,     [PLIM_BINARY_GT] = integer_gt,
    [PLIM_BINARY_GE] = integer_ge,     [PLIM_BINARY_AND] = integer_and,
    [PLIM_BINARY_OR] = integer_or,
};

#define INTEGER(name, value)                                                                       \
    static int64_t name(int64_t x, int64_t alpha, int64_t beta)                                    \
    {                                                                                              \
        (void)alpha, (void)beta;                                                                   \
        return value;                                                                              \
    }

INTEGER(integer_neg, (int64_t)(0 - (uint64_t)x))
INTEGER(integer_relu, x < 0 ? 0 : x)
INTEGER(integer_power, integer_pow(x, alpha))
INTEGER(integer_not, x == 0)
INTEGER(integer_abs, x < 0 ? integer_neg(x, 0, 0) : x)
INTEGER(integer_clamp, integer_min(integer_max(x, alpha), beta))

plim_unary_integer *plim_unary_integers(const struct plim_op *op)
{
    static plim_unary_integer *const integers[PLIM_UNARY_COUNT] = {
        [PLIM_UNARY_NEG] = integer_neg,     [PLIM_UNARY_RELU] = integer_relu,
        [PLIM_UNARY_POW] = integer_power,   [PLIM_UNARY_NOT] = integer_not,
        [PLIM_UNARY_ABS] = integer_abs,     [PLIM_UNARY_CLAMP] = integer_clamp,
    };
    bool whole = plim_is_integer(op->alpha) && plim_is_integer(op->beta);
    return whole ? integers[op->unary] : NULL;
}
