#include "function_parts.h"
#include <math.h>
#include <string.h>

/* The functions of PyTorch's aten/src/ATen/native/cuda, 2.0 to 2.15: BinaryMulKernel.cu, BinaryDiv*Kernels.cu,
 * BinaryRemainderKernel.cu, BinaryBitwiseOpsKernels.cu, BinaryShiftOpsKernels.cu, BinaryLogicalOpsKernels.cu,
 * CompareKernels.cu, CompareEQKernel.cu, MaxMinElementwiseKernel.cu, TensorCompare.cu, FillKernel.cu, Copy.cu,
 * IndexKernel.cu (masked_fill), UnaryOpsKernel.cu, UnarySignKernels.cu, UnaryFractionKernels.cu, AbsKernel.cu,
 * PowKernel.cu. Functions whose last bits depend on the GPU's math library (exp, log, rsqrt ...) are not supported. */

#define FUNCTION(name)                                                                             \
    static void name(const struct plim_function_call *call, const struct plim_column *x,           \
                     struct plim_column *out, size_t count)

/* --- arithmetic ------------------------------------------------------------------------------- */

/* Integer arithmetic wraps around. */
#define UNARY(name, of_int, of_float)                                                              \
    FUNCTION(name)                                                                                 \
    {                                                                                              \
        UNUSED_CALL;                                                                               \
        EACH                                                                                       \
        {                                                                                          \
            if (x->is_float) {                                                                     \
                const double a = x->f[k];                                                          \
                out->f[k] = of_float;                                                              \
            } else {                                                                               \
                const int64_t a = x->i[k];                                                         \
                out->i[k] = of_int;                                                                \
            }                                                                                      \
        }                                                                                          \
    }

UNARY(copy, a, a)
UNARY(negate, (int64_t) - (uint64_t)a, -a)
UNARY(absolute, a < 0 ? (int64_t) - (uint64_t)a : a, fabs(a))
UNARY(sign, (a > 0) - (a < 0), isnan(a) ? 0 : (a > 0) - (a < 0))
UNARY(ceiling, a, ceil(a))
UNARY(lower, a, floor(a))
UNARY(nearest, a, nearbyint(a))
UNARY(truncate, a, trunc(a))
UNARY(root, a, sqrt(a))
UNARY(reciprocal, a, 1 / a)
UNARY(square, (int64_t)((uint64_t)a *(uint64_t)a), a *a)

FUNCTION(bitwise_not)
{
    bool is_bool = call->functor->inner[0] == PLIM_BOOL;
    EACH out->i[k] = is_bool ? !x->i[k] : ~x->i[k];
}

FUNCTION(logical_not)
{
    UNUSED_CALL;
    EACH out->i[k] = x->is_float ? !(x->f[k] < 0 || x->f[k] > 0 || isnan(x->f[k])) : !x->i[k];
}

FUNCTION(fill)
{
    (void)x;
    struct plim_number n = plim_function_number(call, 0, call->functor->result);
    EACH
    {
        out->i[k] = n.i;
        out->f[k] = n.f;
        out->known[k] = PLIM_KNOWN;
    }
}

static void add_scaled(const struct plim_column *a, const struct plim_column *b,
                       struct plim_number scale, enum plim_type type, struct plim_column *out,
                       size_t count)
{
    EACH
    {
        if (a->is_float)
            out->f[k] = a->f[k] + plim_number_round(scale.f * b->f[k], plim_type_math(type));
        else
            out->i[k] = (int64_t)((uint64_t)a->i[k] + (uint64_t)scale.i * (uint64_t)b->i[k]);
    }
}

FUNCTION(add)
{
    enum plim_type type = call->functor->inner[0];
    add_scaled(&x[0], &x[1], plim_function_number(call, 0, plim_type_math(type)), type, out, count);
}

/* The functors hold {other, alpha} for x + alpha * other, and {self, alpha} for self + alpha * x. */
FUNCTION(add_to_each)
{
    enum plim_type type = call->functor->inner[0], math = plim_type_math(type);
    struct plim_column other;
    plim_column_repeat(&other, plim_function_number(call, 0, math), count);
    add_scaled(x, &other, plim_function_number(call, plim_type_bytes(math), math), type, out, count);
}

