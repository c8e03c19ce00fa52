#include "devices/host/reference.h"
#include "support/arrays.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <math.h>

/* Element by element in double, of (m, k) and (k, n). */
static void expect_product(const struct plim_array *y, const struct plim_array *a,
                           const struct plim_array *b, double alpha, double tolerance)
{
    int64_t m = a->shape[0], k = a->shape[1], n = b->shape[1];
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            double sum = 0, size = 0;
            for (int64_t l = k; l-- > 0;) {
                sum += array_at(a, i * k + l) * array_at(b, l * n + j);
                size += fabs(array_at(a, i * k + l) * array_at(b, l * n + j));
            }
            cr_assert(fabs(array_at(y, i * n + j) - alpha * sum) <= tolerance * size,
                      "(%d, %d): %g, expected %g", (int)i, (int)j, array_at(y, i * n + j),
                      alpha * sum);
        }
}

static struct plim_op matmul(const struct plim_array *y, const struct plim_array *a,
                             const struct plim_array *b, const struct plim_array *c)
{
    return (struct plim_op){.kind = PLIM_OP_MATMUL,
                            .alpha = 1,
                            .beta = 1,
                            .n_out = 1,
                            .n_in = c ? 3 : 2,
                            .out = {y},
                            .in = {a, b, c}};
}

Test(reference_matmul, every_layout_and_odd_sizes)
{
    static const int64_t sizes[][3] = {
        {1, 1, 1}, {3, 5, 7}, {1, 300, 129}, {17, 64, 128}, {2, 65, 257}};
    for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++)
        for (int layout = 0; layout < 8; layout++) {
            int64_t m = sizes[s][0], k = sizes[s][1], n = sizes[s][2];
            struct plim_array a =
                layout & 1 ? array_transposed(ARRAY(PLIM_F32, k, m), 0, 1) : ARRAY(PLIM_F32, m, k);
            struct plim_array b =
                layout & 2 ? array_transposed(ARRAY(PLIM_F32, n, k), 0, 1) : ARRAY(PLIM_F32, k, n);
            struct plim_array y =
                layout & 4 ? array_transposed(ARRAY(PLIM_F32, n, m), 0, 1) : ARRAY(PLIM_F32, m, n);
            array_scatter(&a, 1, -1, 1);
            array_scatter(&b, 2, -1, 1);
            struct plim_op op = matmul(&y, &a, &b, NULL);
            op.alpha = -0.5;
            run_op(&op);
            expect_product(&y, &a, &b, -0.5, 4e-7);
        }
}

Test(reference_matmul, sixteen_bits_are_rounded_once)
{
    for (int type = PLIM_BF16; type <= PLIM_F16; type++) {
        struct plim_array a = ARRAY((enum plim_dtype)type, 5, 200),
                          b = ARRAY((enum plim_dtype)type, 200, 3),
                          y = ARRAY((enum plim_dtype)type, 5, 3), wide = ARRAY(PLIM_F32, 5, 3);
        array_scatter(&a, 1, 0, 1);
        array_scatter(&b, 2, 0, 1);
        struct plim_op op = matmul(&y, &a, &b, NULL), exact = matmul(&wide, &a, &b, NULL);
        run_op(&op);
        run_op(&exact);
        expect_product(&wide, &a, &b, 1, 1e-6);
        for (int i = 0; i < 15; i++) {
            struct plim_array one = SCALAR((enum plim_dtype)type);
            array_put(&one, 0, array_at(&wide, i));
            cr_expect(eq(dbl, array_at(&y, i), array_at(&one, 0)));
        }
    }
}

Test(reference_matmul, long_sums_stay_accurate)
{
    struct plim_array a = ARRAY(PLIM_F32, 1, 100000), b = ARRAY(PLIM_F32, 100000, 1),
                      y = ARRAY(PLIM_F32, 1, 1);
    array_fill(&a, 1.1);
    array_fill(&b, 1.3);
    struct plim_op op = matmul(&y, &a, &b, NULL);
    run_op(&op);
    expect_product(&y, &a, &b, 1, 3e-7);
}

Test(reference_matmul, adds_beta_c_that_repeats)
{
    struct plim_array a = ARRAY(PLIM_F32, 2, 1), b = ARRAY(PLIM_F32, 1, 2),
                      y = ARRAY(PLIM_F32, 2, 2), row = ARRAY(PLIM_F32, 2),
                      column = ARRAY(PLIM_F32, 2, 1);
    VALUES(&a, 1, 2);
    VALUES(&b, 3, 4);
    VALUES(&row, 10, 20);
    VALUES(&column, 10, 20);
    struct plim_op op = matmul(&y, &a, &b, &row);
    op.epilogue = PLIM_EPILOGUE_BIAS;
    run_op(&op);
    EXPECT_VALUES(&y, 0, 13, 24, 16, 28);
    op = matmul(&y, &a, &b, &column);
    op.beta = 0.5;
    run_op(&op);
    EXPECT_VALUES(&y, 0, 8, 9, 16, 18);
    array_fill(&column, NAN);
    op.beta = 0; /* c is not read */
    run_op(&op);
    EXPECT_VALUES(&y, 0, 3, 4, 6, 8);
}

