/* Arrays in host memory for tests of operations, and what can be said of an operation by running
 * it. Elements are numbered in row-major order of the shape, whatever the strides; they are read
 * and written one by one, without the code that is tested. Memory is kept until the test's process
 * ends; a new array is filled with 0xff bytes. Not thread-safe. */
#ifndef PLIM_TESTS_SUPPORT_ARRAYS_H
#define PLIM_TESTS_SUPPORT_ARRAYS_H

#include "autotune/base/status.h"
#include "devices/op.h"

/* ARRAY(PLIM_F32, 2, 3): a new contiguous array of 2 x 3; SCALAR(type): without dimensions. */
#define ARRAY(dtype, ...)                                                                          \
    array_new(dtype, (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)),                    \
              (int64_t[]){__VA_ARGS__})
#define SCALAR(dtype) array_new(dtype, 0, NULL)

/* VALUES(&x, 1, 2, 3): sets the first elements. */
#define VALUES(a, ...)                                                                             \
    array_set(a, (double[]){__VA_ARGS__}, sizeof((double[]){__VA_ARGS__}) / sizeof(double))

struct plim_array array_new(enum plim_dtype dtype, int ndim, const int64_t *shape);

/* Views: two dimensions exchanged; every `step`-th element of dimension `dim`. */
struct plim_array array_transposed(struct plim_array a, int d, int e);
struct plim_array array_every(struct plim_array a, int dim, int64_t step);

void array_set(const struct plim_array *a, const double *values, size_t count);
void array_put(const struct plim_array *a, int64_t i, double value);
double array_at(const struct plim_array *a, int64_t i);
int64_t array_integer_at(const struct plim_array *a, int64_t i); /* of int64, without rounding */
void array_put_integer(const struct plim_array *a, int64_t i, int64_t value);

void array_fill(const struct plim_array *a, double value);
/* Different numbers between low and high, the same in every run. */
void array_scatter(const struct plim_array *a, unsigned seed, double low, double high);

/* Runs the operation; the test fails unless it succeeds. */
void run_op(const struct plim_op *op);

/* By central differences: the derivative of sum(dy * out[0]) of the operation in element i of x,
 * an fp32 input. */
double slope_of(const struct plim_op *op, const struct plim_array *dy, const struct plim_array *x,
                int64_t i);

/* Is dx the derivative, to `tolerance` (relative, and absolute below 1)? The test fails with the
 * first element that differs. */
void expect_gradient(const struct plim_op *op, const struct plim_array *dy,
                     const struct plim_array *x, const struct plim_array *dx, double tolerance);

/* Are the elements these (NaN equals NaN), to `tolerance` likewise? */
void expect_values(const struct plim_array *a, const double *values, size_t count,
                   double tolerance);
#define EXPECT_VALUES(a, tolerance, ...)                                                           \
    expect_values(a, (double[]){__VA_ARGS__}, sizeof((double[]){__VA_ARGS__}) / sizeof(double),    \
                  tolerance)
void expect_equal_arrays(const struct plim_array *a, const struct plim_array *b, double tolerance);

#endif
