#include "devices/host/reference.h"
#include "support/arrays.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <math.h>

static struct plim_op of_two(enum plim_op_kind kind, const struct plim_array *y,
                             const struct plim_array *a, const struct plim_array *b)
{
    return (struct plim_op){.kind = kind, .n_out = 1, .n_in = b ? 2 : 1, .out = {y}, .in = {a, b}};
}

/* --- softmax ---------------------------------------------------------------------------------- */

Test(reference_softmax, is_the_exponentials_over_their_sum)
{
    struct plim_array x = array_transposed(ARRAY(PLIM_F16, 7, 5), 0, 1), y = ARRAY(PLIM_F32, 5, 7);
    struct plim_op op = of_two(PLIM_OP_SOFTMAX, &y, &x, NULL);
    array_scatter(&x, 1, -3, 3);
    run_op(&op);
    for (int i = 0; i < 5; i++) {
        double sum = 0;
        for (int j = 0; j < 7; j++) sum += exp(array_at(&x, 7 * i + j));
        for (int j = 0; j < 7; j++)
            cr_expect(fabs(array_at(&y, 7 * i + j) - exp(array_at(&x, 7 * i + j)) / sum) < 1e-7);
    }
}

Test(reference_softmax, rows_sum_to_one_however_large_the_numbers)
{
    struct plim_array x = ARRAY(PLIM_F32, 3, 500), y = ARRAY(PLIM_F32, 3, 500);
    struct plim_op op = of_two(PLIM_OP_SOFTMAX, &y, &x, NULL);
    array_scatter(&x, 1, -1e4, 1e4);
    run_op(&op);
    for (int i = 0; i < 3; i++) {
        double sum = 0;
        for (int j = 0; j < 500; j++) sum += array_at(&y, 500 * i + j);
        cr_expect(fabs(sum - 1) < 1e-6);
    }
}

Test(reference_softmax, minus_infinities_and_nan)
{
    struct plim_array x = ARRAY(PLIM_F32, 3, 2), y = ARRAY(PLIM_F32, 3, 2);
    struct plim_op op = of_two(PLIM_OP_SOFTMAX, &y, &x, NULL);
    VALUES(&x, -INFINITY, 1, -INFINITY, -INFINITY, NAN, 0);
    run_op(&op);
    EXPECT_VALUES(&y, 0, 0, 1, NAN, NAN, NAN, NAN);
    op.kind = PLIM_OP_LOG_SOFTMAX;
    run_op(&op);
    EXPECT_VALUES(&y, 0, -INFINITY, 0, NAN, NAN, NAN, NAN);
}

Test(reference_softmax, the_backward_is_the_derivative)
{
    struct plim_array x = ARRAY(PLIM_F32, 3, 6), y = ARRAY(PLIM_F32, 3, 6),
                      dy = ARRAY(PLIM_F32, 3, 6), scaled = ARRAY(PLIM_F32, 3, 6),
                      dx = ARRAY(PLIM_F32, 3, 6);
    struct plim_op forward = of_two(PLIM_OP_SOFTMAX, &y, &x, NULL);
    array_scatter(&x, 1, -1, 1);
    array_scatter(&dy, 2, -1, 1);
    run_op(&forward);
    for (int i = 0; i < 18; i++) array_put(&scaled, i, array_at(&dy, i) * array_at(&y, i));
    struct plim_op backward = of_two(PLIM_OP_SOFTMAX_BACKWARD, &dx, &scaled, &y);
    run_op(&backward);
    expect_gradient(&forward, &dy, &x, &dx, 1e-4);
}

Test(reference_log_softmax, is_the_logarithm_and_its_backward_the_derivative)
{
    struct plim_array x = ARRAY(PLIM_F32, 3, 6), p = ARRAY(PLIM_F32, 3, 6),
                      y = ARRAY(PLIM_F32, 3, 6), dy = ARRAY(PLIM_F32, 3, 6),
                      dx = ARRAY(PLIM_F32, 3, 6);
    struct plim_op softmax = of_two(PLIM_OP_SOFTMAX, &p, &x, NULL),
                   forward = of_two(PLIM_OP_LOG_SOFTMAX, &y, &x, NULL);
    array_scatter(&x, 3, -2, 2);
    array_scatter(&dy, 2, -1, 1);
    run_op(&softmax);
    run_op(&forward);
    for (int i = 0; i < 18; i++) cr_expect(fabs(array_at(&y, i) - log(array_at(&p, i))) < 1e-6);
    struct plim_op backward = of_two(PLIM_OP_LOG_SOFTMAX_BACKWARD, &dx, &dy, &y);
    run_op(&backward);
    expect_gradient(&forward, &dy, &x, &dx, 1e-4);
}

Test(reference_softmax, refuses_other_shapes)
{
    struct plim_array x = ARRAY(PLIM_F32, 3, 6), y = ARRAY(PLIM_F32, 6, 3);
    struct plim_op op = of_two(PLIM_OP_SOFTMAX, &y, &x, NULL);
    cr_expect(eq(int, plim_reference_run(&op), PLIM_INVALID));
    op = of_two(PLIM_OP_SOFTMAX_BACKWARD, &x, &x, &y);
    cr_expect(eq(int, plim_reference_run(&op), PLIM_INVALID));
}

/* --- cross entropy ---------------------------------------------------------------------------- */

static struct plim_op nll(const struct plim_array *loss, const struct plim_array *number,
                          const struct plim_array *x, const struct plim_array *target)
{
    return (struct plim_op){
        .kind = PLIM_OP_NLL_LOSS, .n_out = 2, .n_in = 2, .out = {loss, number}, .in = {x, target}};
}