FUNCTION(add_each_to)
{
    enum plim_type type = call->functor->inner[0], math = plim_type_math(type);
    struct plim_column self;
    plim_column_repeat(&self, plim_function_number(call, 0, math), count);
    add_scaled(&self, x, plim_function_number(call, plim_type_bytes(math), math), type, out, count);
}

FUNCTION(multiply)
{
    UNUSED_CALL;
    EACH
    {
        if (x->is_float)
            out->f[k] = x[0].f[k] * x[1].f[k];
        else
            out->i[k] = (int64_t)((uint64_t)x[0].i[k] * (uint64_t)x[1].i[k]);
        for (int side = 0; side < 2 && !x->is_float; side++) /* zero times an unknown integer is zero */
            if (!x[side].i[k] && x[side].known[k] & PLIM_KNOWN && !(out->known[k] & PLIM_KNOWN)) {
                out->i[k] = 0;
                out->known[k] = x[side].known[k];
            }
    }
}

FUNCTION(divide)
{
    UNUSED_CALL;
    EACH out->f[k] = x[0].f[k] / x[1].f[k];
}

/* A division by zero, or one that overflows, is unknown. */
#define INTEGER_DIVISION(result, of_float)                                                         \
    UNUSED_CALL;                                                                                   \
    EACH                                                                                           \
    {                                                                                              \
        if (x->is_float) {                                                                         \
            const double a = x[0].f[k], b = x[1].f[k];                                             \
            out->f[k] = of_float;                                                                  \
            continue;                                                                              \
        }                                                                                          \
        const int64_t a = x[0].i[k], b = x[1].i[k];                                                \
        bool works = b && !(b == -1 && a == INT64_MIN);                                            \
        out->i[k] = works ? (result) : 0;                                                          \
        if (!works) out->known[k] = PLIM_UNKNOWN;                                                  \
    }

static double python_remainder(double a, double b)
{
    double r = fmod(a, b);
    return r != 0 && (b < 0) != (r < 0) ? r + b : r;
}

/* div_floor_floating in c10/util/generic_math.h */
static double floor_divide(double a, double b)
{
    if (b == 0) return a / b;
    double r = fmod(a, b), q = (a - r) / b;
    if (r != 0 && (b < 0) != (r < 0)) q -= 1;
    if (q == 0) return copysign(0, a / b);
    double whole = floor(q);
    return q - whole > 0.5 ? whole + 1 : whole;
}

FUNCTION(divide_down){INTEGER_DIVISION(a / b - ((a % b != 0) & ((a < 0) != (b < 0))),
                                       floor_divide(a, b))} FUNCTION(divide_to_zero){
    INTEGER_DIVISION(a / b, trunc(a / b))} FUNCTION(modulo){
    INTEGER_DIVISION(a % b + ((a % b != 0) & ((a % b < 0) != (b < 0))) * b,
                     python_remainder(a, b))} FUNCTION(remainder_of){
    INTEGER_DIVISION(a % b, fmod(a, b))}

/* The functor holds {b, 1 / b}. */
FUNCTION(divide_down_by)
{
    double b = plim_function_number(call, 0, plim_type_math(call->functor->inner[0])).f;
    EACH out->f[k] = floor_divide(x->f[k], b);
}

/* Shifting by the width or more gives 0, or the sign for a right shift. */
FUNCTION(shift_left)
{
    size_t bits = 8 * plim_type_bytes(call->functor->result);
    EACH
    {
        uint64_t by = (uint64_t)x[1].i[k];
        out->i[k] = by < bits ? (int64_t)((uint64_t)x[0].i[k] << by) : 0;
    }
}

FUNCTION(shift_right)
{
    size_t bits = 8 * plim_type_bytes(call->functor->result);
    EACH
    {
        uint64_t by = (uint64_t)x[1].i[k];
        out->i[k] = x[0].i[k] >> (by < bits ? by : bits - 1);
    }
}

/* --- bitwise and logical operations ----------------------------------------------------------- */

static bool truth(const struct plim_column *x, size_t k)
{
    return x->is_float ? x->f[k] < 0 || x->f[k] > 0 || isnan(x->f[k]) : x->i[k] != 0;
}

