#include "support/kernel_case.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

static struct kernel_case c;

static void setup(void)
{
    kernel_case_init(&c, 2);
}

static void finish(void)
{
    kernel_case_finish(&c);
}

TestSuite(kernels_norm, .init = setup, .fini = finish);

static const enum plim_dtype types[] = {PLIM_F32, PLIM_BF16, PLIM_F16};

static double tolerance(enum plim_dtype dtype)
{
    return dtype == PLIM_F32 ? 8 : 1;
}

/* The test's GPU runs 32 blocks at once: 300 rows of 257 columns need more, and so do 40 of 1100. */
static const int64_t shapes[][2] = {{1, 1},    {3, 1},    {5, 7},     {1, 8},
                                    {9, 24},   {4, 257},  {300, 257}, {2, 1024},
                                    {3, 1033}, {8200, 8}, {40, 1100}};
enum { SHAPES = sizeof shapes / sizeof *shapes };

enum { WITH_WEIGHT = 1, WITH_BIAS = 2 };

/* --- forward ---------------------------------------------------------------------------------- */

static void check_forward(const struct plim_array *y, const struct plim_array *x,
                          enum plim_dtype parameters, int with)
{
    int64_t columns = x->shape[x->ndim - 1], rows = plim_array_elements(x) / columns;
    struct plim_op op = {
        .kind = PLIM_OP_LAYER_NORM,
        .n_out = 3,
        .n_in = 3,
        .alpha = 1e-5,
        .out = {y, KERNEL_ARRAY(&c, PLIM_F32, rows), KERNEL_ARRAY(&c, PLIM_F32, rows)},
        .in = {x}};
    if (with & WITH_WEIGHT) op.in[1] = KERNEL_ARRAY(&c, parameters, columns);
    if (with & WITH_BIAS) op.in[2] = KERNEL_ARRAY(&c, parameters, columns);
    /* where the variance of a row is small, a difference of its mean is magnified: rstd */
    kernel_case_check(&c, &op, tolerance((enum plim_dtype)x->dtype), 8);
    kernel_case_finish(&c);
}

Test(kernels_norm, forward_of_every_type_and_shape)
{
    for (int t = 0; t < 3; t++)
        for (int i = 0; i < SHAPES; i++)
            check_forward(KERNEL_ARRAY(&c, types[t], shapes[i][0], shapes[i][1]),
                          KERNEL_ARRAY(&c, types[t], shapes[i][0], shapes[i][1]), types[t],
                          WITH_WEIGHT | WITH_BIAS);
}

Test(kernels_norm, forward_without_weight_or_bias)
{
    for (int with = 0; with < WITH_WEIGHT + WITH_BIAS; with++)
        check_forward(KERNEL_ARRAY(&c, PLIM_BF16, 3, 40), KERNEL_ARRAY(&c, PLIM_BF16, 3, 40),
                      PLIM_BF16, with);
}

Test(kernels_norm, forward_with_wider_parameters)
{
    check_forward(KERNEL_ARRAY(&c, PLIM_F16, 3, 40), KERNEL_ARRAY(&c, PLIM_F16, 3, 40), PLIM_F32,
                  WITH_WEIGHT | WITH_BIAS);
}

Test(kernels_norm, forward_of_a_row_longer_than_a_block_reaches)
{
    check_forward(KERNEL_ARRAY(&c, PLIM_BF16, 2, 33001), KERNEL_ARRAY(&c, PLIM_BF16, 2, 33001),
                  PLIM_BF16, WITH_WEIGHT);
}

Test(kernels_norm, forward_of_rows_that_do_not_begin_at_vectors)
{
    const int64_t shape[] = {5, 64}, apart[] = {67, 1}, columns_apart[] = {130, 2};
    check_forward(kernel_case_strided(&c, PLIM_BF16, 2, shape, apart, 3),
                  kernel_case_strided(&c, PLIM_BF16, 2, shape, apart, 0), PLIM_BF16, WITH_WEIGHT);
    check_forward(kernel_case_strided(&c, PLIM_BF16, 2, shape, columns_apart, 0),
                  KERNEL_ARRAY(&c, PLIM_BF16, 5, 64), PLIM_BF16, WITH_WEIGHT);
}