Test(reference_matmul, c_may_be_the_result)
{
    struct plim_array a = ARRAY(PLIM_F32, 2, 1), b = ARRAY(PLIM_F32, 1, 2),
                      y = ARRAY(PLIM_F32, 2, 2);
    VALUES(&a, 1, 2);
    VALUES(&b, 3, 4);
    VALUES(&y, 1, 2, 3, 4);
    struct plim_op op = matmul(&y, &a, &b, &y);
    run_op(&op);
    EXPECT_VALUES(&y, 0, 4, 6, 9, 12);
}

Test(reference_matmul, batches_in_any_order_of_memory)
{
    struct plim_array a = array_transposed(ARRAY(PLIM_BF16, 2, 4, 3, 5), 1, 2),
                      b = ARRAY(PLIM_BF16, 2, 3, 5, 6), y = ARRAY(PLIM_F32, 2, 3, 4, 6),
                      shared = ARRAY(PLIM_BF16, 5, 6);
    array_scatter(&a, 1, -1, 1);
    array_scatter(&b, 2, -1, 1);
    array_scatter(&shared, 3, -1, 1);
    for (int which = 0; which < 2; which++) {
        const struct plim_array *right = which ? &shared : &b;
        struct plim_op op = matmul(&y, &a, right, NULL);
        run_op(&op);
        for (int n = 0; n < 144; n++) {
            int batch = n / 24, i = n / 6 % 4, j = n % 6;
            double sum = 0;
            for (int l = 0; l < 5; l++)
                sum += array_at(&a, (batch * 4 + i) * 5 + l) *
                       array_at(right, ((which ? 0 : batch) * 5 + l) * 6 + j);
            cr_expect(fabs(array_at(&y, n) - sum) < 1e-6);
        }
    }
}

Test(reference_matmul, of_an_empty_sum_is_c)
{
    struct plim_array a = ARRAY(PLIM_F32, 2, 0), b = ARRAY(PLIM_F32, 0, 2),
                      y = ARRAY(PLIM_F32, 2, 2), none = ARRAY(PLIM_F32, 0, 2),
                      few = ARRAY(PLIM_F32, 0, 0), c = ARRAY(PLIM_F32, 2);
    VALUES(&c, 1, 2);
    struct plim_op op = matmul(&y, &a, &b, &c);
    run_op(&op);
    EXPECT_VALUES(&y, 0, 1, 2, 1, 2);
    op = matmul(&none, &few, &b, NULL);
    run_op(&op);
}

Test(reference_matmul, infinities_and_nan_arrive)
{
    struct plim_array a = ARRAY(PLIM_F32, 2, 2), b = ARRAY(PLIM_F32, 2, 1),
                      y = ARRAY(PLIM_F32, 2, 1);
    VALUES(&a, 1, 0, 2, 1);
    VALUES(&b, INFINITY, NAN);
    struct plim_op op = matmul(&y, &a, &b, NULL);
    run_op(&op);
    EXPECT_VALUES(&y, 0, NAN, NAN);
    VALUES(&b, INFINITY, 1);
    run_op(&op);
    EXPECT_VALUES(&y, 0, INFINITY, INFINITY);
}

Test(reference_matmul, refuses_sizes_that_do_not_fit)
{
    struct plim_array a = ARRAY(PLIM_F32, 2, 3), b = ARRAY(PLIM_F32, 4, 5),
                      y = ARRAY(PLIM_F32, 2, 5), c = ARRAY(PLIM_F32, 4), line = ARRAY(PLIM_F32, 3),
                      right = ARRAY(PLIM_F32, 3, 5);
    struct plim_op op = matmul(&y, &a, &b, NULL);
    cr_expect(eq(int, plim_reference_run(&op), PLIM_INVALID));
    op = matmul(&y, &a, &right, &c);
    cr_expect(eq(int, plim_reference_run(&op), PLIM_INVALID));
    op = matmul(&y, &line, &right, NULL);
    cr_expect(eq(int, plim_reference_run(&op), PLIM_INVALID));
    op = matmul(&y, &a, &right, NULL);
    op.epilogue = PLIM_EPILOGUE_BIAS; /* without a row */
    cr_expect(eq(int, plim_reference_run(&op), PLIM_INVALID));
    op.epilogue = PLIM_EPILOGUE_NONE;
    array_fill(&a, 1), array_fill(&right, 1);
    run_op(&op);
}