/* Settles unknown results: one known argument whose truth value is `enough` determines the result. */
static void settle(const struct plim_column *x, bool enough, int64_t result,
                   struct plim_column *out, size_t count)
{
    EACH
    {
        if (out->known[k] & PLIM_KNOWN) continue;
        for (int side = 0; side < 2; side++)
            if (x[side].known[k] & PLIM_KNOWN && truth(&x[side], k) == enough) {
                out->i[k] = result;
                out->known[k] = x[side].known[k];
            }
    }
}

FUNCTION(bitwise_and)
{
    UNUSED_CALL;
    EACH out->i[k] = x[0].i[k] & x[1].i[k];
    settle(x, false, 0, out, count);
}

FUNCTION(bitwise_or)
{
    EACH out->i[k] = x[0].i[k] | x[1].i[k];
    if (call->functor->inner[0] == PLIM_BOOL) settle(x, true, 1, out, count);
}

FUNCTION(bitwise_xor)
{
    UNUSED_CALL;
    EACH out->i[k] = x[0].i[k] ^ x[1].i[k];
}

FUNCTION(logical_and)
{
    UNUSED_CALL;
    EACH out->i[k] = truth(&x[0], k) && truth(&x[1], k);
    settle(x, false, 0, out, count);
}

FUNCTION(logical_or)
{
    UNUSED_CALL;
    EACH out->i[k] = truth(&x[0], k) || truth(&x[1], k);
    settle(x, true, 1, out, count);
}

FUNCTION(logical_xor)
{
    UNUSED_CALL;
    EACH out->i[k] = truth(&x[0], k) != truth(&x[1], k);
}

/* --- comparisons ------------------------------------------------------------------------------ */

enum { EQUAL, NOT_EQUAL };                               /* EqOpType */
enum { GREATER_OR_EQUAL, GREATER, LESS_OR_EQUAL, LESS }; /* OpType */

static int32_t operation(const struct plim_function_call *call)
{
    int32_t value;
    memcpy(&value, call->state, sizeof(value));
    return value;
}

/* Learned values are assumed finite: each equals itself and differs from infinity. */
FUNCTION(equal)
{
    bool negates = operation(call) == NOT_EQUAL;
    EACH
    {
        bool same = x->is_float ? x[0].f[k] == x[1].f[k] : x[0].i[k] == x[1].i[k];
        bool infinite = x->is_float && ((x[0].known[k] & PLIM_KNOWN && isinf(x[0].f[k])) ||
                                        (x[1].known[k] & PLIM_KNOWN && isinf(x[1].f[k])));
        bool is_learned = x->is_float && (x[0].known[k] | x[1].known[k]) & PLIM_UNKNOWN;
        if (is_learned && (call->same || infinite)) {
            same = call->same;
            out->known[k] = PLIM_KNOWN | PLIM_ASSUMPTION_FINITE;
        }
        out->i[k] = same != negates;
    }
}

static bool holds(int32_t operation, int order)
{
    switch (operation) {
    case GREATER_OR_EQUAL:
        return order >= 0;
    case GREATER:
        return order > 0;
    case LESS_OR_EQUAL:
        return order <= 0;
    default:
        return order < 0;
    }
}

/* True if the order of an unknown value and `other` is determined; stores it in `order`. Unknown values are assumed
 * finite and smaller than the numbers that programs use in place of infinity, and norms not negative. */
static bool is_determined(unsigned char unknown, double other, int32_t operation, int *order)
{
    static const double AS_GOOD_AS_INFINITE = 1e9;
    *order = other > 0 ? -1 : 1;
    if (fabs(other) >= AS_GOOD_AS_INFINITE) return true;
    if (!(unknown & PLIM_NOT_NEGATIVE) || other > 0) return false;
    return other < 0 || holds(operation, 0) == holds(operation, 1); /* it may be zero */
}

static void compare(int32_t operation, const struct plim_column *a, const struct plim_column *b,
                    struct plim_column *out, size_t count)
{
    EACH
    {
        if (a->is_float && (isnan(a->f[k]) || isnan(b->f[k]))) {
            out->i[k] = 0;
            continue;
        }
        int order = a->is_float ? (a->f[k] > b->f[k]) - (a->f[k] < b->f[k])
                                : (a->i[k] > b->i[k]) - (a->i[k] < b->i[k]);
        if (a->is_float && a->known[k] & PLIM_UNKNOWN && b->known[k] & PLIM_KNOWN &&
            is_determined(a->known[k], b->f[k], operation, &order))
            out->known[k] = PLIM_KNOWN | PLIM_ASSUMPTION_FINITE;
        out->i[k] = holds(operation, order);
    }
}

