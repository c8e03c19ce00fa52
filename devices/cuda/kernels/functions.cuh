/* The functions of UNARY, UNARY_BACKWARD and BINARY on V elements in registers. The function is the
 * same for the whole launch, so the switch stands outside of the loop over the elements. Integers
 * wrap at 64 bits. */
#ifndef PLIM_CUDA_KERNELS_FUNCTIONS_CUH
#define PLIM_CUDA_KERNELS_FUNCTIONS_CUH

#include "devices/op.h"
#include "kernel.cuh"

/* For each of V elements: `value`, in terms of x = v[i] and whatever is in scope. */
#define EACH(value)                                                                                \
    {                                                                                              \
        PLIM_UNROLL                                                                                \
        for (int i = 0; i < V; i++) {                                                              \
            auto x = v[i];                                                                         \
            v[i] = value;                                                                          \
        }                                                                                          \
        return;                                                                                    \
    }

/* The random unit numbers of V elements from `first` on; V is 1 or a multiple of 4 that divides
 * `first`. */
template <int V> __device__ inline void random_units(float (&v)[V], uint64_t seed, uint64_t first)
{
    if constexpr (V == 1) {
        v[0] = plim_random_unit(random_word(seed, first));
    } else {
        PLIM_UNROLL
        for (int i = 0; i < V; i += 4) {
            uint32_t word[4];
            plim_philox(seed, (first + i) / 4, word);
            PLIM_UNROLL
            for (int k = 0; k < 4; k++) v[i + k] = plim_random_unit(word[k]);
        }
    }
}

/* --- one number ------------------------------------------------------------------------------- */

#define SQRT_HALF 0.70710678118654752f        /* sqrt(1/2) */
#define SQRT_2_OVER_PI 0.79788456080286536f   /* sqrt(2/pi) */
#define TWO_OVER_SQRT_PI 1.1283791670955126f
#define SQRT_1_OVER_2_PI 0.39894228040143268f /* sqrt(1/(2 pi)) */
#define ONE_OVER_PI 0.31830988618379067154    /* 1/pi */

/* sin(pi t), from t less its nearest integer. Angles are divided by pi in double, so that large
 * ones keep their digits; cosf() and sinf() would keep an array in local memory for them. */
__device__ inline float sine_of_half_turns(double t)
{
    double nearest = rint(t);
    float y = sinpif((float)(t - nearest));
    return (int64_t)nearest & 1 ? -y : y;
}

__device__ inline float sine(float x)
{
    return sine_of_half_turns((double)x * ONE_OVER_PI);
}

__device__ inline float cosine(float x)
{
    return sine_of_half_turns((double)x * ONE_OVER_PI + 0.5);
}

__device__ inline float sigmoid(float x)
{
    return 1.0f / (1.0f + expf(-x));
}

/* The standard normal distribution up to x. */
__device__ inline float normal_cdf(float x)
{
    return 0.5f * erfcf(-x * SQRT_HALF);
}

/* 0.5 (1 + tanh(u)) = sigmoid(2 u), which does not cancel for negative x; as in GELU_TANH
 * u = sqrt(2/pi) (x + 0.044715 x^3). */
__device__ inline float gelu_tanh_gate(float x)
{
    return sigmoid(2.0f * SQRT_2_OVER_PI * (x + 0.044715f * x * x * x));
}

__device__ inline float power(float x, float exponent)
{
    if (exponent == 2.0f) return x * x;
    if (exponent == 3.0f) return x * x * x;
    return powf(x, exponent);
}

