/* Operations of linear attention other than products: depthwise convolutions, triangular systems. */
#include "devices/host/reference.h"
#include "support/arrays.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

static struct plim_op of(enum plim_op_kind kind, const struct plim_array *out,
                         const struct plim_array *a, const struct plim_array *b)
{
    return (struct plim_op){.kind = kind, .n_out = 1, .n_in = 2, .out = {out}, .in = {a, b}};
}

Test(reference_depthwise, each_channel_has_its_own_kernel)
{
    struct plim_array x = ARRAY(PLIM_F32, 1, 2, 3), w = ARRAY(PLIM_F32, 2, 1, 2),
                      y = ARRAY(PLIM_F32, 1, 2, 4), inside = ARRAY(PLIM_F32, 1, 2, 2);
    VALUES(&x, 1, 2, 3, 4, 5, 6);
    VALUES(&w, 10, 1, 0, -1);
    struct plim_op op = of(PLIM_OP_DEPTHWISE, &y, &x, &w);
    run_op(&op);
    EXPECT_VALUES(&y, 0, 1, 12, 23, 30, -4, -5, -6, 0);
    op = of(PLIM_OP_DEPTHWISE, &inside, &x, &w); /* without zeros around */
    run_op(&op);
    EXPECT_VALUES(&inside, 0, 12, 23, -5, -6);
    struct plim_array bias = ARRAY(PLIM_F32, 2), other = ARRAY(PLIM_F32, 3);
    VALUES(&bias, 100, 0.5);
    op.in[op.n_in++] = &bias;
    run_op(&op);
    EXPECT_VALUES(&inside, 0, 112, 123, -4.5, -5.5);
    op.in[2] = &other; /* of other channels */
    cr_expect(eq(int, plim_reference_run(&op), PLIM_INVALID));
}

Test(reference_depthwise, gradients_are_slopes)
{
    struct plim_array x = array_transposed(ARRAY(PLIM_F32, 2, 7, 3), 1, 2),
                      w = ARRAY(PLIM_F32, 3, 1, 4), y = ARRAY(PLIM_F32, 2, 3, 10),
                      dy = ARRAY(PLIM_F32, 2, 3, 10), dx = ARRAY(PLIM_F32, 2, 3, 7),
                      dw = ARRAY(PLIM_F32, 3, 1, 4);
    array_scatter(&x, 1, -1, 1), array_scatter(&w, 2, -1, 1), array_scatter(&dy, 3, -1, 1);
    struct plim_op op = of(PLIM_OP_DEPTHWISE, &y, &x, &w),
                   back = of(PLIM_OP_DEPTHWISE_BACKWARD, &dx, &dy, &w),
                   weight = of(PLIM_OP_DEPTHWISE_BACKWARD_WEIGHT, &dw, &dy, &x);
    run_op(&back), run_op(&weight);
    expect_gradient(&op, &dy, &x, &dx, 1e-3);
    expect_gradient(&op, &dy, &w, &dw, 1e-3);
}

Test(reference_depthwise, refuses_sizes_that_do_not_fit)
{
    struct plim_array x = ARRAY(PLIM_F32, 1, 2, 3), w = ARRAY(PLIM_F32, 2, 1, 2),
                      other = ARRAY(PLIM_F32, 3, 1, 2), odd = ARRAY(PLIM_F32, 1, 2, 3),
                      short_row = ARRAY(PLIM_F32, 1, 2, 1);
    struct plim_op op = of(PLIM_OP_DEPTHWISE, &odd, &x, &w); /* half a zero on either side */
    cr_expect(eq(int, plim_reference_run(&op), PLIM_INVALID));
    op = of(PLIM_OP_DEPTHWISE, &short_row, &x, &w);
    cr_expect(eq(int, plim_reference_run(&op), PLIM_INVALID));
    op.in[1] = &other;
    cr_expect(eq(int, plim_reference_run(&op), PLIM_INVALID));
}

Test(reference_solve_triangular, the_diagonal_counts_as_ones)
{
    struct plim_array a = ARRAY(PLIM_F32, 2, 2), b = ARRAY(PLIM_F32, 2, 2),
                      x = ARRAY(PLIM_F32, 2, 2);
    VALUES(&a, 7, 5, 3, 9); /* of which the lower 3, or the upper 5 counts */
    VALUES(&b, 1, 2, 10, 20);
    struct plim_op op = of(PLIM_OP_SOLVE_TRIANGULAR, &x, &a, &b);
    run_op(&op);
    EXPECT_VALUES(&x, 0, 1, 2, 7, 14);
    op.upper = true;
    run_op(&op);
    EXPECT_VALUES(&x, 0, -49, -98, 10, 20);
}

Test(reference_solve_triangular, batches_and_layouts)
{
    struct plim_array a = ARRAY(PLIM_F32, 2, 3, 3), b = ARRAY(PLIM_F32, 2, 3, 2),
                      x = ARRAY(PLIM_F32, 2, 3, 2), turned = array_transposed(a, 1, 2),
                      by_columns = array_transposed(ARRAY(PLIM_F32, 2, 2, 3), 1, 2);
    array_scatter(&a, 1, -1, 1), array_scatter(&b, 2, -1, 1);
    struct plim_op op = of(PLIM_OP_SOLVE_TRIANGULAR, &x, &a, &b);
    run_op(&op);
    for (int m = 0; m < 2; m++)
        for (int i = 0; i < 3; i++)
            for (int j = 0; j < 2; j++) {
                double sum = array_at(&x, (m * 3 + i) * 2 + j);
                for (int k = 0; k < i; k++)
                    sum += array_at(&a, (m * 3 + i) * 3 + k) * array_at(&x, (m * 3 + k) * 2 + j);
                cr_expect(lt(dbl, sum - array_at(&b, (m * 3 + i) * 2 + j), 1e-6));
                cr_expect(lt(dbl, array_at(&b, (m * 3 + i) * 2 + j) - sum, 1e-6));
            }
    struct plim_op other = of(PLIM_OP_SOLVE_TRIANGULAR, &by_columns, &a, &b);
    run_op(&other);
    expect_equal_arrays(&by_columns, &x, 0);
    op.in[0] = &turned, op.upper = true; /* the transposed system */
    run_op(&op);
    cr_expect(eq(dbl, array_at(&x, 4), array_at(&b, 4))); /* its last row stands alone */
}

Test(reference_solve_triangular, refuses_sizes_that_do_not_fit)
{
    struct plim_array a = ARRAY(PLIM_F32, 3, 3), b = ARRAY(PLIM_F32, 2, 2),
                      x = ARRAY(PLIM_F32, 2, 2);
    struct plim_op op = of(PLIM_OP_SOLVE_TRIANGULAR, &x, &a, &b);
    cr_expect(eq(int, plim_reference_run(&op), PLIM_INVALID));
}
