#include "support/kernel_case.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

static struct kernel_case c;

static void setup(void)
{
    kernel_case_init(&c, 23);
}

static void finish(void)
{
    kernel_case_finish(&c);
}

TestSuite(kernels_causal_conv, .init = setup, .fini = finish);

/* The order of rows in memory: consecutive tokens, or consecutive channels */
static const int order[2][3] = {{0, 1, 2}, {0, 2, 1}};
enum { BY_TOKEN, BY_CHANNEL };

struct size {
    int64_t batch, channels, tokens, taps;
};

/* Documents of `each` tokens, the first of which begin before the row; 0: no documents */
static const struct plim_array *documents(const struct size *s, int64_t each)
{
    if (!each) return NULL;
    const struct plim_array *document = KERNEL_ARRAY(&c, PLIM_I32, s->batch, s->tokens);
    for (int64_t i = 0; i < s->batch * s->tokens; i++) kernel_case_set(document, i, (double)((i + 1) / each));
    return document;
}

static const struct plim_array *rows(const struct size *s, enum plim_dtype dtype, int by)
{
    return kernel_case_permuted(&c, dtype, 3, (int64_t[]){s->batch, s->channels, s->tokens}, order[by], 0);
}

/* The gradient of the weight is fp32, whatever the type of the rows, and a sum of many */
enum { EPSILONS = 32 };

/* dout_by: the order in memory of the gradient, which may differ */
static void check(struct size s, int64_t each, enum plim_dtype dtype, enum plim_dtype weights, int by, int dout_by)
{
    const struct plim_array *x = rows(&s, dtype, by), *weight = KERNEL_ARRAY(&c, weights, s.channels, s.taps),
                            *document = documents(&s, each);
    struct plim_op op = {.kind = PLIM_OP_CAUSAL_CONV,
                         .n_out = 1,
                         .n_in = document ? 3 : 2,
                         .out = {rows(&s, dtype, by)},
                         .in = {x, weight, document}};
    kernel_case_check(&c, &op, dtype == PLIM_F32 ? EPSILONS : 1, 4);
    op = (struct plim_op){.kind = PLIM_OP_CAUSAL_CONV_BACKWARD,
                          .n_out = 2,
                          .n_in = document ? 4 : 3,
                          .out = {rows(&s, dtype, by), KERNEL_ARRAY(&c, PLIM_F32, s.channels, s.taps)},
                          .in = {rows(&s, dtype, dout_by), x, weight, document}};
    kernel_case_check(&c, &op, EPSILONS, 4);
    kernel_case_finish(&c);
}

static const struct size sizes[] = {{1, 1, 1, 4},  {2, 3, 5, 4},    {1, 40, 33, 4}, {3, 33, 17, 3}, {1, 64, 8, 1},
                                    {2, 5, 2, 4},  {1, 2, 300, 2},  {0, 4, 8, 4},   {2, 0, 8, 4},   {2, 4, 0, 4}};
enum { SIZES = sizeof sizes / sizeof *sizes };

Test(kernels_causal_conv, rows_of_every_size_type_and_layout)
{
    static const enum plim_dtype types[] = {PLIM_F32, PLIM_BF16, PLIM_F16};
    for (int i = 0; i < SIZES; i++)
        for (int t = 0; t < 3; t++)
            for (int by = BY_TOKEN; by <= BY_CHANNEL; by++) check(sizes[i], 0, types[t], types[t], by, !by);
}

/* Of one token, of fewer tokens than taps, of more, and of more than rows have */
Test(kernels_causal_conv, documents_of_a_row)
{
    static const int64_t each[] = {1, 3, 7, 1000};
    for (int i = 0; i < SIZES; i++)
        for (int k = 0; k < 4; k++) check(sizes[i], each[k], PLIM_F32, PLIM_F32, BY_CHANNEL, BY_CHANNEL);
}

Test(kernels_causal_conv, a_wider_weight)
{
    check((struct size){2, 6, 19, 4}, 5, PLIM_BF16, PLIM_F32, BY_CHANNEL, BY_CHANNEL);
}

Test(kernels_causal_conv, shapes_that_do_not_fit_are_refused)
{
    const struct plim_array *x = KERNEL_ARRAY(&c, PLIM_F32, 2, 3, 8), *other = KERNEL_ARRAY(&c, PLIM_F32, 2, 3, 7),
                            *weight = KERNEL_ARRAY(&c, PLIM_F32, 3, 4), *wide = KERNEL_ARRAY(&c, PLIM_F32, 3, 5),
                            *document = KERNEL_ARRAY(&c, PLIM_I32, 2, 7), *numbers = KERNEL_ARRAY(&c, PLIM_F32, 2, 8);
    struct plim_op op = {.kind = PLIM_OP_CAUSAL_CONV, .n_out = 1, .n_in = 2, .out = {other}, .in = {x, weight}};
    cr_expect(eq(int, plim_cuda_plan(&c.info, &op, NULL, NULL), PLIM_INVALID));
    op.out[0] = x;
    op.in[1] = wide; /* more taps than the package has */
    cr_expect(eq(int, plim_cuda_plan(&c.info, &op, NULL, NULL), PLIM_UNSUPPORTED));
    op.in[1] = weight;
    op.n_in = 3;
    op.in[2] = document;
    cr_expect(eq(int, plim_cuda_plan(&c.info, &op, NULL, NULL), PLIM_INVALID));
    op.in[2] = numbers;
    cr_expect(eq(int, plim_cuda_plan(&c.info, &op, NULL, NULL), PLIM_UNSUPPORTED));
    op = (struct plim_op){.kind = PLIM_OP_CAUSAL_CONV_BACKWARD,
                          .n_out = 2,
                          .n_in = 3,
                          .out = {x, wide},
                          .in = {x, x, weight}};
    cr_expect(eq(int, plim_cuda_plan(&c.info, &op, NULL, NULL), PLIM_INVALID));
}
