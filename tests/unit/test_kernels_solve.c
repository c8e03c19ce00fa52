#include "support/kernel_case.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

static struct kernel_case c;

static void setup(void)
{
    kernel_case_init(&c, 19);
}

static void finish(void)
{
    kernel_case_finish(&c);
}

TestSuite(kernels_solve, .init = setup, .fini = finish);

/* (batch, heads, n, columns), by rows or by columns; the matrices are close to the identity. */
static void check(int64_t batch, int64_t heads, int64_t n, int64_t columns, bool by_columns)
{
    static const int by[2][4] = {{0, 1, 2, 3}, {0, 1, 3, 2}};
    const int64_t square[] = {batch, heads, n, n}, right[] = {batch, heads, n, columns};
    const struct plim_array *a = kernel_case_permuted(&c, PLIM_F32, 4, square, by[by_columns], 0);
    struct plim_op op = {.kind = PLIM_OP_SOLVE_TRIANGULAR, .n_out = 1, .n_in = 2};
    kernel_case_fill(&c, a, -0.05, 0.05);
    op.in[0] = a;
    op.in[1] = kernel_case_permuted(&c, PLIM_F32, 4, right, by[0], 0);
    op.out[0] = kernel_case_permuted(&c, PLIM_F32, 4, right, by[1], 0);
    for (int upper = 0; upper < 2; upper++) {
        op.upper = upper;
        kernel_case_check(&c, &op, 64, 2);
    }
    kernel_case_finish(&c);
}

Test(kernels_solve, systems_of_every_size)
{
    static const int64_t sizes[] = {0, 1, 2, 17, 63, 64};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int by_columns = 0; by_columns < 2; by_columns++) {
            check(2, 3, sizes[i], sizes[i], by_columns);
            check(1, 2, sizes[i], 65, by_columns);
        }
    check(0, 2, 8, 8, false);
}

Test(kernels_solve, larger_matrices_are_refused)
{
    const struct plim_array *a = KERNEL_ARRAY(&c, PLIM_F32, 65, 65), *b = KERNEL_ARRAY(&c, PLIM_F32, 65, 3);
    struct plim_op op = {.kind = PLIM_OP_SOLVE_TRIANGULAR, .n_out = 1, .n_in = 2, .out = {b}, .in = {a, b}};
    cr_expect(eq(int, plim_cuda_plan(&c.info, &op, NULL, NULL), PLIM_UNSUPPORTED));
    op.in[0] = b;
    cr_expect(eq(int, plim_cuda_plan(&c.info, &op, NULL, NULL), PLIM_INVALID));
}