template <int V>
__device__ inline void unary_function(float (&v)[V], int function, float alpha, float beta)
{
    switch (function) {
    case PLIM_UNARY_NEG: EACH(-x)
    case PLIM_UNARY_COS: EACH(cosine(x))
    case PLIM_UNARY_SIN: EACH(sine(x))
    case PLIM_UNARY_RSQRT: EACH(rsqrtf(x))
    case PLIM_UNARY_TANH: EACH(tanhf(x))
    case PLIM_UNARY_SILU: EACH(x / (1.0f + expf(-x)))
    case PLIM_UNARY_RELU: EACH(x <= 0.0f ? 0.0f : x)
    case PLIM_UNARY_SIGMOID: EACH(sigmoid(x))
    case PLIM_UNARY_GELU: EACH(x * normal_cdf(x))
    case PLIM_UNARY_GELU_TANH: EACH(x * gelu_tanh_gate(x))
    case PLIM_UNARY_POW: EACH(power(x, alpha))
    case PLIM_UNARY_RECIPROCAL: EACH(1.0f / x)
    case PLIM_UNARY_NOT: EACH(x == 0.0f ? 1.0f : 0.0f)
    case PLIM_UNARY_ABS: EACH(fabsf(x))
    case PLIM_UNARY_CLAMP: EACH(smaller()(larger()(x, alpha), beta))
    case PLIM_UNARY_EXP: EACH(expf(x))
    case PLIM_UNARY_SOFTPLUS: EACH(x > 20.0f ? x : log1pf(expf(x)))
    case PLIM_UNARY_SOFTCAP: EACH(alpha * tanhf(x / alpha))
    case PLIM_UNARY_LOG: EACH(logf(x))
    case PLIM_UNARY_LOG_SIGMOID: EACH(smaller()(x, 0.0f) - log1pf(expf(-fabsf(x))))
    case PLIM_UNARY_FLOOR: EACH(floorf(x))
    case PLIM_UNARY_ERF: EACH(erff(x))
    }
}

/* d/dx x sigmoid(2 u) */
__device__ inline float gelu_tanh_slope(float x)
{
    float s = gelu_tanh_gate(x), du = SQRT_2_OVER_PI * (1.0f + 3 * 0.044715f * x * x);
    return s + x * 2.0f * s * (1.0f - s) * du;
}

__device__ inline float silu_slope(float x)
{
    float s = sigmoid(x);
    return s * (1.0f + x * (1.0f - s));
}

__device__ inline float softcap_slope(float x, float cap)
{
    float y = tanhf(x / cap);
    return 1.0f - y * y;
}

/* v: the gradient of the result, becomes that of the input. `saved` as in op.h. */
template <int V>
__device__ inline void unary_derivative(float (&v)[V], const float (&saved)[V], int function,
                                        float alpha, float beta)
{
#define S saved[i]
    switch (function) {
    case PLIM_UNARY_NEG: EACH(-x)
    case PLIM_UNARY_COS: EACH(-x * sine(S))
    case PLIM_UNARY_SIN: EACH(x * cosine(S))
    case PLIM_UNARY_RSQRT: EACH(-0.5f * x / (S * sqrtf(S)))
    case PLIM_UNARY_TANH: EACH(x * (1.0f - S * S))
    case PLIM_UNARY_SILU: EACH(x * silu_slope(S))
    case PLIM_UNARY_RELU: EACH(S <= 0.0f ? 0.0f : x)
    case PLIM_UNARY_SIGMOID: EACH(x * (1.0f - S) * S)
    case PLIM_UNARY_GELU: EACH(x * (normal_cdf(S) + S * SQRT_1_OVER_2_PI * expf(-0.5f * S * S)))
    case PLIM_UNARY_GELU_TANH: EACH(x * gelu_tanh_slope(S))
    case PLIM_UNARY_POW: EACH(alpha == 0.0f ? 0.0f : x * alpha * power(S, alpha - 1.0f))
    case PLIM_UNARY_RECIPROCAL: EACH(-x / (S * S))
    case PLIM_UNARY_ABS: EACH(S > 0.0f ? x : S < 0.0f ? -x : 0.0f)
    case PLIM_UNARY_CLAMP: EACH(S >= alpha && S <= beta ? x : 0.0f)
    case PLIM_UNARY_EXP: EACH(x * expf(S))
    case PLIM_UNARY_SOFTPLUS: EACH(S > 20.0f ? x : x * sigmoid(S))
    case PLIM_UNARY_SOFTCAP: EACH(x * softcap_slope(S, alpha))
    case PLIM_UNARY_LOG: EACH(x / S)
    case PLIM_UNARY_LOG_SIGMOID: EACH(x * sigmoid(-S))
    case PLIM_UNARY_FLOOR: EACH(((void)x, 0.0f))
    case PLIM_UNARY_ERF: EACH(x * TWO_OVER_SQRT_PI * expf(-S * S))
    }
#undef S
}

/* --- two numbers ------------------------------------------------------------------------------ */

__device__ inline float add(float a, float b)
{
    return a + b;
}

__device__ inline int64_t add(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a + (uint64_t)b);
}

__device__ inline float product(float a, float b)
{
    return a * b;
}

__device__ inline int64_t product(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a * (uint64_t)b);
}

