#include "support/kernel_case.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

static struct kernel_case c;

static void setup(void)
{
    kernel_case_init(&c, 17);
}

static void finish(void)
{
    kernel_case_finish(&c);
}

TestSuite(kernels_convolution, .init = setup, .fini = finish);

static const enum plim_dtype types[] = {PLIM_F32, PLIM_BF16, PLIM_F16};

static double tolerance(enum plim_dtype dtype)
{
    return dtype == PLIM_F32 ? 64 : 2;
}

/* --- patches ---------------------------------------------------------------------------------- */

struct images {
    int64_t batch, channels, height, width, kernels, rows, columns;
    bool has_bias, channels_last;
};

static const struct plim_array *image(const struct images *t, enum plim_dtype dtype)
{
    static const int rows[] = {0, 1, 2, 3}, channels[] = {0, 2, 3, 1};
    const int64_t shape[] = {t->batch, t->channels, t->height, t->width};
    return kernel_case_permuted(&c, dtype, 4, shape, t->channels_last ? channels : rows, 0);
}

static void check_patches(const struct images *t, enum plim_dtype dtype)
{
    const struct plim_array *x = image(t, dtype);
    const struct plim_array *w = KERNEL_ARRAY(&c, dtype, t->kernels, t->channels, t->rows, t->columns);
    const struct plim_array *y = KERNEL_ARRAY(&c, dtype, t->batch, t->kernels, t->height / t->rows,
                                                t->width / t->columns);
    struct plim_op op = {.kind = PLIM_OP_PATCHES, .n_out = 1, .n_in = t->has_bias ? 3 : 2, .out = {y}, .in = {x, w}};
    if (t->has_bias) op.in[2] = KERNEL_ARRAY(&c, dtype, t->kernels);
    kernel_case_check(&c, &op, tolerance(dtype), 16);
    op = (struct plim_op){.kind = PLIM_OP_PATCHES_BACKWARD, .n_out = 1, .n_in = 2, .out = {w}, .in = {y, x}};
    kernel_case_check(&c, &op, tolerance(dtype), 16);
    kernel_case_finish(&c);
}

Test(kernels_convolution, patches_of_images)
{
    static const struct images images[] = {{1, 1, 1, 1, 1, 1, 1, false, false},
                                           {2, 3, 16, 16, 70, 4, 4, true, false},
                                           {2, 3, 11, 9, 5, 3, 3, true, true},     /* of which edges are left over */
                                           {3, 3, 32, 48, 130, 8, 8, false, true}, /* several tiles each way */
                                           {2, 7, 3, 90, 66, 3, 1, true, false},   /* as conv1d has it */
                                           {2, 3, 9, 10, 5, 2, 5, true, true},
                                           {0, 3, 8, 8, 4, 4, 4, true, false}};
    for (int t = 0; t < 3; t++)
        for (size_t i = 0; i < sizeof images / sizeof *images; i++) check_patches(&images[i], types[t]);
}

/* --- along rows ------------------------------------------------------------------------------- */

static void check_depthwise(int64_t batch, int64_t channels, int64_t length, int64_t kernel, int64_t padding,
                            enum plim_dtype dtype)
{
    int64_t results = length + 2 * padding - kernel + 1;
    const struct plim_array *x = KERNEL_ARRAY(&c, dtype, batch, channels, length);
    const struct plim_array *w = KERNEL_ARRAY(&c, dtype, channels, 1, kernel);
    const struct plim_array *y = KERNEL_ARRAY(&c, dtype, batch, channels, results);
    struct plim_op op = {.kind = PLIM_OP_DEPTHWISE, .n_out = 1, .n_in = 2, .out = {y}, .in = {x, w}};
    kernel_case_check(&c, &op, tolerance(dtype), 8);
    op.in[op.n_in++] = KERNEL_ARRAY(&c, dtype, channels);
    kernel_case_check(&c, &op, tolerance(dtype), 8);
    op = (struct plim_op){.kind = PLIM_OP_DEPTHWISE_BACKWARD, .n_out = 1, .n_in = 2, .out = {x}, .in = {y, w}};
    kernel_case_check(&c, &op, tolerance(dtype), 8);
    op = (struct plim_op){.kind = PLIM_OP_DEPTHWISE_BACKWARD_WEIGHT, .n_out = 1, .n_in = 2, .out = {w}, .in = {y, x}};
    kernel_case_check(&c, &op, tolerance(dtype), 32);
    kernel_case_finish(&c);
}

Test(kernels_convolution, channels_along_rows)
{
    for (int t = 0; t < 3; t++) {
        check_depthwise(1, 1, 1, 1, 0, types[t]);
        check_depthwise(2, 70, 33, 4, 3, types[t]); /* as a causal convolution has it, whose end is cut off */
        check_depthwise(3, 5, 300, 3, 1, types[t]);
        check_depthwise(2, 3, 4, 4, 0, types[t]);
        check_depthwise(2, 3, 2, 4, 3, types[t]); /* rows shorter than the kernel */
        check_depthwise(0, 3, 8, 4, 3, types[t]);
    }
}

Test(kernels_convolution, shapes_that_do_not_fit_are_refused)
{
    const struct plim_array *x = KERNEL_ARRAY(&c, PLIM_F32, 1, 2, 8), *w = KERNEL_ARRAY(&c, PLIM_F32, 3, 1, 4);
    const struct plim_array *y = KERNEL_ARRAY(&c, PLIM_F32, 1, 2, 8), *v = KERNEL_ARRAY(&c, PLIM_F32, 2, 1, 4);
    struct plim_op op = {.kind = PLIM_OP_DEPTHWISE, .n_out = 1, .n_in = 2, .out = {y}, .in = {x, w}};
    cr_expect(eq(int, plim_cuda_plan(&c.info, &op, NULL, NULL), PLIM_INVALID));
    op.in[1] = v; /* an odd number of zeros around */
    cr_expect(eq(int, plim_cuda_plan(&c.info, &op, NULL, NULL), PLIM_INVALID));
    op = (struct plim_op){.kind = PLIM_OP_DEPTHWISE,
                          .n_out = 1,
                          .n_in = 3,
                          .out = {KERNEL_ARRAY(&c, PLIM_F32, 1, 2, 5)},
                          .in = {x, v, KERNEL_ARRAY(&c, PLIM_F32, 3)}}; /* a bias of other channels */
    cr_expect(eq(int, plim_cuda_plan(&c.info, &op, NULL, NULL), PLIM_INVALID));
    op.n_in = 2;
    op.kind = PLIM_OP_PATCHES;
    cr_expect(eq(int, plim_cuda_plan(&c.info, &op, NULL, NULL), PLIM_INVALID));
}
