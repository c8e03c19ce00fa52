#include "support/kernel_case.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <math.h>

static struct kernel_case c;

static void setup(void)
{
    kernel_case_init(&c, 17);
}

static void finish(void)
{
    kernel_case_finish(&c);
}

TestSuite(kernels_statistics, .init = setup, .fini = finish);

static const enum plim_dtype types[] = {PLIM_F32, PLIM_BF16, PLIM_F16};

/* 300 rows of 257 columns are more than the grid of the test's GPU; of 9000, 600 threads have something to do. */
static const int64_t shapes[][2] = {{1, 1}, {7, 1}, {5, 7}, {9, 65}, {300, 257}, {2, 1031}, {3, 2048}, {2, 9000}};
enum { SHAPES = sizeof shapes / sizeof *shapes };
enum { OUTS = 6, START = 40 };

/* Some are in the tile, some before it and some after it. */
static const struct plim_array *targets(int64_t rows, int64_t columns)
{
    const struct plim_array *a = KERNEL_ARRAY(&c, rows % 2 ? PLIM_I64 : PLIM_I32, rows);
    for (int64_t i = 0; i < rows; i++) kernel_case_set(a, i, (double)(START + i * 13 % (columns + 4) - 2));
    return a;
}

/* What is kept of each row: sums are positive, and the first tile finds minus infinities and zeros. */
static void make_kept(const struct plim_array *out[OUTS], int64_t rows, bool is_first)
{
    for (int i = 0; i < OUTS; i++) {
        bool is_maximum = i == 0 || i == 5;
        out[i] = KERNEL_ARRAY(&c, PLIM_F32, rows);
        kernel_case_fill(&c, out[i], 1, 3);
        for (int64_t row = 0; row < rows && is_first; row++) kernel_case_set(out[i], row, is_maximum ? -INFINITY : 0);
    }
}

static void check(const struct plim_array *tile, bool is_first, double scale, double cap, unsigned wanted)
{
    int64_t rows = tile->shape[0], columns = tile->shape[1];
    const struct plim_array *out[OUTS];
    make_kept(out, rows, is_first);
    struct plim_op op = {.kind = PLIM_OP_ROW_STATISTICS,
                         .n_out = OUTS,
                         .n_in = 2,
                         .alpha = scale,
                         .beta = cap,
                         .start = START,
                         .in = {tile, targets(rows, columns)}};
    for (int i = 0; i < OUTS; i++) op.out[i] = i < 3 || wanted >> i & 1 ? out[i] : NULL;
    kernel_case_check(&c, &op, 16, 4);
    kernel_case_finish(&c);
}

Test(kernels_statistics, of_every_type_and_shape)
{
    for (int t = 0; t < 3; t++)
        for (int i = 0; i < SHAPES; i++)
            for (int is_first = 0; is_first < 2; is_first++)
                check(KERNEL_ARRAY(&c, types[t], shapes[i][0], shapes[i][1]), is_first, 1, 0, ~0u);
}

Test(kernels_statistics, what_is_not_wanted_may_be_missing)
{
    for (unsigned wanted = 0; wanted < 8; wanted++)
        check(KERNEL_ARRAY(&c, PLIM_BF16, 5, 70), true, 1, 0, wanted << 3);
}

Test(kernels_statistics, of_scaled_and_capped_logits)
{
    check(KERNEL_ARRAY(&c, PLIM_F32, 6, 70), true, 0.25, 0, ~0u);
    check(KERNEL_ARRAY(&c, PLIM_F32, 6, 70), true, 4, 3, ~0u);
    check(KERNEL_ARRAY(&c, PLIM_BF16, 6, 70), false, -1, 0.5, ~0u);
}

/* A part of a wider buffer, like the last tile of a vocabulary; and columns that are not adjacent */
Test(kernels_statistics, of_strided_tiles)
{
    const int64_t shape[] = {7, 70};
    check(kernel_case_strided(&c, PLIM_BF16, 2, shape, (int64_t[]){128, 1}, 0), true, 1, 0, ~0u);
    check(kernel_case_strided(&c, PLIM_F16, 2, shape, (int64_t[]){129, 1}, 3), true, 1, 0, ~0u);
    check(kernel_case_strided(&c, PLIM_F32, 2, shape, (int64_t[]){1, 11}, 0), false, 1, 0, ~0u);
}

Test(kernels_statistics, of_no_rows_and_of_no_classes)
{
    check(KERNEL_ARRAY(&c, PLIM_F32, 0, 9), true, 1, 0, ~0u);
    check(KERNEL_ARRAY(&c, PLIM_F32, 3, 0), false, 1, 0, ~0u);
}

/* Classes that no answer may have; the sums stay numbers. */
Test(kernels_statistics, minus_infinity_has_no_share)
{
    const struct plim_array *tile = KERNEL_ARRAY(&c, PLIM_F32, 3, 50);
    for (int64_t i = 0; i < 150; i++)
        if (i % 50 > 20) kernel_case_set(tile, i, -INFINITY);
    check(tile, true, 1, 0, 1u << 5);
}

