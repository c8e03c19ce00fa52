/* Gated MLPs, and rotary positions. */
#include "support/kernel_case.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

static struct kernel_case c;

static void setup(void)
{
    kernel_case_init(&c, 11);
}

static void finish(void)
{
    kernel_case_finish(&c);
}

TestSuite(kernels_gated, .init = setup, .fini = finish);

static const enum plim_dtype types[] = {PLIM_F32, PLIM_BF16, PLIM_F16};
static const enum plim_unary gates[] = {PLIM_UNARY_SILU, PLIM_UNARY_GELU, PLIM_UNARY_GELU_TANH};

static double tolerance(enum plim_dtype dtype)
{
    return dtype == PLIM_F32 ? 16 : 1;
}

/* --- gates ------------------------------------------------------------------------------------ */

static void check_gated(enum plim_unary f, const struct plim_array *y, const struct plim_array *gate,
                        const struct plim_array *up)
{
    struct plim_op op = {
        .kind = PLIM_OP_GATED, .unary = (uint8_t)f, .n_out = 1, .n_in = 2, .out = {y}, .in = {gate, up}};
    kernel_case_fill(&c, gate, -6, 6);
    kernel_case_check(&c, &op, tolerance((enum plim_dtype)y->dtype), 1);
    kernel_case_finish(&c);
}

static const int64_t shapes[][2] = {{1, 1}, {3, 5}, {2, 8}, {7, 33}, {1, 2047}, {300, 257}};
enum { SHAPES = sizeof shapes / sizeof *shapes };

Test(kernels_gated, forward_of_every_type_and_shape)
{
    for (int f = 0; f < 3; f++)
        for (int t = 0; t < 3; t++)
            for (int i = 0; i < SHAPES; i++)
                check_gated(gates[f], KERNEL_ARRAY(&c, types[t], shapes[i][0], shapes[i][1]),
                            KERNEL_ARRAY(&c, types[t], shapes[i][0], shapes[i][1]),
                            KERNEL_ARRAY(&c, types[t], shapes[i][0], shapes[i][1]));
}

Test(kernels_gated, forward_of_mixed_types_and_odd_places)
{
    const int64_t shape[] = {5, 40}, stride[] = {40, 1};
    check_gated(PLIM_UNARY_SILU, KERNEL_ARRAY(&c, PLIM_F32, 5, 40), KERNEL_ARRAY(&c, PLIM_BF16, 5, 40),
                KERNEL_ARRAY(&c, PLIM_F16, 5, 40));
    check_gated(PLIM_UNARY_SILU, KERNEL_ARRAY(&c, PLIM_BF16, 5, 40),
                kernel_case_strided(&c, PLIM_BF16, 2, shape, stride, 3), KERNEL_ARRAY(&c, PLIM_BF16, 5, 40));
    check_gated(PLIM_UNARY_GELU, KERNEL_ARRAY(&c, PLIM_F32, 0, 40), KERNEL_ARRAY(&c, PLIM_F32, 0, 40),
                KERNEL_ARRAY(&c, PLIM_F32, 0, 40));
    cr_expect(eq(int, c.launches, 0));
}

enum { APART, AS_LIGER, AS_AXOLOTL };

/* As liger-kernel: gradients in the places of both parts. As axolotl: and the product in that of its gradient. */
static void check_gated_backward(enum plim_unary f, enum plim_dtype dtype, int64_t rows, int64_t columns, int where)
{
    struct plim_op op = {.kind = PLIM_OP_GATED_BACKWARD,
                         .unary = (uint8_t)f,
                         .n_out = where == AS_LIGER ? 2 : 3,
                         .n_in = 3,
                         .in = {KERNEL_ARRAY(&c, dtype, rows, columns), KERNEL_ARRAY(&c, dtype, rows, columns),
                                KERNEL_ARRAY(&c, dtype, rows, columns)}};
    kernel_case_fill(&c, op.in[1], -6, 6);
    for (int i = 0; i < op.n_out; i++)
        op.out[i] = where == APART ? KERNEL_ARRAY(&c, dtype, rows, columns) : op.in[i == 2 ? 0 : i + 1];
    kernel_case_check(&c, &op, tolerance(dtype), 4); /* of dout up, times a slope whose terms cancel */
    kernel_case_finish(&c);
}

Test(kernels_gated, backward_of_every_type_and_shape)
{
    for (int f = 0; f < 3; f++)
        for (int t = 0; t < 3; t++)
            for (int i = 0; i < SHAPES; i++)
                for (int where = APART; where <= AS_AXOLOTL; where++)
                    check_gated_backward(gates[f], types[t], shapes[i][0], shapes[i][1], where);
}

Test(kernels_gated, operands_that_no_kernel_takes_are_refused)
{
    const int64_t shape[] = {4, 8}, apart[] = {16, 1};
    struct plim_op op = {.kind = PLIM_OP_GATED,
                         .unary = PLIM_UNARY_RELU,
                         .n_out = 1,
                         .n_in = 2,
                         .out = {KERNEL_ARRAY(&c, PLIM_F32, 4, 8)},
                         .in = {KERNEL_ARRAY(&c, PLIM_F32, 4, 8), KERNEL_ARRAY(&c, PLIM_F32, 4, 8)}};
    cr_expect(eq(int, plim_cuda_plan(&c.info, &op, NULL, NULL), PLIM_INVALID), "no gate");
    op.unary = PLIM_UNARY_SILU;
    op.in[1] = KERNEL_ARRAY(&c, PLIM_F32, 8, 4);
    cr_expect(eq(int, plim_cuda_plan(&c.info, &op, NULL, NULL), PLIM_INVALID));
    op.in[1] = kernel_case_strided(&c, PLIM_F32, 2, shape, apart, 0);
    cr_expect(eq(int, plim_cuda_plan(&c.info, &op, NULL, NULL), PLIM_UNSUPPORTED));
    op.in[1] = KERNEL_ARRAY(&c, PLIM_I32, 4, 8);
    cr_expect(eq(int, plim_cuda_plan(&c.info, &op, NULL, NULL), PLIM_UNSUPPORTED));
}

