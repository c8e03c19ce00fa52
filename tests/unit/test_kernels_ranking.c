#include "support/kernel_case.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <math.h>

static struct kernel_case c;

static void setup(void)
{
    kernel_case_init(&c, 13);
}

static void finish(void)
{
    kernel_case_finish(&c);
}

TestSuite(kernels_ranking, .init = setup, .fini = finish);

static const enum plim_dtype types[] = {PLIM_F32, PLIM_BF16, PLIM_F16};

/* --- the largest ------------------------------------------------------------------------------ */

static void check_argmax(const struct plim_array *x, int64_t rows)
{
    struct plim_op op = {.kind = PLIM_OP_ARGMAX, .n_out = 1, .n_in = 1};
    op.out[0] = KERNEL_ARRAY(&c, PLIM_I64, rows);
    op.in[0] = x;
    kernel_case_check(&c, &op, 0, 0);
    kernel_case_finish(&c);
}

/* Values of bf16 come more than once. */
Test(kernels_ranking, where_the_largest_stands)
{
    static const int64_t widths[] = {1, 2, 7, 64, 1000, 5000, 20000};
    for (int t = 0; t < 3; t++)
        for (int w = 0; w < 7; w++) check_argmax(KERNEL_ARRAY(&c, types[t], 5, widths[w]), 5);
    check_argmax(KERNEL_ARRAY(&c, PLIM_BF16, 3000, 9), 3000);
    check_argmax(kernel_case_permuted(&c, PLIM_BF16, 2, (int64_t[]){40, 90}, (int[]){1, 0}, 0), 40);
}

Test(kernels_ranking, of_equal_ones_it_is_the_first_and_nan_is_the_largest)
{
    const struct plim_array *x = KERNEL_ARRAY(&c, PLIM_F32, 3, 3000);
    kernel_case_fill(&c, x, -INFINITY, -INFINITY);
    for (int64_t i = 0; i < 9000; i++) kernel_case_set(x, i, i < 3000 ? -INFINITY : 1);
    kernel_case_set(x, 6000 + 2000, NAN);
    kernel_case_set(x, 6000 + 2500, NAN);
    check_argmax(x, 3);
}

Test(kernels_ranking, whole_numbers_have_a_largest)
{
    const struct plim_array *x = KERNEL_ARRAY(&c, PLIM_I32, 3, 2000);
    for (int64_t i = 0; i < 6000; i++) kernel_case_set(x, i, (double)(i % 2000 % 1999));
    kernel_case_set(x, 2000 + 700, 1 << 23);
    kernel_case_set(x, 4000 + 900, (1 << 23) + 1);
    kernel_case_set(x, 4000 + 901, 1 << 23);
    check_argmax(x, 3);
}

/* --- the largest of a row --------------------------------------------------------------------- */

static void check_top_k(const struct plim_array *x, int64_t taken)
{
    struct plim_op op = {.kind = PLIM_OP_TOP_K, .n_out = 2, .n_in = 1};
    op.out[0] = KERNEL_ARRAY(&c, (enum plim_dtype)x->dtype, x->shape[0], taken);
    op.out[1] = KERNEL_ARRAY(&c, PLIM_I64, x->shape[0], taken);
    op.in[0] = x;
    kernel_case_check(&c, &op, 0, 0);
    kernel_case_finish(&c);
}

/* Values of bf16 come more than once. */
Test(kernels_ranking, the_largest_of_a_row_in_their_order)
{
    for (int t = 0; t < 3; t++) {
        check_top_k(KERNEL_ARRAY(&c, types[t], 7, 1), 1);
        check_top_k(KERNEL_ARRAY(&c, types[t], 33, 8), 2);
        check_top_k(KERNEL_ARRAY(&c, types[t], 10, 128), 8);
        check_top_k(KERNEL_ARRAY(&c, types[t], 5, 40), 40);
    }
    check_top_k(KERNEL_ARRAY(&c, PLIM_BF16, 900, 60), 6);
    check_top_k(kernel_case_permuted(&c, PLIM_BF16, 2, (int64_t[]){40, 90}, (int[]){1, 0}, 0), 3);
    const struct plim_array *equal = KERNEL_ARRAY(&c, PLIM_F32, 3, 70);
    for (int64_t i = 0; i < 210; i++) kernel_case_set(equal, i, i < 70 ? -INFINITY : i < 140 ? INFINITY : 0.25);
    check_top_k(equal, 4);
}

