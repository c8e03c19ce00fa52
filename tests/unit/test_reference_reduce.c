#include "devices/host/reference.h"
#include "support/arrays.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <math.h>

static enum plim_status reduce(enum plim_binary fold, unsigned dims, double alpha,
                               const struct plim_array *y, const struct plim_array *x)
{
    return plim_reference_run(&(struct plim_op){.kind = PLIM_OP_REDUCE,
                                                .binary = fold,
                                                .dims = (uint8_t)dims,
                                                .alpha = alpha,
                                                .n_out = 1,
                                                .n_in = 1,
                                                .out = {y},
                                                .in = {x}});
}

Test(reference_reduce, sums_over_any_dimensions)
{
    struct plim_array x = ARRAY(PLIM_F32, 3, 4, 5);
    array_scatter(&x, 1, -1, 1);
    for (unsigned dims = 1; dims < 8; dims++) {
        int64_t shape[3], kept = 0, extent[3] = {3, 4, 5};
        for (int d = 0; d < 3; d++)
            if (!(dims >> d & 1)) shape[kept++] = extent[d];
        struct plim_array y = array_new(PLIM_F32, (int)kept, shape);
        double expected[60] = {0};
        for (int i = 0; i < 60; i++) {
            int index[3] = {i / 20, i / 5 % 4, i % 5}, at = 0;
            for (int d = 0; d < 3; d++)
                if (!(dims >> d & 1)) at = at * (int)extent[d] + index[d];
            expected[at] += array_at(&x, i) / 2;
        }
        cr_assert(eq(int, reduce(PLIM_BINARY_ADD, dims, 0.5, &y, &x), PLIM_OK));
        expect_values(&y, expected, (size_t)plim_array_elements(&y), 1e-6);
    }
}

Test(reference_reduce, a_kept_dimension_has_an_extent_of_one)
{
    struct plim_array x = array_transposed(ARRAY(PLIM_BF16, 3, 2), 0, 1), y = ARRAY(PLIM_F32, 2, 1);
    VALUES(&x, 1, 2, 3, 4, 5, 6);
    cr_assert(eq(int, reduce(PLIM_BINARY_ADD, 2, 1, &y, &x), PLIM_OK));
    EXPECT_VALUES(&y, 0, 6, 15);
}

Test(reference_reduce, every_fold)
{
    static const struct {
        enum plim_binary fold;
        double y;
    } folds[] = {{PLIM_BINARY_ADD, 4},  {PLIM_BINARY_MUL, -24},           {PLIM_BINARY_MAX, 4},
                 {PLIM_BINARY_MIN, -3}, {PLIM_BINARY_HYPOT, 5.477225575}, {PLIM_BINARY_AND, 1},
                 {PLIM_BINARY_OR, 1}};
    struct plim_array x = ARRAY(PLIM_F32, 4), n = ARRAY(PLIM_I32, 4), y = SCALAR(PLIM_F32),
                      k = SCALAR(PLIM_I64);
    VALUES(&x, 1, 2, -3, 4);
    VALUES(&n, 1, 2, -3, 4);
    for (size_t i = 0; i < sizeof(folds) / sizeof(folds[0]); i++) {
        double expected = folds[i].y;
        cr_assert(eq(int, reduce(folds[i].fold, 1, 1, &y, &x), PLIM_OK));
        EXPECT_VALUES(&y, 1e-7, expected);
        cr_assert(eq(int, reduce(folds[i].fold, 1, 1, &k, &n), PLIM_OK));
        EXPECT_VALUES(&k, 0, trunc(expected));
    }
    cr_expect(eq(int, reduce(PLIM_BINARY_SUB, 1, 1, &y, &x), PLIM_INVALID));
    cr_expect(eq(int, reduce(PLIM_BINARY_COUNT, 1, 1, &y, &x), PLIM_INVALID));
}

Test(reference_reduce, the_largest_of_negatives_and_the_smallest_of_positives)
{
    struct plim_array x = ARRAY(PLIM_F32, 2, 2), n = ARRAY(PLIM_I64, 2, 2), y = ARRAY(PLIM_F32, 2),
                      k = ARRAY(PLIM_I64, 2);
    VALUES(&x, -2, -3, 2, 3);
    VALUES(&n, -2, -3, 2, 3);
    for (int exact = 0; exact < 2; exact++) {
        const struct plim_array *from = exact ? &n : &x, *to = exact ? &k : &y;
        cr_assert(eq(int, reduce(PLIM_BINARY_MAX, 2, 1, to, from), PLIM_OK));
        EXPECT_VALUES(to, 0, -2, 3);
        cr_assert(eq(int, reduce(PLIM_BINARY_MIN, 2, 1, to, from), PLIM_OK));
        EXPECT_VALUES(to, 0, -3, 2);
    }
}