/* --- the gradient ----------------------------------------------------------------------------- */

static const struct plim_array *of_rows(int64_t rows, double low, double high)
{
    const struct plim_array *a = KERNEL_ARRAY(&c, PLIM_F32, rows);
    kernel_case_fill(&c, a, low, high);
    return a;
}

static void check_backward(const struct plim_array *dtile, const struct plim_array *tile, double scale, double cap,
                           bool has_log_prob, bool has_entropy)
{
    int64_t rows = tile->shape[0];
    struct plim_op op = {.kind = PLIM_OP_ROW_STATISTICS_BACKWARD,
                         .n_out = 1,
                         .n_in = 6,
                         .alpha = scale,
                         .beta = cap,
                         .start = START,
                         .out = {dtile},
                         .in = {tile, targets(rows, tile->shape[1]), of_rows(rows, 3, 9)}};
    if (has_log_prob) op.in[3] = of_rows(rows, -2, 2);
    if (has_entropy) op.in[4] = of_rows(rows, -2, 2), op.in[5] = of_rows(rows, 1, 5);
    kernel_case_check(&c, &op, dtile->dtype == PLIM_F32 ? 64 : 1, 1);
    kernel_case_finish(&c);
}

Test(kernels_statistics, gradient_of_every_type_and_shape_in_place)
{
    for (int t = 0; t < 3; t++)
        for (int i = 0; i < SHAPES; i++) {
            const struct plim_array *tile = KERNEL_ARRAY(&c, types[t], shapes[i][0], shapes[i][1]);
            check_backward(tile, tile, 1, 0, true, i % 2);
        }
}

Test(kernels_statistics, gradient_of_scaled_and_capped_logits)
{
    for (int i = 0; i < 4; i++)
        check_backward(KERNEL_ARRAY(&c, PLIM_F32, 6, 70), KERNEL_ARRAY(&c, PLIM_BF16, 6, 70), i ? 2.0 : -0.5,
                       i ? i : 0, i != 2, i >= 2);
}

Test(kernels_statistics, gradient_of_strided_tiles)
{
    const int64_t shape[] = {7, 70};
    const struct plim_array *tile = kernel_case_strided(&c, PLIM_BF16, 2, shape, (int64_t[]){129, 1}, 3);
    check_backward(tile, tile, 1, 0, true, true);
    check_backward(KERNEL_ARRAY(&c, PLIM_F32, 0, 9), KERNEL_ARRAY(&c, PLIM_F32, 0, 9), 1, 0, true, false);
}

/* The gradient of a sum is one number for all. */
Test(kernels_statistics, gradient_of_a_number_that_repeats)
{
    const struct plim_array *tile = KERNEL_ARRAY(&c, PLIM_F32, 7, 33);
    const int64_t shape[] = {7}, repeated[] = {0};
    struct plim_op op = {.kind = PLIM_OP_ROW_STATISTICS_BACKWARD,
                         .n_out = 1,
                         .n_in = 4,
                         .alpha = 1,
                         .start = START,
                         .out = {tile},
                         .in = {tile, targets(7, 33), of_rows(7, 3, 9),
                                kernel_case_strided(&c, PLIM_BF16, 1, shape, repeated, 0)}};
    kernel_case_check(&c, &op, 64, 1);
}

Test(kernels_statistics, what_does_not_fit_is_refused)
{
    const struct plim_array *tile = KERNEL_ARRAY(&c, PLIM_F32, 4, 9), *rows = of_rows(4, 0, 1);
    const struct plim_array *out[OUTS];
    make_kept(out, 4, true);
    struct plim_op op = {.kind = PLIM_OP_ROW_STATISTICS,
                         .n_out = 3,
                         .n_in = 2,
                         .out = {out[0], out[1], out[2]},
                         .in = {tile, targets(5, 9)}};
    cr_expect(eq(int, plim_cuda_plan(&c.info, &op, NULL, NULL), PLIM_INVALID));
    op.in[1] = rows;
    cr_expect(eq(int, plim_cuda_plan(&c.info, &op, NULL, NULL), PLIM_UNSUPPORTED));
    op.in[1] = targets(4, 9);
    op.out[1] = KERNEL_ARRAY(&c, PLIM_BF16, 4);
    cr_expect(eq(int, plim_cuda_plan(&c.info, &op, NULL, NULL), PLIM_UNSUPPORTED));
    op = (struct plim_op){.kind = PLIM_OP_ROW_STATISTICS_BACKWARD,
                          .n_out = 1,
                          .n_in = 5,
                          .out = {tile},
                          .in = {tile, targets(4, 9), rows, rows, rows}};
    cr_expect(eq(int, plim_cuda_plan(&c.info, &op, NULL, NULL), PLIM_INVALID), "an entropy's gradient without it");
}
