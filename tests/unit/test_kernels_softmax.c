#include "support/kernel_case.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <math.h>

static struct kernel_case c;

static void setup(void)
{
    kernel_case_init(&c, 3);
}

static void finish(void)
{
    kernel_case_finish(&c);
}

TestSuite(kernels_softmax, .init = setup, .fini = finish);

static const enum plim_dtype types[] = {PLIM_F32, PLIM_BF16, PLIM_F16};
static const enum plim_op_kind forward[] = {PLIM_OP_SOFTMAX, PLIM_OP_LOG_SOFTMAX};
static const enum plim_op_kind backward[] = {PLIM_OP_SOFTMAX_BACKWARD,
                                             PLIM_OP_LOG_SOFTMAX_BACKWARD};

static double tolerance(const struct plim_array *out)
{
    return out->dtype == PLIM_F32 ? 16 : 1;
}

/* 300 rows of 257 columns are more than the grid of the test's GPU. */
static const int64_t shapes[][2] = {{1, 1},    {7, 1},     {5, 7},    {1, 8},
                                    {9, 65},   {300, 257}, {2, 1024}, {2, 1031},
                                    {8200, 8}, {3, 2048},  {40, 1100}};
enum { SHAPES = sizeof shapes / sizeof *shapes };

static void check(enum plim_op_kind kind, const struct plim_array *y, const struct plim_array *x)
{
    struct plim_op op = {.kind = kind, .n_out = 1, .n_in = 1, .out = {y}, .in = {x}};
    kernel_case_check(&c, &op, tolerance(y), 0);
    kernel_case_finish(&c);
}

Test(kernels_softmax, forward_of_every_type_and_shape)
{
    for (int k = 0; k < 2; k++)
        for (int t = 0; t < 3; t++)
            for (int i = 0; i < SHAPES; i++)
                check(forward[k], KERNEL_ARRAY(&c, types[t], shapes[i][0], shapes[i][1]),
                      KERNEL_ARRAY(&c, types[t], shapes[i][0], shapes[i][1]));
}

Test(kernels_softmax, forward_of_a_vocabulary)
{
    for (int k = 0; k < 2; k++)
        check(forward[k], KERNEL_ARRAY(&c, PLIM_F32, 2, 50257),
              KERNEL_ARRAY(&c, PLIM_F32, 2, 50257));
}

Test(kernels_softmax, forward_into_a_wider_type)
{
    for (int k = 0; k < 2; k++)
        check(forward[k], KERNEL_ARRAY(&c, PLIM_F32, 5, 67), KERNEL_ARRAY(&c, PLIM_F16, 5, 67));
}

Test(kernels_softmax, forward_of_strided_operands)
{
    const int64_t shape[] = {3, 2, 4, 24}, transposed[] = {1, 3, 6, 24};
    const int order[] = {2, 0, 1, 3};
    for (int t = 0; t < 3; t++) {
        check(PLIM_OP_SOFTMAX, KERNEL_ARRAY(&c, types[t], 3, 2, 4, 24),
              kernel_case_permuted(&c, types[t], 4, shape, order, 0));
        check(PLIM_OP_SOFTMAX, kernel_case_permuted(&c, types[t], 4, shape, order, 1),
              KERNEL_ARRAY(&c, types[t], 3, 2, 4, 24));
        check(PLIM_OP_SOFTMAX, KERNEL_ARRAY(&c, types[t], 3, 2, 4, 24),
              kernel_case_strided(&c, types[t], 4, shape, transposed, 0));
    }
}

Test(kernels_softmax, forward_of_rows_that_begin_at_different_places)
{
    const int64_t shape[] = {6, 40}, apart[] = {43, 1};
    for (int t = 0; t < 3; t++) {
        check(PLIM_OP_SOFTMAX, kernel_case_strided(&c, types[t], 2, shape, apart, 0),
              KERNEL_ARRAY(&c, types[t], 6, 40));
        check(PLIM_OP_SOFTMAX, kernel_case_strided(&c, types[t], 2, shape, apart, 0),
              kernel_case_strided(&c, types[t], 2, shape, apart, 0));
    }
}