/* --- order ------------------------------------------------------------------------------------ */

static void check_sort(enum plim_dtype type, int64_t count, double values)
{
    struct plim_op op = {.kind = PLIM_OP_SORT, .n_out = 2, .n_in = 1};
    op.out[0] = KERNEL_ARRAY(&c, type, count);
    op.out[1] = KERNEL_ARRAY(&c, PLIM_I64, count);
    op.in[0] = KERNEL_ARRAY(&c, type, count);
    kernel_case_fill(&c, op.in[0], type == PLIM_U8 ? 0 : -values, values);
    kernel_case_check(&c, &op, 0, 0);
    kernel_case_finish(&c);
}

Test(kernels_ranking, sorted_with_equal_ones_in_their_order)
{
    static const int64_t counts[] = {1, 2, 5, 1000, 1024, 1025, 2048, 3000, 9001};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        check_sort(PLIM_I64, counts[i], 4);
        check_sort(PLIM_I32, counts[i], 1e6);
    }
    check_sort(PLIM_U8, 1500, 200);
}

/* Both zeros are equal, and NaN is the last. */
Test(kernels_ranking, numbers_of_fp32_sorted)
{
    static const double odd[] = {NAN, -INFINITY, INFINITY, 0, -0.0, 1e-42, -1e-42, 0, NAN, -0.0};
    for (int64_t count = 1; count < 5000; count = count * 3 + 5) check_sort(PLIM_F32, count, 1000);
    struct plim_op op = {.kind = PLIM_OP_SORT, .n_out = 2, .n_in = 1};
    op.out[0] = KERNEL_ARRAY(&c, PLIM_F32, 1500);
    op.out[1] = KERNEL_ARRAY(&c, PLIM_I64, 1500);
    op.in[0] = KERNEL_ARRAY(&c, PLIM_F32, 1500);
    for (int64_t i = 0; i < 1500; i++) kernel_case_set(op.in[0], i, i % 7 ? (double)(i % 5) - 2 : odd[i / 7 % 10]);
    kernel_case_check(&c, &op, 0, 0);
}

static void check_histogram(enum plim_dtype type, int64_t count, int64_t bins)
{
    struct plim_op op = {.kind = PLIM_OP_HISTOGRAM, .n_out = 1, .n_in = 1};
    op.out[0] = KERNEL_ARRAY(&c, PLIM_I32, bins);
    op.in[0] = KERNEL_ARRAY(&c, type, count);
    kernel_case_fill(&c, op.in[0], -2, (double)bins + 2); /* some are in no bin */
    kernel_case_check(&c, &op, 0, 0);
    kernel_case_finish(&c);
}

Test(kernels_ranking, how_many_there_are_of_each)
{
    check_histogram(PLIM_I64, 1, 1);
    check_histogram(PLIM_I64, 700, 8);
    check_histogram(PLIM_I32, 3000, 60);
    check_histogram(PLIM_I64, 100, 700);
}

Test(kernels_ranking, sums_by_index)
{
    static const struct {
        int64_t elements, bins;
        enum plim_dtype type;
    } cases[] = {{0, 4, PLIM_F32}, {5, 1, PLIM_F32}, {5000, 8, PLIM_F32}, {300, 129, PLIM_BF16}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct plim_op op = {.kind = PLIM_OP_SCATTER_ADD, .n_out = 1, .n_in = 2};
        const struct plim_array *indices = KERNEL_ARRAY(&c, PLIM_I64, cases[i].elements);
        kernel_case_fill(&c, indices, 0, (double)cases[i].bins);
        op.out[0] = KERNEL_ARRAY(&c, cases[i].type, cases[i].bins);
        op.in[0] = KERNEL_ARRAY(&c, cases[i].type, cases[i].elements);
        op.in[1] = indices;
        kernel_case_check(&c, &op, cases[i].type == PLIM_F32 ? 256 : 2, 1);
        kernel_case_finish(&c);
    }
}