Test(kernels_norm, forward_of_rows_in_several_dimensions)
{
    const int64_t shape[] = {2, 3, 4, 16};
    const int order[] = {2, 0, 1, 3};
    check_forward(KERNEL_ARRAY(&c, PLIM_F32, 2, 3, 4, 16),
                  kernel_case_permuted(&c, PLIM_F32, 4, shape, order, 0), PLIM_F32, WITH_BIAS);
}

Test(kernels_norm, forward_keeps_its_precision_where_the_mean_is_large)
{
    const struct plim_array *x = KERNEL_ARRAY(&c, PLIM_F32, 3, 2048);
    kernel_case_fill(&c, x, 999, 1001);
    struct plim_op op = {.kind = PLIM_OP_LAYER_NORM,
                         .n_out = 3,
                         .n_in = 1,
                         .alpha = 1e-5,
                         .out = {KERNEL_ARRAY(&c, PLIM_F32, 3, 2048), KERNEL_ARRAY(&c, PLIM_F32, 3),
                                 KERNEL_ARRAY(&c, PLIM_F32, 3)},
                         .in = {x}};
    kernel_case_check(&c, &op, 4, 1000);
}

Test(kernels_norm, forward_of_no_rows_launches_nothing)
{
    check_forward(KERNEL_ARRAY(&c, PLIM_F32, 0, 8), KERNEL_ARRAY(&c, PLIM_F32, 0, 8), PLIM_F32, 0);
    cr_expect(eq(int, c.launches, 0));
}

/* --- backward --------------------------------------------------------------------------------- */

/* dout, x, mean, rstd as a forward pass leaves them. */
static void make_saved(struct plim_op *op, enum plim_dtype dtype, int64_t rows, int64_t columns)
{
    op->in[0] = KERNEL_ARRAY(&c, dtype, rows, columns);
    op->in[1] = KERNEL_ARRAY(&c, dtype, rows, columns);
    op->in[2] = KERNEL_ARRAY(&c, PLIM_F32, rows);
    op->in[3] = KERNEL_ARRAY(&c, PLIM_F32, rows);
    kernel_case_fill(&c, op->in[2], -0.1, 0.1);
    kernel_case_fill(&c, op->in[3], 0.5, 1);
    op->n_in = 4;
}

Test(kernels_norm, backward_of_every_type_and_shape)
{
    for (int t = 0; t < 3; t++)
        for (int i = 0; i < SHAPES; i++)
            for (int weight = 0; weight < 2; weight++) {
                int64_t rows = shapes[i][0], columns = shapes[i][1];
                struct plim_op op = {.kind = PLIM_OP_LAYER_NORM_BACKWARD, .n_out = 1};
                make_saved(&op, types[t], rows, columns);
                op.out[0] = KERNEL_ARRAY(&c, types[t], rows, columns);
                if (weight) op.in[op.n_in++] = KERNEL_ARRAY(&c, types[t], columns);
                kernel_case_check(&c, &op, tolerance(types[t]), 4);
                kernel_case_finish(&c);
            }
}

static void check_params(enum plim_dtype dtype, int64_t rows, int64_t columns, int64_t parts,
                         bool bias)
{
    struct plim_op op = {.kind = PLIM_OP_LAYER_NORM_BACKWARD_PARAMS, .n_out = bias ? 2 : 1};
    make_saved(&op, dtype, rows, columns);
    for (int i = 0; i < op.n_out; i++)
        op.out[i] =
            parts ? KERNEL_ARRAY(&c, dtype, parts, columns) : KERNEL_ARRAY(&c, dtype, columns);
    /* 8200 terms up to 4 sum to about 200 on the way */
    kernel_case_check(&c, &op, tolerance(dtype), dtype == PLIM_F32 ? 200 : 8);
    kernel_case_finish(&c);
}

Test(kernels_norm, gradients_of_parameters)
{
    for (int t = 0; t < 3; t++)
        for (int i = 0; i < SHAPES; i++)
            check_params(types[t], shapes[i][0], shapes[i][1], 0, t != 1);
}

