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

TestSuite(kernels_reduce, .init = setup, .fini = finish);

static const enum plim_dtype floats[] = {PLIM_F32, PLIM_BF16, PLIM_F16};
static const int folds[] = {PLIM_BINARY_ADD, PLIM_BINARY_MUL,   PLIM_BINARY_MAX, PLIM_BINARY_MIN,
                            PLIM_BINARY_AND, PLIM_BINARY_HYPOT, PLIM_BINARY_OR};
enum { FOLDS = sizeof folds / sizeof *folds };

static bool is_logical(int fold)
{
    return fold == PLIM_BINARY_AND || fold == PLIM_BINARY_OR;
}

/* The result's shape from the input's. */
static const struct plim_array *result_of(const struct plim_array *in, unsigned dims, bool keepdim,
                                          enum plim_dtype type)
{
    int64_t shape[PLIM_MAX_DIMS];
    int ndim = 0;
    for (int d = 0; d < in->ndim; d++)
        if (!(dims >> d & 1))
            shape[ndim++] = in->shape[d];
        else if (keepdim)
            shape[ndim++] = 1;
    return kernel_case_array(&c, type, ndim, shape);
}

static struct plim_op reduce_op(int fold, const struct plim_array *y, const struct plim_array *x,
                                unsigned dims)
{
    return (struct plim_op){.kind = PLIM_OP_REDUCE,
                            .n_out = 1,
                            .n_in = 1,
                            .out = {y},
                            .in = {x},
                            .binary = (uint8_t)fold,
                            .dims = (uint8_t)dims,
                            .alpha = 1};
}

/* Sums are compared relative to the sum of magnitudes, of which the mean is 1. */
static void check_reduce(int fold, const struct plim_array *y, const struct plim_array *x,
                         unsigned dims, int64_t scratch_bytes)
{
    struct plim_op op = reduce_op(fold, y, x, dims);
    if (scratch_bytes > 0) {
        op.n_scratch = 1;
        op.scratch[0] = kernel_case_scratch(&c, scratch_bytes);
    }
    int64_t folded = plim_array_elements(x) / plim_array_elements(y);
    bool sums = fold == PLIM_BINARY_ADD || fold == PLIM_BINARY_HYPOT;
    bool products = fold == PLIM_BINARY_MUL;
    kernel_case_check(&c, &op,
                      sums       ? 2
                      : products ? 4 + (double)folded
                                 : 0,
                      sums ? (double)folded : 0);
    kernel_case_finish(&c);
}

Test(kernels_reduce, every_fold_of_every_float_over_every_choice_of_dimensions)
{
    int64_t shape[] = {5, 13, 24};
    for (int f = 0; f < FOLDS; f++)
        for (int t = 0; t < 3; t++)
            for (unsigned dims = 0; dims < 8; dims++) {
                const struct plim_array *x = kernel_case_array(&c, floats[t], 3, shape);
                if (folds[f] == PLIM_BINARY_MUL) kernel_case_fill(&c, x, 0.95, 1.05);
                enum plim_dtype type = is_logical(folds[f]) ? PLIM_BOOL : floats[t];
                check_reduce(folds[f], result_of(x, dims, dims % 2, type), x, dims, 0);
            }
}

Test(kernels_reduce, every_fold_of_every_integer_is_exact)
{
    static const enum plim_dtype types[] = {PLIM_I64, PLIM_I32, PLIM_U8, PLIM_BOOL};
    int64_t shape[] = {7, 3, 16};
    for (int f = 0; f < FOLDS; f++)
        for (int t = 0; t < 4; t++)
            for (unsigned dims = 0; dims < 8; dims++) {
                if (folds[f] == PLIM_BINARY_HYPOT) continue;
                const struct plim_array *x = kernel_case_array(&c, types[t], 3, shape);
                if (is_logical(folds[f])) /* rarely all, rarely none */
                    kernel_case_fill(&c, x, folds[f] == PLIM_BINARY_AND ? 0.99 : -0.98, 2);
                enum plim_dtype type = folds[f] == PLIM_BINARY_MAX ? types[t]
                                       : is_logical(folds[f])      ? PLIM_BOOL
                                                                   : PLIM_I64;
                check_reduce(folds[f], result_of(x, dims, false, type), x, dims, 0);
            }
}

Test(kernels_reduce, rows_of_many_lengths)
{
    for (int t = 0; t < 3; t++)
        for (int64_t n = 1; n < 9000; n = n * 2 + n % 3 + 1)
            for (int64_t rows = 1; rows < 40; rows = rows * 5 + 1) {
                const struct plim_array *x = KERNEL_ARRAY(&c, floats[t], rows, n);
                check_reduce(PLIM_BINARY_ADD, result_of(x, 2, true, PLIM_F32), x, 2, 0);
            }
}

