#include "functor.h"
#include <math.h>
#include <string.h>

/* The functions of PyTorch's aten/src/ATen/native/cuda, from 2.0 to 2.15: BinaryMulKernel.cu,
 * BinaryDiv*Kernels.cu, BinaryRemainderKernel.cu, BinaryBitwiseOpsKernels.cu,
 * BinaryShiftOpsKernels.cu, BinaryLogicalOpsKernels.cu, CompareKernels.cu, CompareEQKernel.cu,
 * MaxMinElementwiseKernel.cu, TensorCompare.cu, FillKernel.cu, Copy.cu, IndexKernel.cu
 * (masked_fill), UnaryOpsKernel.cu, UnarySignKernels.cu, UnaryFractionKernels.cu, AbsKernel.cu,
 * PowKernel.cu. Functions whose last bits depend on the GPU's mathematics (exp, log, rsqrt ...) are
 * not among them. */

#define FUNCTION(name)                                                                             \
    static void name(const struct plim_function_call *call, const struct plim_column *x,           \
                     struct plim_column *out, size_t count)
#define EACH for (size_t k = 0; k < count; k++)
#define UNUSED_CALL (void)call

/* A number that the functor holds, of a type, behind `at` bytes. */
static struct plim_number held(const struct plim_function_call *call, size_t at,
                               enum plim_type type)
{
    return plim_number_load(call->state + plim_align(at, plim_type_bytes(type)), type);
}

/* An element of memory whose address the functor holds. */
static struct plim_number load_element(uintptr_t at, enum plim_type type, unsigned char *known)
{
    unsigned char bytes[8], states[8];
    size_t width = plim_type_bytes(type);
    plim_shadow_load(at, bytes, states, width);
    *known = PLIM_KNOWN;
    for (size_t b = 0; b < width; b++) *known = plim_known_both(*known, states[b]);
    return plim_number_load(bytes, type);
}

/* --- of one or two arguments ------------------------------------------------------------------ */

/* Integers wrap around. */
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
    struct plim_number n = held(call, 0, call->functor->result);
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
    add_scaled(&x[0], &x[1], held(call, 0, plim_type_math(type)), type, out, count);
}

/* {other, alpha}: x + alpha * other; {self, alpha}: self + alpha * x. */
FUNCTION(add_to_each)
{
    enum plim_type type = call->functor->inner[0], math = plim_type_math(type);
    struct plim_column other;
    plim_column_repeat(&other, held(call, 0, math), count);
    add_scaled(x, &other, held(call, plim_type_bytes(math), math), type, out, count);
}

FUNCTION(add_each_to)
{
    enum plim_type type = call->functor->inner[0], math = plim_type_math(type);
    struct plim_column self;
    plim_column_repeat(&self, held(call, 0, math), count);
    add_scaled(&self, x, held(call, plim_type_bytes(math), math), type, out, count);
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
        for (int side = 0; side < 2 && !x->is_float; side++) /* nothing times anything */
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

/* Division by nothing: whatever the GPU makes of it. */
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

/* c10/util/generic_math.h, div_floor_floating */
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

/* {b, 1 / b} in the functor. */
FUNCTION(divide_down_by)
{
    double b = held(call, 0, plim_type_math(call->functor->inner[0])).f;
    EACH out->f[k] = floor_divide(x->f[k], b);
}

/* Shifts by too much give nothing, or the sign. */
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

/* --- bits and truth --------------------------------------------------------------------------- */

static bool truth(const struct plim_column *x, size_t k)
{
    return x->is_float ? x->f[k] < 0 || x->f[k] > 0 || isnan(x->f[k]) : x->i[k] != 0;
}

/* One side is enough where it is known to be this. */
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

/* Learned numbers are finite: each is equal to itself, and to no infinity. */
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
            out->known[k] = PLIM_KNOWN | PLIM_ASSUMED_FINITE;
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

/* What is known of a learned number beside `other`: it is finite, and a norm is not below zero. */
static bool is_told(unsigned char unknown, double other, int32_t operation, int *order)
{
    *order = other > 0 ? -1 : 1;
    if (isinf(other)) return true;
    if (!(unknown & PLIM_NOT_NEGATIVE) || other > 0) return false;
    return other < 0 || holds(operation, 0) == holds(operation, 1); /* it may be zero, too */
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
            is_told(a->known[k], b->f[k], operation, &order))
            out->known[k] = PLIM_KNOWN | PLIM_ASSUMED_FINITE;
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
    plim_column_repeat(&other, held(call, sizeof(int32_t), call->functor->inner[0]), count);
    compare(operation(call), x, &other, out, count);
}

/* --- the larger, the chosen ------------------------------------------------------------------- */

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
    struct plim_number low = held(call, first, math),
                       high = held(call, first + plim_type_bytes(math), math);
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

