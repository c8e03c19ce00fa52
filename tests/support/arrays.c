#include "arrays.h"

#include "devices/half.h"
#include "devices/host/reference.h"
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

/* --- arrays ----------------------------------------------------------------------------------- */

/* Blocks of their own, so that a sanitizer sees an access beside one; reachable from here, so that
 * they are no leak. */
static void *blocks[1024];
static size_t block_count;

struct plim_array array_new(enum plim_dtype dtype, int ndim, const int64_t *shape)
{
    struct plim_array a = {.ndim = (uint8_t)ndim, .dtype = (uint8_t)dtype};
    int64_t step = 1;
    for (int d = ndim - 1; d >= 0; d--) {
        a.shape[d] = shape[d];
        a.stride[d] = step;
        step *= shape[d];
    }
    size_t bytes = (size_t)step * (size_t)plim_dtype_size(dtype);
    cr_assert(block_count < sizeof(blocks) / sizeof(blocks[0]), "too many arrays in one test");
    void *block = blocks[block_count++] = malloc(bytes ? bytes : 1);
    cr_assert(block != NULL);
    memset(block, 0xff, bytes);
    a.data = (uint64_t)(uintptr_t)block;
    return a;
}

struct plim_array array_transposed(struct plim_array a, int d, int e)
{
    int64_t shape = a.shape[d], stride = a.stride[d];
    a.shape[d] = a.shape[e], a.stride[d] = a.stride[e];
    a.shape[e] = shape, a.stride[e] = stride;
    return a;
}

struct plim_array array_every(struct plim_array a, int dim, int64_t step)
{
    a.shape[dim] = (a.shape[dim] + step - 1) / step;
    a.stride[dim] *= step;
    return a;
}

static void *place(const struct plim_array *a, int64_t i)
{
    int64_t offset = 0;
    for (int d = a->ndim - 1; d >= 0; d--) {
        offset += i % a->shape[d] * a->stride[d];
        i /= a->shape[d];
    }
    return (char *)(uintptr_t)a->data + offset * plim_dtype_size(a->dtype);
}

void array_put(const struct plim_array *a, int64_t i, double value)
{
    void *at = place(a, i);
    switch ((enum plim_dtype)a->dtype) {
    case PLIM_F32:
        *(float *)at = (float)value;
        break;
    case PLIM_BF16:
        *(uint16_t *)at = plim_float_to_bf16((float)value);
        break;
    case PLIM_F16:
        *(uint16_t *)at = plim_float_to_fp16((float)value);
        break;
    case PLIM_I64:
        *(int64_t *)at = (int64_t)value;
        break;
    case PLIM_I32:
        *(int32_t *)at = (int32_t)value;
        break;
    case PLIM_U8:
    case PLIM_BOOL:
        *(uint8_t *)at = (uint8_t)value;
        break;
    case PLIM_DTYPE_COUNT:
        break;
    }
}

double array_at(const struct plim_array *a, int64_t i)
{
    const void *at = place(a, i);
    switch ((enum plim_dtype)a->dtype) {
    case PLIM_F32:
        return (double)*(const float *)at;
    case PLIM_BF16:
        return (double)plim_bf16_to_float(*(const uint16_t *)at);
    case PLIM_F16:
        return (double)plim_fp16_to_float(*(const uint16_t *)at);
    case PLIM_I64:
        return (double)*(const int64_t *)at;
    case PLIM_I32:
        return *(const int32_t *)at;
    default:
        return *(const uint8_t *)at;
    }
}

int64_t array_integer_at(const struct plim_array *a, int64_t i)
{
    return *(const int64_t *)place(a, i);
}

void array_put_integer(const struct plim_array *a, int64_t i, int64_t value)
{
    *(int64_t *)place(a, i) = value;
}

void array_set(const struct plim_array *a, const double *values, size_t count)
{
    cr_assert(count == (size_t)plim_array_elements(a), "%zu values for an array of %lld", count,
              (long long)plim_array_elements(a));
    for (size_t i = 0; i < count; i++) array_put(a, (int64_t)i, values[i]);
}

void array_fill(const struct plim_array *a, double value)
{
    for (int64_t i = 0; i < plim_array_elements(a); i++) array_put(a, i, value);
}

/* The fractions of multiples of the golden ratio never repeat and are spread evenly. */
void array_scatter(const struct plim_array *a, unsigned seed, double low, double high)
{
    for (int64_t i = 0; i < plim_array_elements(a); i++) {
        double x = 0.61803398874989485 * ((double)i + 1) + 0.7548776662466927 * seed;
        double mixed = x * (1 + fmod(x, 1));
        array_put(a, i, low + (high - low) * fmod(mixed, 1));
    }
}

/* --- operations ------------------------------------------------------------------------------- */

void run_op(const struct plim_op *op)
{
    enum plim_status st = plim_reference_run(op);
    cr_assert(st == PLIM_OK, "%s: %s", plim_op_name(op->kind), plim_status_text(st));
}

static double weighted_sum(const struct plim_op *op, const struct plim_array *dy)
{
    double sum = 0;
    run_op(op);
    for (int64_t i = 0; i < plim_array_elements(dy); i++)
        sum += array_at(dy, i) * array_at(op->out[0], i);
    return sum;
}

double slope_of(const struct plim_op *op, const struct plim_array *dy, const struct plim_array *x,
                int64_t i)
{
    static const double step = 1.0 / 128;
    double was = array_at(x, i);
    array_put(x, i, was + step);
    double above = array_at(x, i), upper = weighted_sum(op, dy);
    array_put(x, i, was - step);
    double below = array_at(x, i), lower = weighted_sum(op, dy);
    array_put(x, i, was);
    (void)weighted_sum(op, dy); /* the outputs are those of x again */
    return (upper - lower) / (above - below);
}

static bool is_near(double a, double b, double tolerance)
{
    if (isnan(a) || isnan(b)) return isnan(a) && isnan(b);
    return a == b || fabs(a - b) <= tolerance * fmax(1, fabs(b));
}

void expect_gradient(const struct plim_op *op, const struct plim_array *dy,
                     const struct plim_array *x, const struct plim_array *dx, double tolerance)
{
    for (int64_t i = 0; i < plim_array_elements(x); i++) {
        double slope = slope_of(op, dy, x, i);
        cr_assert(is_near(array_at(dx, i), slope, tolerance), "element %lld: %g, expected %g",
                  (long long)i, array_at(dx, i), slope);
    }
}

void expect_values(const struct plim_array *a, const double *values, size_t count, double tolerance)
{
    cr_assert(count == (size_t)plim_array_elements(a), "%zu values for an array of %lld", count,
              (long long)plim_array_elements(a));
    for (size_t i = 0; i < count; i++)
        cr_expect(is_near(array_at(a, (int64_t)i), values[i], tolerance),
                  "element %zu: %.9g, expected %.9g", i, array_at(a, (int64_t)i), values[i]);
}

void expect_equal_arrays(const struct plim_array *a, const struct plim_array *b, double tolerance)
{
    cr_assert(plim_array_elements(a) == plim_array_elements(b));
    for (int64_t i = 0; i < plim_array_elements(a); i++)
        cr_assert(is_near(array_at(a, i), array_at(b, i), tolerance),
                  "element %lld: %.9g, expected %.9g", (long long)i, array_at(a, i),
                  array_at(b, i));
}