Test(kernels_reduce, columns_of_many_widths)
{
    for (int t = 0; t < 3; t++)
        for (int64_t n = 1; n < 1300; n = n * 2 + n % 3 + 1)
            for (int64_t rows = 2; rows < 600; rows = rows * 5 + 1) {
                const struct plim_array *x = KERNEL_ARRAY(&c, floats[t], rows, n);
                check_reduce(PLIM_BINARY_ADD, result_of(x, 1, false, floats[t]), x, 1, 0);
            }
}

Test(kernels_reduce, misaligned_and_permuted_inputs)
{
    static const int orders[][3] = {{0, 1, 2}, {2, 1, 0}, {1, 2, 0}, {0, 2, 1}, {1, 0, 2}};
    int64_t shape[] = {6, 24, 40};
    for (int o = 0; o < 5; o++)
        for (unsigned dims = 1; dims < 8; dims++) {
            const struct plim_array *x =
                kernel_case_permuted(&c, PLIM_BF16, 3, shape, orders[o], o % 2 * 3);
            check_reduce(PLIM_BINARY_ADD, result_of(x, dims, false, PLIM_F32), x, dims, 0);
        }
}

Test(kernels_reduce, repeated_and_gapped_inputs)
{
    int64_t shape[] = {6, 24, 40}, repeated[] = {40, 0, 1}, gapped[] = {3000, 96, 2};
    for (unsigned dims = 1; dims < 8; dims++) {
        const struct plim_array *x = kernel_case_strided(&c, PLIM_F32, 3, shape, repeated, 0);
        check_reduce(PLIM_BINARY_ADD, result_of(x, dims, false, PLIM_F32), x, dims, 0);
        x = kernel_case_strided(&c, PLIM_F32, 3, shape, gapped, 0);
        check_reduce(PLIM_BINARY_MAX, result_of(x, dims, false, PLIM_F32), x, dims, 0);
    }
}

Test(kernels_reduce, a_strided_result_gets_its_elements_only)
{
    int64_t shape[] = {9, 16}, stride[] = {3, 50};
    const struct plim_array *x = KERNEL_ARRAY(&c, PLIM_F32, 9, 33, 16);
    check_reduce(PLIM_BINARY_ADD, kernel_case_strided(&c, PLIM_F32, 2, shape, stride, 1), x, 2, 0);
}

Test(kernels_reduce, alpha_makes_a_mean)
{
    const struct plim_array *x = KERNEL_ARRAY(&c, PLIM_F32, 64, 64);
    struct plim_op op = reduce_op(PLIM_BINARY_ADD, kernel_case_scalar(&c, PLIM_F32), x, 3);
    op.alpha = 1.0 / 4096;
    kernel_case_check(&c, &op, 4, 0.1);
    x = KERNEL_ARRAY(&c, PLIM_I64, 64, 64);
    op = reduce_op(PLIM_BINARY_ADD, KERNEL_ARRAY(&c, PLIM_F32, 64), x, 2);
    op.alpha = 1.0 / 64;
    kernel_case_check(&c, &op, 2, 0);
}

Test(kernels_reduce, a_large_array_is_folded_in_two_passes_within_its_scratch)
{
    static const int64_t scratch[] = {4 * 7, 4096, 1 << 20};
    c.info.multiprocessors = 132;
    for (int f = 0; f < FOLDS; f++)
        for (int s = 0; s < 3; s++) {
            const struct plim_array *x = KERNEL_ARRAY(&c, PLIM_F32, 100003);
            if (folds[f] == PLIM_BINARY_MUL) kernel_case_fill(&c, x, 0.9999, 1.0001);
            enum plim_dtype type = is_logical(folds[f]) ? PLIM_BOOL : PLIM_F32;
            check_reduce(folds[f], kernel_case_scalar(&c, type), x, 1, scratch[s]);
            cr_expect(eq(int, c.launches, 2));
        }
}