static bool is_same(const struct plim_column *a, const struct plim_column *b, size_t k)
{
    bool both = a->known[k] & b->known[k] & PLIM_KNOWN;
    return both && (a->is_float ? a->f[k] == b->f[k] : a->i[k] == b->i[k]);
}

/* Of an unknown condition the result is known where both are the same. */
static void pick(const struct plim_column *condition, const struct plim_column *yes,
                 const struct plim_column *no, struct plim_column *out, size_t count)
{
    EACH
    {
        const struct plim_column *from = condition->i[k] ? yes : no;
        out->i[k] = from->i[k];
        out->f[k] = from->f[k];
        if (condition->known[k] & PLIM_KNOWN)
            out->known[k] = from->known[k] & PLIM_KNOWN ? condition->known[k] | from->known[k]
                                                        : plim_unknown_of(from->known[k]);
        else
            out->known[k] = is_same(yes, no, k) ? yes->known[k] | no->known[k] : PLIM_UNKNOWN;
    }
}

FUNCTION(where)
{
    UNUSED_CALL;
    pick(&x[0], &x[1], &x[2], out, count);
}

FUNCTION(masked_fill)
{
    struct plim_column number;
    plim_column_repeat(&number, held(call, 0, call->functor->inner[0]), count);
    pick(&x[1], &number, &x[0], out, count);
}

/* Where the mask is true the next element of a source, whose address the functor holds; the third
 * argument counts them. */
FUNCTION(masked_scatter)
{
    enum plim_type type = call->functor->result;
    size_t width = plim_type_bytes(type);
    uintptr_t source;
    memcpy(&source, call->state, sizeof(source));
    EACH
    {
        unsigned char known;
        out->i[k] = x[0].i[k];
        out->f[k] = x[0].f[k];
        if (!(x[1].known[k] & PLIM_KNOWN)) continue;
        out->known[k] = plim_known_both(x[0].known[k], x[1].known[k]);
        if (!x[1].i[k]) continue;
        struct plim_number n = load_element(source + (uintptr_t)x[2].i[k] * width, type, &known);
        out->i[k] = n.i;
        out->f[k] = n.f;
        out->known[k] = plim_known_both(plim_known_both(known, x[1].known[k]), x[2].known[k]);
    }
}

/* The place of an element of a sparse tensor, as one number: its indices, each times what a step of it is worth.
 * ATen/native/sparse/FlattenIndicesCommon.h; the functor holds the following. */
struct flatten {
    uintptr_t indices; /* of long */
    int64_t stride_of_elements, dimensions, worth[8], stride_of_dimensions;
};

FUNCTION(flatten)
{
    struct flatten f;
    memcpy(&f, call->state, sizeof(f));
    bool works = f.dimensions > 0 && f.dimensions <= (int64_t)(sizeof(f.worth) / sizeof(f.worth[0]));
    EACH
    {
        uint64_t sum = 0; /* integers wrap around */
        if (!works) out->known[k] = PLIM_UNKNOWN;
        for (int64_t d = 0; works && d < f.dimensions; d++) {
            unsigned char known;
            uint64_t at = (uint64_t)x->i[k] * (uint64_t)f.stride_of_elements +
                          (uint64_t)d * (uint64_t)f.stride_of_dimensions;
            if (!(x->known[k] & PLIM_KNOWN)) break;
            sum += (uint64_t)load_element(f.indices + at * sizeof(int64_t), PLIM_INT64, &known).i *
                   (uint64_t)f.worth[d];
            out->known[k] = plim_known_both(out->known[k], known);
        }
        out->i[k] = (int64_t)sum;
    }
}

/* --- the table -------------------------------------------------------------------------------- */