Test(kernels_norm, gradients_of_parameters_in_parts)
{
    for (int t = 0; t < 3; t++) {
        check_params(types[t], 100, 33, 7, true);
        check_params(types[t], 3, 33, 5, true); /* some parts have no rows */
        check_params(types[t], 64, 64, 64, false);
    }
}

Test(kernels_norm, operands_that_no_kernel_takes_are_refused)
{
    struct plim_op op = {.kind = PLIM_OP_LAYER_NORM_BACKWARD, .n_out = 1};
    make_saved(&op, PLIM_F32, 2, 8);
    op.out[0] = KERNEL_ARRAY(&c, PLIM_I64, 2, 8);
    cr_expect(eq(int, plim_cuda_plan(&c.info, &op, NULL, NULL), PLIM_UNSUPPORTED));
    op.out[0] = KERNEL_ARRAY(&c, PLIM_F32, 8, 2);
    cr_expect(eq(int, plim_cuda_plan(&c.info, &op, NULL, NULL), PLIM_INVALID));
}

/* --- RMSNorm ---------------------------------------------------------------------------------- */

static void check_rms(const struct plim_array *y, const struct plim_array *x, enum plim_dtype parameters, double offset)
{
    int64_t columns = x->shape[x->ndim - 1], rows = plim_array_elements(x) / columns;
    struct plim_op op = {.kind = PLIM_OP_RMS_NORM,
                         .n_out = 2,
                         .n_in = 2,
                         .alpha = 1e-6,
                         .beta = offset,
                         .out = {y, KERNEL_ARRAY(&c, PLIM_F32, rows)},
                         .in = {x, KERNEL_ARRAY(&c, parameters, columns)}};
    kernel_case_check(&c, &op, tolerance((enum plim_dtype)y->dtype), 4);
    kernel_case_finish(&c);
}

Test(kernels_norm, rms_of_every_type_and_shape)
{
    for (int t = 0; t < 3; t++)
        for (int i = 0; i < SHAPES; i++)
            check_rms(KERNEL_ARRAY(&c, types[t], shapes[i][0], shapes[i][1]),
                      KERNEL_ARRAY(&c, types[t], shapes[i][0], shapes[i][1]), types[t], i % 2);
}

Test(kernels_norm, rms_of_mixed_types_strides_and_long_rows)
{
    const int64_t shape[] = {5, 64}, apart[] = {67, 1};
    check_rms(KERNEL_ARRAY(&c, PLIM_BF16, 5, 64), kernel_case_strided(&c, PLIM_F32, 2, shape, apart, 3), PLIM_F32, 1);
    check_rms(KERNEL_ARRAY(&c, PLIM_F16, 2, 33001), KERNEL_ARRAY(&c, PLIM_F16, 2, 33001), PLIM_F32, 0);
    check_rms(KERNEL_ARRAY(&c, PLIM_F32, 0, 8), KERNEL_ARRAY(&c, PLIM_F32, 0, 8), PLIM_F32, 0);
    cr_expect(eq(int, c.launches, 0));
}

enum { APART, IN_PLACE };

/* parts 0: without sums */
static void check_rms_backward(enum plim_dtype dtype, int64_t rows, int64_t columns, int64_t parts, int where)
{
    struct plim_op op = {.kind = PLIM_OP_RMS_NORM_BACKWARD,
                         .n_out = parts ? 2 : 1,
                         .n_in = 4,
                         .beta = where,
                         .in = {KERNEL_ARRAY(&c, dtype, rows, columns), KERNEL_ARRAY(&c, dtype, rows, columns),
                                KERNEL_ARRAY(&c, dtype, columns), KERNEL_ARRAY(&c, PLIM_F32, rows)}};
    kernel_case_fill(&c, op.in[3], 0.5, 1);
    op.out[0] = where == IN_PLACE ? op.in[0] : KERNEL_ARRAY(&c, dtype, rows, columns);
    if (parts) op.out[1] = KERNEL_ARRAY(&c, PLIM_F32, parts, columns);
    /* sums of up to 8200 terms; of two numbers beside each other in 16 bits */
    kernel_case_check(&c, &op, 8, rows > 1000 ? 200 : 8);
    kernel_case_finish(&c);
}