Test(reference_reduce, of_nothing)
{
    struct plim_array x = ARRAY(PLIM_F32, 2, 0), y = ARRAY(PLIM_F32, 2), all = ARRAY(PLIM_BOOL, 2);
    cr_assert(eq(int, reduce(PLIM_BINARY_ADD, 2, 1, &y, &x), PLIM_OK));
    EXPECT_VALUES(&y, 0, 0, 0);
    cr_assert(eq(int, reduce(PLIM_BINARY_AND, 2, 1, &all, &x), PLIM_OK));
    EXPECT_VALUES(&all, 0, 1, 1);
    cr_expect(eq(int, reduce(PLIM_BINARY_MAX, 2, 1, &y, &x), PLIM_INVALID));
}

Test(reference_reduce, nan_is_not_lost)
{
    struct plim_array x = ARRAY(PLIM_F32, 3), y = SCALAR(PLIM_F32);
    VALUES(&x, 1, NAN, 2);
    for (int fold = 0; fold <= PLIM_BINARY_HYPOT; fold++) {
        if (fold == PLIM_BINARY_SUB || fold == PLIM_BINARY_DIV || fold == PLIM_BINARY_POW ||
            fold == PLIM_BINARY_LERP || fold == PLIM_BINARY_RSUB)
            continue;
        cr_assert(eq(int, reduce((enum plim_binary)fold, 1, 1, &y, &x), PLIM_OK));
        cr_expect(isnan(array_at(&y, 0)), "fold %d", fold);
    }
}

Test(reference_reduce, the_norm_of_large_numbers_is_finite)
{
    struct plim_array x = ARRAY(PLIM_BF16, 1000), y = SCALAR(PLIM_F32);
    array_fill(&x, 0x1p100);
    cr_assert(eq(int, reduce(PLIM_BINARY_HYPOT, 1, 1, &y, &x), PLIM_OK));
    EXPECT_VALUES(&y, 1e-6, sqrt(1000) * 0x1p100);
}

Test(reference_reduce, int64_stays_exact)
{
    struct plim_array x = ARRAY(PLIM_I64, 300), y = SCALAR(PLIM_I64);
    for (int i = 0; i < 300; i++) array_put_integer(&x, i, (INT64_C(1) << 54) + 1);
    cr_assert(eq(int, reduce(PLIM_BINARY_ADD, 1, 1, &y, &x), PLIM_OK));
    cr_expect(eq(i64, array_integer_at(&y, 0), 300 * ((INT64_C(1) << 54) + 1)));
}

Test(reference_reduce, later_parts_have_nothing_to_do)
{
    struct plim_array x = ARRAY(PLIM_F32, 4), y = SCALAR(PLIM_F32);
    array_fill(&x, 1);
    array_put(&y, 0, 9);
    run_op(&(struct plim_op){.kind = PLIM_OP_REDUCE,
                             .dims = 1,
                             .part = 1,
                             .alpha = 1,
                             .n_out = 1,
                             .n_in = 1,
                             .out = {&y},
                             .in = {&x}});
    EXPECT_VALUES(&y, 0, 9);
}

Test(reference_reduce, refuses_results_of_another_size)
{
    struct plim_array x = ARRAY(PLIM_F32, 4, 2), y = ARRAY(PLIM_F32, 3);
    cr_expect(eq(int, reduce(PLIM_BINARY_ADD, 1, 1, &y, &x), PLIM_INVALID));
    cr_expect(eq(int, reduce(PLIM_BINARY_ADD, 4, 1, &x, &x), PLIM_INVALID));
}

Test(reference_cumsum, runs_along_the_last_dimension)
{
    struct plim_array x = ARRAY(PLIM_F32, 2, 3), y = ARRAY(PLIM_F16, 2, 3);
    VALUES(&x, 1, 2, 3, -1, INFINITY, 1);
    run_op(
        &(struct plim_op){.kind = PLIM_OP_CUMSUM, .n_out = 1, .n_in = 1, .out = {&y}, .in = {&x}});
    EXPECT_VALUES(&y, 0, 1, 3, 6, -1, INFINITY, INFINITY);
}

Test(reference_cumsum, int64_stays_exact_over_long_rows)
{
    struct plim_array x = ARRAY(PLIM_I64, 2, 600), y = ARRAY(PLIM_I64, 2, 600);
    for (int i = 0; i < 1200; i++) array_put_integer(&x, i, (INT64_C(1) << 53) + 1);
    run_op(
        &(struct plim_op){.kind = PLIM_OP_CUMSUM, .n_out = 1, .n_in = 1, .out = {&y}, .in = {&x}});
    for (int i = 0; i < 1200; i++)
        cr_assert(eq(i64, array_integer_at(&y, i), (i % 600 + 1) * ((INT64_C(1) << 53) + 1)));
}