Test(reference_nll_loss, is_the_mean_over_targets_that_are_not_ignored)
{
    struct plim_array x = ARRAY(PLIM_F32, 4, 3), target = ARRAY(PLIM_I64, 4),
                      loss = SCALAR(PLIM_F32), number = SCALAR(PLIM_F32);
    struct plim_op op = nll(&loss, &number, &x, &target);
    VALUES(&x, -1, -2, -3, -4, -5, -6, -7, -8, -9, -10, -11, -12);
    VALUES(&target, 2, -100, 0, 1);
    run_op(&op);
    EXPECT_VALUES(&loss, 1e-6, (3 + 7 + 11) / 3.0);
    EXPECT_VALUES(&number, 0, 3);
    VALUES(&target, -100, -100, -100, -100);
    run_op(&op);
    EXPECT_VALUES(&loss, 0, NAN);
    EXPECT_VALUES(&number, 0, 0);
    VALUES(&target, 0, 0, 3, 0);
    cr_expect(eq(int, plim_reference_run(&op), PLIM_INVALID));
    VALUES(&target, 0, 0, -1, 0);
    cr_expect(eq(int, plim_reference_run(&op), PLIM_INVALID));
}

Test(reference_nll_loss, the_backward_is_the_derivative)
{
    struct plim_array x = ARRAY(PLIM_F32, 4, 3), target = ARRAY(PLIM_I64, 4),
                      loss = SCALAR(PLIM_F32), number = SCALAR(PLIM_F32), dy = SCALAR(PLIM_F32),
                      dx = ARRAY(PLIM_F32, 4, 3);
    struct plim_op forward = nll(&loss, &number, &x, &target);
    array_scatter(&x, 1, -3, 0);
    array_put(&dy, 0, 2.5);
    array_fill(&dx, 0);
    VALUES(&target, 2, -100, 0, 1);
    run_op(&forward);
    run_op(&(struct plim_op){.kind = PLIM_OP_NLL_LOSS_BACKWARD,
                             .n_out = 1,
                             .n_in = 3,
                             .out = {&dx},
                             .in = {&dy, &target, &number}});
    expect_gradient(&forward, &dy, &x, &dx, 1e-4);
}

/* --- embedding -------------------------------------------------------------------------------- */

Test(reference_embedding, takes_rows)
{
    struct plim_array w = array_transposed(ARRAY(PLIM_BF16, 2, 5), 0, 1),
                      indices = ARRAY(PLIM_I64, 2, 2), y = ARRAY(PLIM_F32, 2, 2, 2);
    struct plim_op op = of_two(PLIM_OP_EMBEDDING, &y, &w, &indices);
    VALUES(&w, 0, 1, 10, 11, 20, 21, 30, 31, 40, 41);
    VALUES(&indices, 4, 0, 2, 2);
    run_op(&op);
    EXPECT_VALUES(&y, 0, 40, 41, 0, 1, 20, 21, 20, 21);
    VALUES(&indices, 4, 0, 5, 2);
    cr_expect(eq(int, plim_reference_run(&op), PLIM_INVALID));
    VALUES(&indices, 4, 0, -1, 2);
    cr_expect(eq(int, plim_reference_run(&op), PLIM_INVALID));
}

Test(reference_embedding, looks_up_pairs_of_indices)
{
    struct plim_array table = ARRAY(PLIM_BOOL, 2, 3), i = ARRAY(PLIM_I64, 2, 1),
                      j = ARRAY(PLIM_I64, 3), y = ARRAY(PLIM_BOOL, 2, 3);
    VALUES(&table, 1, 0, 0, 1, 1, 0);
    VALUES(&i, 1, 0);
    VALUES(&j, 2, 1, 0);
    run_op(&(struct plim_op){
        .kind = PLIM_OP_EMBEDDING, .n_out = 1, .n_in = 3, .out = {&y}, .in = {&table, &i, &j}});
    EXPECT_VALUES(&y, 0, 0, 1, 1, 0, 0, 1);
}

Test(reference_embedding_backward, adds_up_the_rows_of_equal_indices)
{
    struct plim_array dw = ARRAY(PLIM_F32, 4, 2), indices = ARRAY(PLIM_I64, 3),
                      dy = ARRAY(PLIM_BF16, 3, 2);
    struct plim_op op = of_two(PLIM_OP_EMBEDDING_BACKWARD, &dw, &dy, &indices);
    array_fill(&dw, 0);
    array_put(&dw, 7, 5);
    VALUES(&indices, 3, 1, 3);
    VALUES(&dy, 1, 2, 3, 4, 10, 20);
    run_op(&op);
    EXPECT_VALUES(&dw, 0, 0, 0, 3, 4, 0, 0, 11, 27);
    VALUES(&indices, 3, 1, 4);
    cr_expect(eq(int, plim_reference_run(&op), PLIM_INVALID));
}

Test(reference_embedding_backward, rounds_a_sum_once)
{
    struct plim_array dw = ARRAY(PLIM_BF16, 1, 1), indices = ARRAY(PLIM_I64, 1000),
                      dy = ARRAY(PLIM_BF16, 1000, 1);
    struct plim_op op = of_two(PLIM_OP_EMBEDDING_BACKWARD, &dw, &dy, &indices);
    array_fill(&dw, 0);
    array_fill(&indices, 0);
    array_fill(&dy, 1); /* bf16 cannot count beyond 256 */
    run_op(&op);
    EXPECT_VALUES(&dw, 0, 1000);
}