Test(kernels_norm, rms_backward_of_every_type_and_shape)
{
    for (int t = 0; t < 3; t++)
        for (int i = 0; i < SHAPES; i++)
            for (int where = APART; where <= IN_PLACE; where++) {
                check_rms_backward(types[t], shapes[i][0], shapes[i][1], 0, where);
                check_rms_backward(types[t], shapes[i][0], shapes[i][1], 3, where);
            }
}

/* Sums of rows of 12289 numbers or more do not fit into shared memory. */
Test(kernels_norm, rms_backward_of_many_parts_and_of_long_rows)
{
    for (int t = 0; t < 3; t++) {
        check_rms_backward(types[t], 3, 33, 5, APART); /* some parts have no rows */
        check_rms_backward(types[t], 0, 40, 4, APART);
        check_rms_backward(types[t], 64, 128, 7, IN_PLACE);
        check_rms_backward(types[t], 5, 12296, 2, IN_PLACE);
        check_rms_backward(types[t], 5, 12297, 2, IN_PLACE);
    }
}

Test(kernels_norm, sums_of_another_type_are_refused)
{
    struct plim_op op = {.kind = PLIM_OP_RMS_NORM_BACKWARD,
                         .n_out = 2,
                         .n_in = 4,
                         .out = {KERNEL_ARRAY(&c, PLIM_F32, 2, 8), KERNEL_ARRAY(&c, PLIM_BF16, 3, 8)},
                         .in = {KERNEL_ARRAY(&c, PLIM_F32, 2, 8), KERNEL_ARRAY(&c, PLIM_F32, 2, 8),
                                KERNEL_ARRAY(&c, PLIM_F32, 8), KERNEL_ARRAY(&c, PLIM_F32, 2)}};
    cr_expect(eq(int, plim_cuda_plan(&c.info, &op, NULL, NULL), PLIM_UNSUPPORTED));
    op.out[1] = KERNEL_ARRAY(&c, PLIM_F32, 3, 7);
    cr_expect(eq(int, plim_cuda_plan(&c.info, &op, NULL, NULL), PLIM_INVALID));
    op.out[1] = KERNEL_ARRAY(&c, PLIM_F32, 3, 8);
    op.in[2] = KERNEL_ARRAY(&c, PLIM_F32, 7);
    cr_expect(eq(int, plim_cuda_plan(&c.info, &op, NULL, NULL), PLIM_INVALID));
}

/* --- L2 norm ---------------------------------------------------------------------------------- */

static void check_l2(enum plim_dtype dtype, int64_t rows, int64_t columns, bool in_place)
{
    struct plim_op op = {.kind = PLIM_OP_L2_NORM,
                         .n_out = 2,
                         .n_in = 1,
                         .alpha = 1e-6,
                         .out = {KERNEL_ARRAY(&c, dtype, rows, columns), KERNEL_ARRAY(&c, PLIM_F32, rows)},
                         .in = {KERNEL_ARRAY(&c, dtype, rows, columns)}};
    kernel_case_check(&c, &op, tolerance(dtype), 1);
    kernel_case_finish(&c);
    op = (struct plim_op){.kind = PLIM_OP_L2_NORM_BACKWARD,
                          .n_out = 1,
                          .n_in = 3,
                          .in = {KERNEL_ARRAY(&c, dtype, rows, columns), KERNEL_ARRAY(&c, PLIM_F32, rows),
                                 KERNEL_ARRAY(&c, dtype, rows, columns)}};
    kernel_case_fill(&c, op.in[0], -0.1, 0.1);
    op.out[0] = in_place ? op.in[2] : KERNEL_ARRAY(&c, dtype, rows, columns);
    kernel_case_check(&c, &op, tolerance(dtype), 16);
    kernel_case_finish(&c);
}

Test(kernels_norm, l2_of_every_type_and_shape)
{
    for (int t = 0; t < 3; t++)
        for (int i = 0; i < SHAPES; i++)
            for (int in_place = 0; in_place < 2; in_place++) check_l2(types[t], shapes[i][0], shapes[i][1], in_place);
    check_l2(PLIM_F16, 2, 33001, false);
    check_l2(PLIM_F32, 0, 8, false);
    cr_expect(eq(int, c.launches, 0));
}
