#include "support/kernel_case.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <math.h>

static struct kernel_case c;

static void setup(void)
{
    kernel_case_init(&c, 23);
}

static void finish(void)
{
    kernel_case_finish(&c);
}

TestSuite(kernels_torchao, .init = setup, .fini = finish);

static const enum plim_dtype types[] = {PLIM_F32, PLIM_BF16, PLIM_F16};
static const struct plim_adam adam = {
    .rate = 0.05, .beta1 = 0.9, .beta2 = 0.99, .epsilon = 1e-6, .weight_decay = 0.1, .step = 3};

/* Elements, and those of a scale. 80000 are more than the grid of the test's GPU has threads. */
static const int64_t sizes[][2] = {{256, 256}, {5120, 256}, {128, 128}, {4992, 128}, {80128, 64}, {96, 6}};
enum { SIZES = sizeof sizes / sizeof *sizes };

/* Ascending, in uneven steps: from -1 to 1, or from above 0 to 1 */
static const struct plim_array *book(int count, bool is_signed)
{
    const struct plim_array *a = KERNEL_ARRAY(&c, PLIM_F32, count);
    for (int i = 0; i < count; i++) {
        double x = is_signed ? (2.0 * i + 2 - count) / count : (i + 1.0) / count;
        kernel_case_set(a, i, is_signed ? x * fabs(x) : x * x);
    }
    return a;
}

/* What is kept of both moments, from in[first] on: two of codes and of scales */
static void make_kept(struct plim_op *op, int first, int64_t elements, int bits)
{
    for (int k = 0; k < 2; k++) {
        op->in[first + k] = KERNEL_ARRAY(&c, PLIM_U8, elements * bits / 8);
        op->in[first + 2 + k] = KERNEL_ARRAY(&c, PLIM_F32, elements / op->block);
        kernel_case_fill(&c, op->in[first + k], 0, 256);
        kernel_case_fill(&c, op->in[first + 2 + k], 0.5, 1.5);
    }
}

static struct plim_op make(enum plim_foreach which, int outs, int ins, int64_t block)
{
    return (struct plim_op){.kind = PLIM_OP_OPTIMIZER,
                            .foreach = (uint8_t)which,
                            .adam = &adam,
                            .block = block,
                            .n_out = (uint8_t)outs,
                            .n_in = (uint8_t)ins};
}

static void check_scales(enum plim_dtype dtype, int64_t elements, int64_t block, int bits, int64_t parts)
{
    struct plim_op op = make(PLIM_TORCHAO_SCALES, bits == 8 ? 4 : 2, 7, block);
    op.in[0] = KERNEL_ARRAY(&c, dtype, elements);
    make_kept(&op, 1, elements, bits);
    for (int k = 0; k < 2; k++) {
        op.in[5 + k] = book(1 << bits, k == 0);
        op.out[k] = KERNEL_ARRAY(&c, PLIM_F32, elements / block * parts);
        if (bits == 8) op.out[2 + k] = KERNEL_ARRAY(&c, PLIM_F32, elements);
    }
    kernel_case_check(&c, &op, 8, 1);
    kernel_case_finish(&c);
}

Test(kernels_torchao, scales_of_every_type_and_size)
{
    for (int t = 0; t < 3; t++)
        for (int i = 0; i < SIZES; i++) {
            check_scales(types[t], sizes[i][0], sizes[i][1], 8, 1);
            check_scales(types[t], sizes[i][0], sizes[i][1], 4, 1);
            check_scales(types[t], sizes[i][0], sizes[i][1], 4, 2);
        }
}

/* Moments that are nothing have a scale all the same. */
Test(kernels_torchao, scales_of_zeros)
{
    struct plim_op op = make(PLIM_TORCHAO_SCALES, 4, 7, 64);
    op.in[0] = KERNEL_ARRAY(&c, PLIM_F32, 128);
    kernel_case_fill(&c, op.in[0], 0, 0);
    make_kept(&op, 1, 128, 8);
    for (int k = 0; k < 2; k++) {
        kernel_case_fill(&c, op.in[3 + k], 0, 0);
        op.in[5 + k] = book(256, k == 0);
        op.out[k] = KERNEL_ARRAY(&c, PLIM_F32, 2);
        op.out[2 + k] = KERNEL_ARRAY(&c, PLIM_F32, 128);
    }
    kernel_case_run(&c, &op);
    for (int k = 0; k < 2; k++) {
        cr_expect(fabs(kernel_case_get(op.out[k], 1) - 1e-12) < 1e-18);
        for (int i = 0; i < 128; i++) cr_expect(eq(dbl, kernel_case_get(op.out[2 + k], i), 0));
    }
}