static const struct plim_function_row rows[] = {
    {"FillFunctor<", fill, 0, 0, 1, PLIM_AS_FIRST, PLIM_KEEPS_TYPE},
    {"direct_copy_kernel_cuda", copy, 1, 0, 0, PLIM_AS_FIRST, PLIM_KEEPS_SIGN},
    {"converting_copy_kernel_cuda<", copy, 1, 0, 0, PLIM_AS_NAMED, PLIM_KEEPS_SIGN},
    {"bfloat16_copy_kernel_cuda", copy, 1, 0, 0, PLIM_AS_BFLOAT16, PLIM_KEEPS_SIGN},
    {"float16_copy_kernel_cuda", copy, 1, 0, 0, PLIM_AS_HALF, PLIM_KEEPS_SIGN},
    {"bfloat16tofloat32_copy_kernel_cuda", copy, 1, 0, 0, PLIM_AS_FIRST, PLIM_KEEPS_SIGN},
    {"CUDAFunctor_add<", add, 2, 0, 1, PLIM_AS_FIRST, 0},
    {"CUDAFunctorOnSelf_add<", add_to_each, 1, 0, 2, PLIM_AS_FIRST, 0},
    {"CUDAFunctorOnOther_add<", add_each_to, 1, 0, 2, PLIM_AS_FIRST, 0},
    {"MulFunctor<", multiply, 2, 0, 0, PLIM_AS_FIRST, 0},
    {"DivFunctor<", divide, 2, 0, 0, PLIM_AS_FIRST, 0},
    {"div_floor_kernel_cuda", divide_down, 2, 0, 0, PLIM_AS_FIRST, 0},
    {"div_floor_kernel_cuda", divide_down_by, 1, 0, 2, PLIM_AS_FIRST, 0},
    {"div_trunc_kernel_cuda", divide_to_zero, 2, 0, 0, PLIM_AS_FIRST, 0},
    {"remainder_kernel_cuda", modulo, 2, 0, 0, PLIM_AS_FIRST, 0},
    {"fmod_kernel_cuda", remainder_of, 2, 0, 0, PLIM_AS_FIRST, 0},
    {"lshift_kernel_cuda", shift_left, 2, 0, 0, PLIM_AS_FIRST, 0},
    {"rshift_kernel_cuda", shift_right, 2, 0, 0, PLIM_AS_FIRST, 0},
    {"CompareEqFunctor<", equal, 2, 4, 0, PLIM_AS_TRUTH, 0},
    {"CompareFunctor<", compare_two, 2, 4, 0, PLIM_AS_TRUTH, 0},
    {"compare_scalar_kernel<", compare_with_number, 1, 4, 1, PLIM_AS_TRUTH, PLIM_KEEPS_TYPE},
    {"BitwiseAndFunctor<", bitwise_and, 2, 0, 0, PLIM_AS_FIRST, 0},
    {"BitwiseOrFunctor<", bitwise_or, 2, 0, 0, PLIM_AS_FIRST, 0},
    {"BitwiseXorFunctor<", bitwise_xor, 2, 0, 0, PLIM_AS_FIRST, 0},
    {"bitwise_not_kernel_cuda", bitwise_not, 1, 0, 0, PLIM_AS_FIRST, 0},
    {"logical_not_kernel_cuda", logical_not, 1, 0, 0, PLIM_AS_TRUTH, 0},
    {"logical_and_kernel_cuda", logical_and, 2, 0, 0, PLIM_AS_TRUTH, 0},
    {"logical_or_kernel_cuda", logical_or, 2, 0, 0, PLIM_AS_TRUTH, 0},
    {"logical_xor_kernel_cuda", logical_xor, 2, 0, 0, PLIM_AS_TRUTH, 0},
    {"maximum_kernel_cuda", larger, 2, 0, 0, PLIM_AS_FIRST, 0},
    {"minimum_kernel_cuda", smaller, 2, 0, 0, PLIM_AS_FIRST, 0},
    {"launch_clamp_scalar", clamp, 1, 4, 2, PLIM_AS_FIRST, 0},
    {"where_kernel_impl", where, 3, 0, 0, PLIM_AS_SECOND, 0},
    {"masked_fill_kernel", masked_fill, 2, 0, 1, PLIM_AS_FIRST, PLIM_KEEPS_TYPE},
    {"launch_masked_scatter_kernel", masked_scatter, 3, 8, 0, PLIM_AS_FIRST, 0},
    {"_flatten_indices_impl<CUDAKernelLauncher, long, 8l>", flatten, 1, sizeof(struct flatten), 0, PLIM_AS_FIRST,
     0},
    {"neg_kernel_cuda", negate, 1, 0, 0, PLIM_AS_FIRST, 0},
    {"AbsFunctor<", absolute, 1, 0, 0, PLIM_AS_FIRST, PLIM_IS_NOT_NEGATIVE},
    {"sign_kernel_cuda", sign, 1, 0, 0, PLIM_AS_FIRST, 0},
    {"ceil_kernel_cuda", ceiling, 1, 0, 0, PLIM_AS_FIRST, 0},
    {"floor_kernel_cuda", lower, 1, 0, 0, PLIM_AS_FIRST, 0},
    {"round_kernel_cuda", nearest, 1, 0, 0, PLIM_AS_FIRST, 0},
    {"trunc_kernel_cuda", truncate, 1, 0, 0, PLIM_AS_FIRST, 0},
    {"sqrt_kernel_cuda", root, 1, 0, 0, PLIM_AS_FIRST, PLIM_IS_NOT_NEGATIVE},
    {"reciprocal_kernel_cuda", reciprocal, 1, 0, 0, PLIM_AS_FIRST, 0},
    {"pow_tensor_scalar_kernel_impl<", square, 1, 0, 0, PLIM_AS_FIRST, PLIM_IS_NOT_NEGATIVE},
};

static bool is_named(struct plim_name name, const char *wanted)
{
    size_t length =
        name.length < 24 ? name.length : 24; /* "binary_internal::" may stand before it */
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
        /* Of powers only the square has a lambda of this number and nothing in it. */
        bool is_power = rows[i].function == square;
        return is_power && !plim_name_behind(name, ")#1}") ? NULL : &rows[i];
    }
    return NULL;
}