FUNCTION(compare_two)
{
    compare(operation(call), &x[0], &x[1], out, count);
}

FUNCTION(compare_with_number)
{
    struct plim_column other;
    plim_column_repeat(&other, plim_function_number(call, sizeof(int32_t), call->functor->inner[0]), count);
    compare(operation(call), x, &other, out, count);
}

/* --- minimum, maximum, clamp ------------------------------------------------------------------ */

static void choose(const struct plim_column *x, bool larger, struct plim_column *out, size_t count)
{
    EACH
    {
        struct plim_number a = {x[0].i[k], x[0].f[k], x->is_float},
                           b = {x[1].i[k], x[1].f[k], x->is_float};
        bool has_nan = x->is_float && (isnan(a.f) || isnan(b.f));
        int order = plim_number_compare(a, b);
        bool first = has_nan ? order > 0 : larger ? order >= 0 : order <= 0;
        out->i[k] = first ? a.i : b.i;
        out->f[k] = first ? a.f : b.f;
    }
}

FUNCTION(larger)
{
    choose(x, true, out, count);
    if (call->functor->inner[0] == PLIM_BOOL) settle(x, true, 1, out, count);
}

FUNCTION(smaller)
{
    choose(x, false, out, count);
    if (call->functor->inner[0] == PLIM_BOOL) settle(x, false, 0, out, count);
}

enum { CLAMP_MIN, CLAMP_MAX, CLAMP_BOTH }; /* ClampLimits */

FUNCTION(clamp)
{
    enum plim_type math = plim_type_math(call->functor->inner[0]);
    size_t first = plim_align(sizeof(int32_t), plim_type_bytes(math));
    struct plim_number low = plim_function_number(call, first, math),
                       high = plim_function_number(call, first + plim_type_bytes(math), math);
    int32_t kind = operation(call);
    if (kind == CLAMP_MAX) high = low;
    EACH
    {
        struct plim_number v = {x->i[k], x->f[k], x->is_float};
        bool is_nan = v.is_float && isnan(v.f);
        if (!is_nan && kind != CLAMP_MAX && plim_number_compare(v, low) < 0) v = low;
        if (!is_nan && kind != CLAMP_MIN && plim_number_compare(v, high) > 0) v = high;
        out->i[k] = v.i;
        out->f[k] = v.f;
    }
}

/* --- table of functions ----------------------------------------------------------------------- */