static void check_step(enum plim_dtype dtype, int64_t elements, int64_t block, int bits)
{
    bool eight = bits == 8;
    struct plim_op op = make(eight ? PLIM_TORCHAO_STEP_8BIT : PLIM_TORCHAO_STEP_4BIT, eight ? 3 : 5, 10, block);
    op.out[0] = op.in[0] = KERNEL_ARRAY(&c, dtype, elements);
    op.in[1] = KERNEL_ARRAY(&c, dtype, elements);
    make_kept(&op, 2, elements, bits);
    for (int k = 0; k < 2; k++) {
        op.in[8 + k] = book(1 << bits, k == 0);
        op.in[6 + k] = KERNEL_ARRAY(&c, PLIM_F32, eight ? elements : elements / block);
        kernel_case_fill(&c, op.in[6 + k], eight ? -k : 1, eight ? 1.1 : 3);
        if (eight) op.out[1 + k] = op.in[2 + k];
        else op.out[1 + k] = KERNEL_ARRAY(&c, PLIM_F32, elements), op.out[3 + k] = KERNEL_ARRAY(&c, PLIM_I64, elements);
    }
    kernel_case_check(&c, &op, dtype == PLIM_F32 ? 16 : 4, 1); /* moments are fp32 in any case */
    kernel_case_finish(&c);
}

Test(kernels_torchao, steps_of_every_type_and_size)
{
    for (int t = 0; t < 3; t++)
        for (int i = 0; i < SIZES; i++) {
            check_step(types[t], sizes[i][0], sizes[i][1], 8);
            check_step(types[t], sizes[i][0], sizes[i][1], 4);
        }
}

/* Some are exactly in the middle of two numbers: the upper one has them. */
Test(kernels_torchao, two_codes_are_a_byte)
{
    for (int64_t bytes = 1; bytes < 50000; bytes = bytes * 7 + 1) {
        struct plim_op op = make(PLIM_TORCHAO_CODES, 1, 3, 0);
        op.adam = NULL;
        op.out[0] = KERNEL_ARRAY(&c, PLIM_U8, bytes);
        op.in[0] = KERNEL_ARRAY(&c, PLIM_F32, 2 * bytes);
        op.in[1] = KERNEL_ARRAY(&c, PLIM_I64, 2 * bytes);
        op.in[2] = KERNEL_ARRAY(&c, PLIM_F32, 16);
        for (int i = 0; i < 16; i++) kernel_case_set(op.in[2], i, i / 16.0);
        for (int64_t i = 0; i < 2 * bytes; i++) {
            kernel_case_set(op.in[0], i, (double)(i * 5 % 64) / 64);
            kernel_case_set(op.in[1], i, (double)(i * 5 % 64 / 4));
        }
        kernel_case_check(&c, &op, 0, 0);
        kernel_case_finish(&c);
    }
}

Test(kernels_torchao, plain_moments_decay_first)
{
    for (int t = 0; t < 3; t++) {
        struct plim_op op = make(PLIM_TORCHAO_ADAMW, 3, 1, 0);
        for (int i = 0; i < 3; i++) op.out[i] = KERNEL_ARRAY(&c, types[t], 37, 29);
        op.in[0] = KERNEL_ARRAY(&c, types[t], 37, 29);
        kernel_case_fill(&c, op.out[2], 0, 1);
        kernel_case_check(&c, &op, types[t] == PLIM_F32 ? 8 : 1, 1);
        kernel_case_finish(&c);
    }
}

Test(kernels_torchao, what_does_not_fit_is_refused)
{
    struct plim_op op = make(PLIM_TORCHAO_SCALES, 2, 7, 64);
    op.in[0] = KERNEL_ARRAY(&c, PLIM_F32, 128);
    make_kept(&op, 1, 128, 4);
    for (int k = 0; k < 2; k++) op.in[5 + k] = book(16, k == 0), op.out[k] = KERNEL_ARRAY(&c, PLIM_F32, 2);
    op.block = 48;
    cr_expect(eq(int, plim_cuda_plan(&c.info, &op, NULL, NULL), PLIM_INVALID));
    op.block = 64;
    op.adam = NULL;
    cr_expect(eq(int, plim_cuda_plan(&c.info, &op, NULL, NULL), PLIM_INVALID));
    op.adam = &adam;
    op.in[6] = book(256, false);
    cr_expect(eq(int, plim_cuda_plan(&c.info, &op, NULL, NULL), PLIM_INVALID), "books of two sizes");
    op.in[6] = book(16, false);
    op.in[0] = KERNEL_ARRAY(&c, PLIM_I64, 128);
    cr_expect(eq(int, plim_cuda_plan(&c.info, &op, NULL, NULL), PLIM_UNSUPPORTED));
}