/* --- rotary positions ------------------------------------------------------------------------- */

struct turned {
    int64_t batch, length, heads[2], size, pairs, width, of_angles;
};

static void make_rotation(const struct turned *s, enum plim_dtype dtype, enum plim_dtype angles, struct plim_op *op)
{
    *op = (struct plim_op){.kind = PLIM_OP_ROTATE, .n_out = 2, .n_in = 4, .pairs = s->pairs, .beta = 1};
    for (int i = 0; i < 2; i++)
        op->out[i] = op->in[i] = KERNEL_ARRAY(&c, dtype, s->batch, s->length, s->heads[i], s->size);
    for (int i = 2; i < 4; i++) {
        op->in[i] = KERNEL_ARRAY(&c, angles, s->of_angles, s->length, s->width);
        kernel_case_fill(&c, op->in[i], -1, 1);
    }
}

static const struct turned rotations[] = {
    {2, 5, {4, 2}, 16, 8, 16, 1},   /* in vectors, one row of angles for both batches */
    {2, 5, {4, 2}, 16, 8, 16, 2},   /* each has its own */
    {1, 3, {3, 1}, 10, 5, 10, 1},   /* no vectors */
    {2, 3, {2, 2}, 32, 8, 16, 2},   /* a part of each head turns */
    {2, 3, {8, 1}, 16, 8, 8, 1},    /* angles of half a head's width */
    {1, 1, {1, 1}, 2, 1, 2, 1},     /* one pair */
    {3, 70, {7, 3}, 24, 12, 24, 1}, /* more threads than the test's GPU runs at once */
};

Test(kernels_gated, rotations_of_every_type_and_shape)
{
    struct plim_op op;
    for (int t = 0; t < 3; t++)
        for (size_t i = 0; i < sizeof rotations / sizeof *rotations; i++)
            for (int direction = -1; direction <= 1; direction += 2) {
                make_rotation(&rotations[i], types[t], direction < 0 ? PLIM_F32 : types[t], &op);
                op.beta = direction;
                kernel_case_check(&c, &op, tolerance(types[t]), 2);
                kernel_case_finish(&c);
            }
}

Test(kernels_gated, rotations_of_nothing_launch_nothing)
{
    struct plim_op op;
    make_rotation(&(struct turned){2, 0, {4, 2}, 16, 8, 16, 1}, PLIM_F32, PLIM_F32, &op);
    kernel_case_check(&c, &op, 0, 0);
    cr_expect(eq(int, c.launches, 0));
}

Test(kernels_gated, rotations_that_no_kernel_makes_are_refused)
{
    const struct turned plain = {2, 3, {4, 2}, 16, 8, 16, 1};
    const int64_t shape[] = {2, 3, 4, 16}, apart[] = {512, 128, 32, 1};
    struct plim_op op;
    make_rotation(&plain, PLIM_F32, PLIM_F32, &op);
    op.pairs = 9;
    cr_expect(eq(int, plim_cuda_plan(&c.info, &op, NULL, NULL), PLIM_INVALID), "more than a head has");
    op.pairs = 8;
    op.out[0] = KERNEL_ARRAY(&c, PLIM_F32, 2, 3, 4, 16);
    cr_expect(eq(int, plim_cuda_plan(&c.info, &op, NULL, NULL), PLIM_INVALID), "not in place");
    op.out[0] = op.in[0] = kernel_case_strided(&c, PLIM_F32, 4, shape, apart, 0);
    cr_expect(eq(int, plim_cuda_plan(&c.info, &op, NULL, NULL), PLIM_UNSUPPORTED), "with gaps");
    make_rotation(&plain, PLIM_F32, PLIM_F32, &op);
    op.in[2] = op.in[3] = KERNEL_ARRAY(&c, PLIM_F32, 1, 4, 16);
    cr_expect(eq(int, plim_cuda_plan(&c.info, &op, NULL, NULL), PLIM_INVALID), "angles of other rows");
}

/* --- products of complex numbers ---------------------------------------------------------------- */

Test(kernels_gated, complex_numbers_multiply)
{
    for (int64_t n = 1; n < 300; n = n * 5 + 3)
        for (int direction = -1; direction <= 1; direction += 2) {
            struct plim_op op = {.kind = PLIM_OP_COMPLEX_MUL, .beta = direction, .n_out = 1, .n_in = 2,
                                 .out = {KERNEL_ARRAY(&c, PLIM_F32, 3, 4, n, 2)},
                                 .in = {KERNEL_ARRAY(&c, PLIM_F32, 3, 4, n, 2), KERNEL_ARRAY(&c, PLIM_F32, 4, n, 2)}};
            kernel_case_check(&c, &op, 4, 1);
            kernel_case_finish(&c);
        }
}