template <int V>
__device__ inline void binary_function(float (&v)[V], const float (&b)[V], int function,
                                       float alpha)
{
    switch (function) {
    case PLIM_BINARY_ADD: EACH(x + b[i])
    case PLIM_BINARY_SUB: EACH(x - b[i])
    case PLIM_BINARY_RSUB: EACH(b[i] - x)
    case PLIM_BINARY_MUL: EACH(x * b[i])
    case PLIM_BINARY_DIV: EACH(x / b[i])
    case PLIM_BINARY_POW: EACH(power(x, b[i]))
    case PLIM_BINARY_MAX: EACH(larger()(x, b[i]))
    case PLIM_BINARY_MIN: EACH(smaller()(x, b[i]))
    case PLIM_BINARY_LERP: EACH(x + alpha * (b[i] - x))
    case PLIM_BINARY_HYPOT: EACH(hypotf(x, b[i]))
    case PLIM_BINARY_EQ: EACH(x == b[i] ? 1.0f : 0.0f)
    case PLIM_BINARY_NE: EACH(x != b[i] ? 1.0f : 0.0f)
    case PLIM_BINARY_LT: EACH(x < b[i] ? 1.0f : 0.0f)
    case PLIM_BINARY_LE: EACH(x <= b[i] ? 1.0f : 0.0f)
    case PLIM_BINARY_GT: EACH(x > b[i] ? 1.0f : 0.0f)
    case PLIM_BINARY_GE: EACH(x >= b[i] ? 1.0f : 0.0f)
    case PLIM_BINARY_AND: EACH(x != 0.0f && b[i] != 0.0f ? 1.0f : 0.0f)
    case PLIM_BINARY_OR: EACH(x != 0.0f || b[i] != 0.0f ? 1.0f : 0.0f)
    }
}

/* --- integers --------------------------------------------------------------------------------- */

/* By squaring. 1 / x^n is an integer for 1 and -1 only, else truncated to 0. */
__device__ inline int64_t power(int64_t base, int64_t exponent)
{
    uint64_t y = 1, factor = (uint64_t)base;
    if (exponent < 0) {
        if (base != 1 && base != -1) return 0;
        exponent = exponent % 2 != 0;
    }
    for (; exponent > 0; exponent /= 2, factor *= factor)
        if (exponent % 2 != 0) y *= factor;
    return (int64_t)y;
}

template <int V>
__device__ inline void unary_function(int64_t (&v)[V], int function, int64_t alpha, int64_t beta)
{
    switch (function) {
    case PLIM_UNARY_NEG: EACH((int64_t)(0 - (uint64_t)x))
    case PLIM_UNARY_RELU: EACH(x < 0 ? 0 : x)
    case PLIM_UNARY_POW: EACH(power(x, alpha))
    case PLIM_UNARY_NOT: EACH(x == 0)
    case PLIM_UNARY_ABS: EACH(x < 0 ? (int64_t)(0 - (uint64_t)x) : x)
    case PLIM_UNARY_CLAMP: EACH(smaller()(larger()(x, alpha), beta))
    }
}

template <int V>
__device__ inline void binary_function(int64_t (&v)[V], const int64_t (&b)[V], int function,
                                       int64_t)
{
    switch (function) {
    case PLIM_BINARY_ADD: EACH(add(x, b[i]))
    case PLIM_BINARY_SUB: EACH((int64_t)((uint64_t)x - (uint64_t)b[i]))
    case PLIM_BINARY_RSUB: EACH((int64_t)((uint64_t)b[i] - (uint64_t)x))
    case PLIM_BINARY_MUL: EACH(product(x, b[i]))
    case PLIM_BINARY_POW: EACH(power(x, b[i]))
    case PLIM_BINARY_MAX: EACH(larger()(x, b[i]))
    case PLIM_BINARY_MIN: EACH(smaller()(x, b[i]))
    case PLIM_BINARY_EQ: EACH(x == b[i])
    case PLIM_BINARY_NE: EACH(x != b[i])
    case PLIM_BINARY_LT: EACH(x < b[i])
    case PLIM_BINARY_LE: EACH(x <= b[i])
    case PLIM_BINARY_GT: EACH(x > b[i])
    case PLIM_BINARY_GE: EACH(x >= b[i])
    case PLIM_BINARY_AND: EACH(x != 0 && b[i] != 0)
    case PLIM_BINARY_OR: EACH(x != 0 || b[i] != 0)
    }
}

#endif