Test(kernels_reduce, two_passes_of_integers_and_of_several_outputs)
{
    c.info.multiprocessors = 132;
    const struct plim_array *x = KERNEL_ARRAY(&c, PLIM_I64, 100003);
    check_reduce(PLIM_BINARY_ADD, kernel_case_scalar(&c, PLIM_I64), x, 1, 1000);
    cr_expect(eq(int, c.launches, 2));
    x = KERNEL_ARRAY(&c, PLIM_BF16, 3, 2, 20000);
    check_reduce(PLIM_BINARY_ADD, result_of(x, 5, false, PLIM_BF16), x, 5, 1 << 16);
    cr_expect(eq(int, c.launches, 2));
    x = KERNEL_ARRAY(&c, PLIM_BF16, 3000, 72); /* columns */
    check_reduce(PLIM_BINARY_ADD, result_of(x, 1, false, PLIM_BF16), x, 1, 1 << 16);
    cr_expect(eq(int, c.launches, 2));
    x = KERNEL_ARRAY(&c, PLIM_F32, 3000, 37);
    check_reduce(PLIM_BINARY_HYPOT, result_of(x, 1, false, PLIM_F32), x, 1, 37 * 4 * 3);
    cr_expect(eq(int, c.launches, 2));
}

Test(kernels_reduce, more_rows_and_columns_than_a_grid_takes)
{
    const struct plim_array *x = KERNEL_ARRAY(&c, PLIM_BF16, 40000, 3);
    check_reduce(PLIM_BINARY_ADD, result_of(x, 2, false, PLIM_BF16), x, 2, 0);
    x = KERNEL_ARRAY(&c, PLIM_BF16, 3, 40000);
    check_reduce(PLIM_BINARY_ADD, result_of(x, 1, false, PLIM_BF16), x, 1, 0);
    x = KERNEL_ARRAY(&c, PLIM_U8, 40, 600);
    check_reduce(PLIM_BINARY_ADD, result_of(x, 2, false, PLIM_I64), x, 2, 0);
}

Test(kernels_reduce, nan_wins_a_maximum)
{
    const struct plim_array *x = KERNEL_ARRAY(&c, PLIM_F32, 4, 300);
    kernel_case_set(x, 7, NAN);
    kernel_case_set(x, 899, NAN);
    check_reduce(PLIM_BINARY_MAX, result_of(x, 2, false, PLIM_F32), x, 2, 0);
}

Test(kernels_reduce, later_parts_launch_nothing)
{
    const struct plim_array *x = KERNEL_ARRAY(&c, PLIM_F32, 4, 300);
    struct plim_op op = reduce_op(PLIM_BINARY_ADD, result_of(x, 2, false, PLIM_F32), x, 2);
    op.part = 1;
    kernel_case_check(&c, &op, 0, 0);
    cr_expect(eq(int, c.launches, 0));
}

Test(kernels_reduce, the_sum_of_nothing_is_zero)
{
    const struct plim_array *x = KERNEL_ARRAY(&c, PLIM_F32, 4, 0);
    struct plim_op op = reduce_op(PLIM_BINARY_ADD, KERNEL_ARRAY(&c, PLIM_F32, 4), x, 2);
    kernel_case_check(&c, &op, 0, 0);
    cr_expect(eq(int, c.launches, 1));
}

/* --- running sums ----------------------------------------------------------------------------- */

static void check_cumsum(const struct plim_array *y, const struct plim_array *x)
{
    struct plim_op op = {.kind = PLIM_OP_CUMSUM, .n_out = 1, .n_in = 1, .out = {y}, .in = {x}};
    kernel_case_check(&c, &op, 4, (double)x->shape[x->ndim - 1]);
    kernel_case_finish(&c);
}

Test(kernels_reduce, cumsum_of_many_lengths_and_types)
{
    static const enum plim_dtype types[] = {PLIM_F32, PLIM_BF16, PLIM_I64, PLIM_I32, PLIM_BOOL};
    for (int t = 0; t < 5; t++)
        for (int64_t n = 1; n < 5000; n = n * 3 + 2)
            for (int64_t rows = 1; rows < 12; rows = rows * 3 + 2) {
                enum plim_dtype result = types[t] == PLIM_BOOL ? PLIM_I64 : types[t];
                check_cumsum(KERNEL_ARRAY(&c, result, rows, n),
                             KERNEL_ARRAY(&c, types[t], rows, n));
            }
}

Test(kernels_reduce, cumsum_of_more_rows_than_a_grid_has_and_of_strided_ones)
{
    check_cumsum(KERNEL_ARRAY(&c, PLIM_I64, 50, 3), KERNEL_ARRAY(&c, PLIM_I64, 50, 3));
    int64_t shape[] = {5, 3, 70};
    check_cumsum(kernel_case_array(&c, PLIM_F32, 3, shape),
                 kernel_case_permuted(&c, PLIM_F32, 3, shape, (int[]){2, 0, 1}, 1));
}