static const struct plim_function_row rows[] = {
    {"FillFunctor<", fill, .numbers = 1, .traits = PLIM_KEEPS_TYPE},
    {"direct_copy_kernel_cuda", copy, .arguments = 1, .traits = PLIM_KEEPS_SIGN},
    {"converting_copy_kernel_cuda<", copy, .arguments = 1, .result = PLIM_AS_NAMED, .traits = PLIM_KEEPS_SIGN},
    {"bfloat16_copy_kernel_cuda", copy, .arguments = 1, .result = PLIM_AS_BFLOAT16, .traits = PLIM_KEEPS_SIGN},
    {"float16_copy_kernel_cuda", copy, .arguments = 1, .result = PLIM_AS_HALF, .traits = PLIM_KEEPS_SIGN},
    {"bfloat16tofloat32_copy_kernel_cuda", copy, .arguments = 1, .traits = PLIM_KEEPS_SIGN},
    {"CUDAFunctor_add<", add, .arguments = 2, .numbers = 1},
    {"CUDAFunctorOnSelf_add<", add_to_each, .arguments = 1, .numbers = 2},
    {"CUDAFunctorOnOther_add<", add_each_to, .arguments = 1, .numbers = 2},
    {"MulFunctor<", multiply, .arguments = 2},
    {"DivFunctor<", divide, .arguments = 2},
    {"div_floor_kernel_cuda", divide_down, .arguments = 2},
    {"div_floor_kernel_cuda", divide_down_by, .arguments = 1, .numbers = 2},
    {"div_trunc_kernel_cuda", divide_to_zero, .arguments = 2},
    {"remainder_kernel_cuda", modulo, .arguments = 2},
    {"fmod_kernel_cuda", remainder_of, .arguments = 2},
    {"lerp_tensor_kernel", plim_function_lerp, .arguments = 3},
    {"lerp_scalar_kernel", plim_function_lerp_by, .arguments = 2, .numbers = 1},
    {"lshift_kernel_cuda", shift_left, .arguments = 2},
    {"rshift_kernel_cuda", shift_right, .arguments = 2},
    {"CompareEqFunctor<", equal, .arguments = 2, .head_bytes = 4, .result = PLIM_AS_TRUTH},
    {"CompareFunctor<", compare_two, .arguments = 2, .head_bytes = 4, .result = PLIM_AS_TRUTH},
    {"compare_scalar_kernel<", compare_with_number, .arguments = 1, .head_bytes = 4, .numbers = 1,
     .result = PLIM_AS_TRUTH, .traits = PLIM_KEEPS_TYPE},
    {"BitwiseAndFunctor<", bitwise_and, .arguments = 2},
    {"BitwiseOrFunctor<", bitwise_or, .arguments = 2},
    {"BitwiseXorFunctor<", bitwise_xor, .arguments = 2},
    {"bitwise_not_kernel_cuda", bitwise_not, .arguments = 1},
    {"logical_not_kernel_cuda", logical_not, .arguments = 1, .result = PLIM_AS_TRUTH},
    {"logical_and_kernel_cuda", logical_and, .arguments = 2, .result = PLIM_AS_TRUTH},
    {"logical_or_kernel_cuda", logical_or, .arguments = 2, .result = PLIM_AS_TRUTH},
    {"logical_xor_kernel_cuda", logical_xor, .arguments = 2, .result = PLIM_AS_TRUTH},
    {"maximum_kernel_cuda", larger, .arguments = 2},
    {"minimum_kernel_cuda", smaller, .arguments = 2},
    {"launch_clamp_scalar", clamp, .arguments = 1, .head_bytes = 4, .numbers = 2},
    {"where_kernel_impl", plim_function_where, .arguments = 3, .result = PLIM_AS_SECOND},
    {"masked_fill_kernel", plim_function_masked_fill, .arguments = 2, .numbers = 1, .traits = PLIM_KEEPS_TYPE},
    {"launch_masked_scatter_kernel", plim_function_masked_scatter, .arguments = 3, .head_bytes = 8},
    {"_flatten_indices_impl<CUDAKernelLauncher, long, 8l>", plim_function_flatten, .arguments = 1,
     .head_bytes = PLIM_FLATTEN_BYTES},
    {"neg_kernel_cuda", negate, .arguments = 1},
    {"AbsFunctor<", absolute, .arguments = 1, .traits = PLIM_IS_NOT_NEGATIVE},
    {"sign_kernel_cuda", sign, .arguments = 1},
    {"ceil_kernel_cuda", ceiling, .arguments = 1},
    {"floor_kernel_cuda", lower, .arguments = 1},
    {"round_kernel_cuda", nearest, .arguments = 1},
    {"trunc_kernel_cuda", truncate, .arguments = 1},
    {"sqrt_kernel_cuda", root, .arguments = 1, .traits = PLIM_IS_NOT_NEGATIVE},
    {"reciprocal_kernel_cuda", reciprocal, .arguments = 1},
    {"pow_tensor_scalar_kernel_impl<", square, .arguments = 1, .traits = PLIM_IS_NOT_NEGATIVE},
};

static bool is_named(struct plim_name name, const char *wanted)
{
    enum { MOST_BEFORE = 24 }; /* "binary_internal::" may precede it */
    size_t length = name.length < MOST_BEFORE ? name.length : MOST_BEFORE;
    const char *found =
        plim_name_behind((struct plim_name){name.at, length + strlen(wanted)}, wanted);
    if (!found || found > name.at + name.length) return false;
    const char *begin = found - strlen(wanted);
    return begin == name.at || begin[-1] == ':';
}

const struct plim_function_row *plim_function_find(struct plim_name name, int arguments)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (!is_named(name, rows[i].name)) continue;
        if (arguments > 0 && arguments != rows[i].arguments) continue;
        /* Of the powers, only the square is a lambda with this number and an empty closure. */
        bool is_power = rows[i].function == square;
        return is_power && !plim_name_behind(name, ")#1}") ? NULL : &rows[i];
    }
    return NULL;
}