Test(kernels_softmax, forward_of_a_single_number)
{
    check(PLIM_OP_SOFTMAX, KERNEL_ARRAY(&c, PLIM_F32, 1), KERNEL_ARRAY(&c, PLIM_F32, 1));
}

static void fill_row(const struct plim_array *x, int64_t row, double value)
{
    for (int64_t i = 0; i < x->shape[1]; i++) kernel_case_set(x, row * x->shape[1] + i, value);
}

Test(kernels_softmax, forward_of_infinities_and_nan)
{
    for (int k = 0; k < 2; k++)
        for (int64_t columns = 5; columns < 3000; columns = columns * 8 + 3) {
            const struct plim_array *x = KERNEL_ARRAY(&c, PLIM_F32, 6, columns);
            fill_row(x, 0, -INFINITY);
            fill_row(x, 1, -INFINITY);
            kernel_case_set(x, 2 * columns - 2, 0.5);
            kernel_case_set(x, 2 * columns + 1, NAN);
            kernel_case_set(x, 3 * columns + 1, INFINITY);
            kernel_case_set(x, 4 * columns + 1, -INFINITY);
            fill_row(x, 5, 1e30);
            check(forward[k], KERNEL_ARRAY(&c, PLIM_F32, 6, columns), x);
        }
}

Test(kernels_softmax, forward_of_far_apart_numbers)
{
    const struct plim_array *x = KERNEL_ARRAY(&c, PLIM_F32, 4, 1500);
    kernel_case_fill(&c, x, -80, 80);
    const struct plim_array *y = KERNEL_ARRAY(&c, PLIM_F32, 4, 1500);
    struct plim_op op = {.kind = PLIM_OP_SOFTMAX, .n_out = 1, .n_in = 1, .out = {y}, .in = {x}};
    kernel_case_check(&c, &op, 64, 1e-30);
}

static void check_backward(enum plim_op_kind kind, const struct plim_array *dx,
                           const struct plim_array *dout, const struct plim_array *y)
{
    struct plim_op op = {.kind = kind, .n_out = 1, .n_in = 2, .out = {dx}, .in = {dout, y}};
    double largest = kind == PLIM_OP_SOFTMAX_BACKWARD ? 1 : 0.5;
    kernel_case_fill(&c, y, -largest, largest); /* out sum(dout) is of the size of the sum */
    kernel_case_check(&c, &op, tolerance(dx), 16);
    kernel_case_finish(&c);
}

Test(kernels_softmax, backward_of_every_type_and_shape)
{
    for (int k = 0; k < 2; k++)
        for (int t = 0; t < 3; t++)
            for (int i = 0; i < SHAPES; i++) {
                int64_t rows = shapes[i][0], columns = shapes[i][1];
                check_backward(backward[k], KERNEL_ARRAY(&c, types[t], rows, columns),
                               KERNEL_ARRAY(&c, types[t], rows, columns),
                               KERNEL_ARRAY(&c, types[t], rows, columns));
            }
}

Test(kernels_softmax, backward_of_mixed_types_and_strides)
{
    const int64_t shape[] = {4, 3, 40};
    const int order[] = {1, 0, 2};
    for (int k = 0; k < 2; k++) {
        check_backward(backward[k], KERNEL_ARRAY(&c, PLIM_F16, 4, 3, 40),
                       KERNEL_ARRAY(&c, PLIM_F32, 4, 3, 40), KERNEL_ARRAY(&c, PLIM_F32, 4, 3, 40));
        check_backward(backward[k], KERNEL_ARRAY(&c, PLIM_F32, 4, 3, 40),
                       kernel_case_permuted(&c, PLIM_F32, 3, shape, order, 5),
                       kernel_case_permuted(&c, PLIM_BF16, 3, shape, order, 0));
    }
}

/* --- the loss --------------------------------------------------------------------------------- */

enum { CLASSES = 11 };

static const struct plim_array *targets(int64_t rows, int64_t every_ignored)
{
    const struct plim_array *target = KERNEL_ARRAY(&c, PLIM_I64, rows);
    kernel_case_fill(&c, target, 0, CLASSES);
    for (int64_t i = 0; i < rows && every_ignored > 0; i += every_ignored)
        kernel_case_set(target, i, PLIM_IGNORED_TARGET);
    return target;
}

static const int64_t lengths[] = {1, 2, 31, 1025, 9001};
enum { LENGTHS = sizeof lengths / sizeof *lengths };

static void check_loss(const struct plim_array *log_probs, const struct plim_array *target)
{
    enum plim_dtype dtype = (enum plim_dtype)log_probs->dtype;
    kernel_case_fill(&c, log_probs, -8, 0);
    struct plim_op op = {.kind = PLIM_OP_NLL_LOSS,
                         .n_out = 2,
                         .n_in = 2,
                         .out = {kernel_case_scalar(&c, dtype), kernel_case_scalar(&c, PLIM_F32)},
                         .in = {log_probs, target}};
    kernel_case_check(&c, &op, tolerance(log_probs), 0);
    kernel_case_finish(&c);
}

Test(kernels_softmax, loss_leaves_ignored_targets_out)
{
    for (int t = 0; t < 3; t++)
        for (int i = 0; i < LENGTHS; i++)
            for (int every = 0; every < 4; every++) /* 1: all of them, which gives NaN */
                check_loss(KERNEL_ARRAY(&c, types[t], lengths[i], CLASSES),
                           targets(lengths[i], every));
}

Test(kernels_softmax, loss_of_strided_operands)
{
    const int64_t shape[] = {50, CLASSES}, one[] = {50}, stride[] = {3, 160}, apart[] = {2};
    const struct plim_array *target = kernel_case_strided(&c, PLIM_I64, 1, one, apart, 0);
    kernel_case_fill(&c, target, 0, CLASSES);
    check_loss(kernel_case_strided(&c, PLIM_F32, 2, shape, stride, 1), target);
}

Test(kernels_softmax, loss_backward_writes_targets_only)
{
    for (int t = 0; t < 3; t++)
        for (int i = 0; i < LENGTHS; i++) {
            const struct plim_array *number = kernel_case_scalar(&c, types[t]);
            kernel_case_set(number, 0, 17);
            struct plim_op op = {
                .kind = PLIM_OP_NLL_LOSS_BACKWARD,
                .n_out = 1,
                .n_in = 3,
                .out = {KERNEL_ARRAY(&c, types[t], lengths[i], CLASSES)},
                .in = {kernel_case_scalar(&c, types[t]), targets(lengths[i], 3), number}};
            kernel_case_check(&c, &op, 1, 0);
            kernel_case_finish(&c);
        }
}

/* --- cross entropy of logits ------------------------------------------------------------------ */

enum { LOSS_ALONE, GRADIENT_APART, GRADIENT_IN_PLACE };

/* Every third target is ignored. */
static void check_cross_entropy(const struct plim_array *logits, enum plim_dtype loss, int gradient, double cap)
{
    int64_t rows = logits->shape[0], classes = logits->shape[1];
    const struct plim_array *target = KERNEL_ARRAY(&c, PLIM_I64, rows);
    kernel_case_fill(&c, target, 0, (double)classes);
    for (int64_t i = 1; i < rows; i += 3) kernel_case_set(target, i, PLIM_IGNORED_TARGET);
    kernel_case_fill(&c, logits, -6, 6);
    struct plim_op op = {.kind = PLIM_OP_CROSS_ENTROPY,
                         .n_out = gradient == LOSS_ALONE ? 1 : 2,
                         .n_in = 2,
                         .alpha = 0.25,
                         .beta = cap,
                         .out = {KERNEL_ARRAY(&c, loss, rows), logits},
                         .in = {logits, target}};
    if (gradient == GRADIENT_APART) op.out[1] = KERNEL_ARRAY(&c, (enum plim_dtype)logits->dtype, rows, classes);
    /* a loss is a difference of logits, a gradient is below alpha */
    kernel_case_check(&c, &op, tolerance(op.out[0]), gradient == LOSS_ALONE ? 2 : 0.25);
    kernel_case_finish(&c);
}

Test(kernels_softmax, cross_entropy_of_every_type_and_shape)
{
    for (int t = 0; t < 3; t++)
        for (int i = 0; i < SHAPES; i++)
            for (int gradient = LOSS_ALONE; gradient <= GRADIENT_IN_PLACE; gradient++)
                check_cross_entropy(KERNEL_ARRAY(&c, types[t], shapes[i][0], shapes[i][1]),
                                    gradient == LOSS_ALONE ? PLIM_F32 : types[t], gradient, i % 2 * 3.5);
}

Test(kernels_softmax, cross_entropy_of_a_vocabulary_and_of_strided_rows)
{
    const int64_t shape[] = {7, 100}, apart[] = {109, 1}, columns_apart[] = {220, 2};
    check_cross_entropy(KERNEL_ARRAY(&c, PLIM_BF16, 2, 50257), PLIM_BF16, GRADIENT_IN_PLACE, 0);
    check_cross_entropy(KERNEL_ARRAY(&c, PLIM_F32, 2, 33001), PLIM_F32, GRADIENT_IN_PLACE, 30);
    check_cross_entropy(kernel_case_strided(&c, PLIM_F16, 2, shape, apart, 1), PLIM_F16, GRADIENT_IN_PLACE, 0);
    check_cross_entropy(kernel_case_strided(&c, PLIM_F32, 2, shape, columns_apart, 0), PLIM_F32, GRADIENT_APART, 2);
    check_cross_entropy(KERNEL_ARRAY(&c, PLIM_F32, 0, 8), PLIM_F32, GRADIENT_IN_PLACE, 0);
    cr_expect(eq(int, c.launches, 0));
}

/* The reference refuses it, PyTorch's assertion does; a kernel cannot stop. */
Test(kernels_softmax, cross_entropy_of_a_class_out_of_range_is_nan)
{
    const struct plim_array *target = KERNEL_ARRAY(&c, PLIM_I64, 2), *logits = KERNEL_ARRAY(&c, PLIM_F32, 2, CLASSES);
    const struct plim_array *loss = KERNEL_ARRAY(&c, PLIM_F32, 2);
    struct plim_op op = {.kind = PLIM_OP_CROSS_ENTROPY,
                         .n_out = 2,
                         .n_in = 2,
                         .alpha = 1,
                         .out = {loss, logits},
                         .in = {logits, target}};
    kernel_case_set(target, 0, CLASSES);
    kernel_case_set(target, 1, 3);
    kernel_case_run(&c, &op);
    cr_expect(isnan(kernel_case_get(loss, 0)));
    cr_expect(isnan(kernel_case_get(logits, 0)));
    cr_expect(isfinite(kernel_case_get(loss, 1)));
    cr_expect(isfinite(kernel_case_get(logits, CLASSES + 3)));
}

Test(kernels_softmax, cross_entropy_that_no_kernel_takes_is_refused)
{
    struct plim_op op = {.kind = PLIM_OP_CROSS_ENTROPY,
                         .n_out = 1,
                         .n_in = 2,
                         .out = {KERNEL_ARRAY(&c, PLIM_F32, 3)},
                         .in = {KERNEL_ARRAY(&c, PLIM_F32, 3, 8), KERNEL_ARRAY(&c, PLIM_I32, 3)}};
    cr_expect(eq(int, plim_cuda_plan(&c.info, &op, NULL, NULL), PLIM_UNSUPPORTED));
    op.in[1] = KERNEL_ARRAY(&c, PLIM_I64, 4);
    cr_expect(eq(int, plim_cuda_plan(&c.info, &op, NULL, NULL), PLIM_INVALID));
    op.in[1] = KERNEL_ARRAY(&c, PLIM_I64, 3);
    op.out[0] = KERNEL_ARRAY(&c, PLIM_F32, 2);
    cr_expect(eq(int, plim_cuda_plan(&c.info, &op, NULL, NULL), PLIM_INVALID));
}
