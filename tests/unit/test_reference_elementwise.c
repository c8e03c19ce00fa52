/* Operations element by element, and with them how elements are read and stored. */
#include "devices/host/reference.h"
#include "devices/random.h"
#include "support/arrays.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <math.h>

static void unary(enum plim_unary f, double alpha, double beta, const struct plim_array *y,
                  const struct plim_array *x)
{
    run_op(&(struct plim_op){.kind = PLIM_OP_UNARY,
                             .unary = f,
                             .alpha = alpha,
                             .beta = beta,
                             .n_out = 1,
                             .n_in = 1,
                             .out = {y},
                             .in = {x}});
}

static void binary(enum plim_binary f, double alpha, const struct plim_array *y,
                   const struct plim_array *a, const struct plim_array *b)
{
    run_op(&(struct plim_op){.kind = PLIM_OP_BINARY,
                             .binary = f,
                             .alpha = alpha,
                             .n_out = 1,
                             .n_in = b ? 2 : 1,
                             .out = {y},
                             .in = {a, b}});
}

static void copy(const struct plim_array *y, const struct plim_array *x)
{
    run_op(&(struct plim_op){.kind = PLIM_OP_COPY, .n_out = 1, .n_in = 1, .out = {y}, .in = {x}});
}

/* --- copies and casts ------------------------------------------------------------------------- */

Test(reference_copy, keeps_what_every_type_can_hold)
{
    for (int from = 0; from < PLIM_DTYPE_COUNT; from++)
        for (int to = 0; to < PLIM_DTYPE_COUNT; to++) {
            struct plim_array x = ARRAY((enum plim_dtype)from, 2),
                              y = ARRAY((enum plim_dtype)to, 2);
            VALUES(&x, 0, 1);
            copy(&y, &x);
            EXPECT_VALUES(&y, 0, 0, 1);
        }
}

Test(reference_copy, rounds_halves_to_even)
{
    struct plim_array x = ARRAY(PLIM_F32, 4), bf16 = ARRAY(PLIM_BF16, 4), fp16 = ARRAY(PLIM_F16, 4);
    /* bf16 has 8 significant bits: halfway between neighbours above 1, and a little more */
    VALUES(&x, 1 + 0x1p-8, 1 + 3 * 0x1p-8, 1 + 0x1p-8 + 0x1p-20, -1 - 0x1p-8);
    copy(&bf16, &x);
    EXPECT_VALUES(&bf16, 0, 1, 1 + 0x1p-6, 1 + 0x1p-7, -1);
    VALUES(&x, 1 + 0x1p-11, 1 + 3 * 0x1p-11, 1 + 0x1p-11 + 0x1p-20, 65520);
    copy(&fp16, &x);
    EXPECT_VALUES(&fp16, 0, 1, 1 + 0x1p-9, 1 + 0x1p-10, INFINITY);
}

Test(reference_copy, floats_become_integers_by_truncation_within_their_range)
{
    struct plim_array x = ARRAY(PLIM_F32, 6), n = ARRAY(PLIM_I32, 6), u = ARRAY(PLIM_U8, 6),
                      w = ARRAY(PLIM_I64, 6);
    VALUES(&x, 1.9, -1.9, NAN, INFINITY, -INFINITY, 255.5);
    copy(&n, &x);
    EXPECT_VALUES(&n, 0, 1, -1, 0, INT32_MAX, INT32_MIN, 255);
    copy(&u, &x);
    EXPECT_VALUES(&u, 0, 1, 0, 0, 255, 0, 255);
    copy(&w, &x);
    cr_expect(eq(i64, array_integer_at(&w, 3), INT64_MAX));
    cr_expect(eq(i64, array_integer_at(&w, 4), INT64_MIN));
}

Test(reference_copy, anything_but_zero_is_true)
{
    struct plim_array x = ARRAY(PLIM_F32, 5), y = ARRAY(PLIM_BOOL, 5);
    VALUES(&x, 0, -0.0, 0.25, NAN, -INFINITY);
    copy(&y, &x);
    EXPECT_VALUES(&y, 0, 0, 0, 1, 1, 1);
}

Test(reference_copy, integers_stay_exact)
{
    struct plim_array x = ARRAY(PLIM_I64, 2), y = ARRAY(PLIM_I64, 2), n = ARRAY(PLIM_I32, 2);
    array_put_integer(&x, 0, (INT64_C(1) << 53) + 1);
    array_put_integer(&x, 1, INT64_MIN);
    copy(&y, &x);
    cr_expect(eq(i64, array_integer_at(&y, 0), (INT64_C(1) << 53) + 1));
    cr_expect(eq(i64, array_integer_at(&y, 1), INT64_MIN));
    copy(&n, &x); /* the lower bits */
    EXPECT_VALUES(&n, 0, 1, 0);
}

Test(reference_copy, gathers_strides_of_six_dimensions)
{
    struct plim_array x = ARRAY(PLIM_I32, 2, 3, 1, 5, 2, 7);
    for (int i = 0; i < 420; i++) array_put(&x, i, i);
    struct plim_array view = array_every(array_transposed(array_transposed(x, 0, 5), 1, 3), 0, 2);
    struct plim_array y = array_new(PLIM_I32, 6, view.shape);
    copy(&y, &view);
    expect_equal_arrays(&y, &view, 0);
    struct plim_array z = array_transposed(ARRAY(PLIM_F32, 7, 5, 3, 2), 0, 2);
    struct plim_array from = array_new(PLIM_F32, 4, z.shape);
    array_scatter(&from, 1, -1, 1);
    copy(&z, &from); /* into strides */
    expect_equal_arrays(&z, &from, 0);
}

Test(reference_copy, repeats_extents_of_one_and_missing_dimensions)
{
    struct plim_array x = ARRAY(PLIM_F32, 2, 1), y = ARRAY(PLIM_F32, 2, 2, 3);
    VALUES(&x, 1, 2);
    copy(&y, &x);
    EXPECT_VALUES(&y, 0, 1, 1, 1, 2, 2, 2, 1, 1, 1, 2, 2, 2);
}

Test(reference_copy, refuses_what_cannot_repeat)
{
    struct plim_array x = ARRAY(PLIM_F32, 2), y = ARRAY(PLIM_F32, 3), wide = ARRAY(PLIM_F32, 1, 3);
    struct plim_op op = {.kind = PLIM_OP_COPY, .n_out = 1, .n_in = 1, .out = {&y}, .in = {&x}};
    cr_expect(eq(int, plim_reference_run(&op), PLIM_INVALID));
    op.in[0] = &wide;
    cr_expect(eq(int, plim_reference_run(&op), PLIM_INVALID));
    op.in[0] = NULL;
    cr_expect(eq(int, plim_reference_run(&op), PLIM_INVALID));
    op.in[0] = &y;
    cr_expect(eq(int, plim_reference_run(&op), PLIM_OK));
    op.n_in = 0;
    cr_expect(eq(int, plim_reference_run(&op), PLIM_INVALID));
}

Test(reference_copy, of_nothing_does_nothing)
{
    struct plim_array x = ARRAY(PLIM_F32, 0, 3), y = array_transposed(ARRAY(PLIM_BF16, 3, 0), 0, 1);
    copy(&y, &x);
}

/* --- without operands ------------------------------------------------------------------------- */

Test(reference_fill, every_type)
{
    for (int t = 0; t < PLIM_DTYPE_COUNT; t++) {
        struct plim_array y = array_every(ARRAY((enum plim_dtype)t, 300, 2), 1, 2);
        run_op(&(struct plim_op){.kind = PLIM_OP_FILL, .alpha = 1, .n_out = 1, .out = {&y}});
        for (int i = 0; i < 300; i++) cr_assert(eq(dbl, array_at(&y, i), 1));
    }
}

Test(reference_arange, counts_from_beta_in_steps_of_alpha)
{
    struct plim_array y = ARRAY(PLIM_I64, 300), half = ARRAY(PLIM_BF16, 3);
    struct plim_op op = {.kind = PLIM_OP_ARANGE, .alpha = 3, .beta = -7, .n_out = 1, .out = {&y}};
    run_op(&op);
    for (int i = 0; i < 300; i++) cr_assert(eq(i64, array_integer_at(&y, i), -7 + 3 * i));
    op.out[0] = &half, op.alpha = 0.5, op.beta = 1;
    run_op(&op);
    EXPECT_VALUES(&half, 0, 1, 1.5, 2);
}

Test(reference_random, an_element_depends_on_seed_and_number_alone)
{
    struct plim_array y = ARRAY(PLIM_F32, 20, 30),
                      t = array_transposed(ARRAY(PLIM_F32, 30, 20), 0, 1);
    struct plim_op op = {.kind = PLIM_OP_RANDOM, .alpha = 0.1, .seed = 77, .n_out = 1, .out = {&y}};
    run_op(&op);
    op.out[0] = &t;
    run_op(&op);
    expect_equal_arrays(&t, &y, 0);
    for (int i = 0; i < 600; i++) {
        float u = plim_random_unit(plim_random_word(77, (uint64_t)i));
        cr_assert(eq(flt, (float)array_at(&y, i), 0.1f * (2 * u - 1)));
    }
}

Test(reference_random, integers_fill_their_range)
{
    struct plim_array y = ARRAY(PLIM_I64, 1000);
    struct plim_op op = {.kind = PLIM_OP_RANDOM, .alpha = 3, .seed = 5, .n_out = 1, .out = {&y}};
    int seen[3] = {0};
    run_op(&op);
    for (int i = 0; i < 1000; i++) {
        cr_assert(array_integer_at(&y, i) >= 0 && array_integer_at(&y, i) < 3);
        seen[array_integer_at(&y, i)]++;
    }
    for (int i = 0; i < 3; i++) cr_expect(seen[i] > 250, "%d of 1000", seen[i]);
    op.alpha = -1;
    cr_expect(eq(int, plim_reference_run(&op), PLIM_INVALID));
}

/* --- one operand ------------------------------------------------------------------------------ */

Test(reference_unary, known_values)
{
    static const struct {
        enum plim_unary f;
        double alpha, beta, x, y;
    } known[] = {
        {PLIM_UNARY_NEG, 0, 0, 1.5, -1.5},
        {PLIM_UNARY_COS, 0, 0, 1, 0.54030230586813972},
        {PLIM_UNARY_SIN, 0, 0, 1, 0.84147098480789651},
        {PLIM_UNARY_RSQRT, 0, 0, 4, 0.5},
        {PLIM_UNARY_TANH, 0, 0, 0.5, 0.46211715726000976},
        {PLIM_UNARY_SILU, 0, 0, 1, 0.73105857863000488},
        {PLIM_UNARY_SILU, 0, 0, -2, -0.23840584404423512},
        {PLIM_UNARY_RELU, 0, 0, 3, 3},
        {PLIM_UNARY_RELU, 0, 0, -3, 0},
        {PLIM_UNARY_SIGMOID, 0, 0, 0.5, 0.62245933120185459},
        {PLIM_UNARY_GELU, 0, 0, 1, 0.84134474606854295}, /* x Phi(x) */
        {PLIM_UNARY_GELU, 0, 0, -6, -5.9195258702e-9},
        {PLIM_UNARY_GELU_TANH, 0, 0, 1, 0.84119199060827561},
        {PLIM_UNARY_POW, 3, 0, -2, -8},
        {PLIM_UNARY_RECIPROCAL, 0, 0, -4, -0.25},
        {PLIM_UNARY_NOT, 0, 0, 0, 1},
        {PLIM_UNARY_NOT, 0, 0, 0.5, 0},
        {PLIM_UNARY_ABS, 0, 0, -1.5, 1.5},
        {PLIM_UNARY_ABS, 0, 0, 2, 2},
        {PLIM_UNARY_CLAMP, -1, 2, 5, 2},
        {PLIM_UNARY_CLAMP, -1, 2, -5, -1},
        {PLIM_UNARY_CLAMP, -1, 2, 0.5, 0.5},
        {PLIM_UNARY_EXP, 0, 0, 1, 2.7182818284590452},
        {PLIM_UNARY_EXP, 0, 0, -INFINITY, 0},
        {PLIM_UNARY_SOFTPLUS, 0, 0, 1, 1.3132616875182228},
        {PLIM_UNARY_SOFTPLUS, 0, 0, -10, 4.5398899216870535e-5},
        {PLIM_UNARY_SOFTPLUS, 0, 0, 100, 100}, /* exp(100) is infinite in fp32 */
        {PLIM_UNARY_SOFTCAP, 30, 0, 15, 13.8635147178002934}, /* 30 times the 0.4621.. above */
        {PLIM_UNARY_LOG, 0, 0, 10, 2.302585092994046},
        {PLIM_UNARY_LOG_SIGMOID, 0, 0, 1, -0.31326168751822286},
        {PLIM_UNARY_LOG_SIGMOID, 0, 0, 20, -2.061153618190204e-9},
        {PLIM_UNARY_LOG_SIGMOID, 0, 0, -100, -100}, /* exp(100) is infinite in fp32 */
        {PLIM_UNARY_FLOOR, 0, 0, 2.75, 2},
        {PLIM_UNARY_FLOOR, 0, 0, -2.25, -3},
        {PLIM_UNARY_FLOOR, 0, 0, 4, 4},
        {PLIM_UNARY_ERF, 0, 0, 0.5, 0.5204998778130465},
        {PLIM_UNARY_ERF, 0, 0, -2, -0.9953222650189527},
    };
    bool seen[PLIM_UNARY_COUNT] = {false};
    struct plim_array x = SCALAR(PLIM_F32), y = SCALAR(PLIM_F32);
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        array_put(&x, 0, known[i].x);
        unary(known[i].f, known[i].alpha, known[i].beta, &y, &x);
        double error = fabs(array_at(&y, 0) - known[i].y);
        cr_expect(error <= 2e-7 * fabs(known[i].y), "%zu: %.9g", i, array_at(&y, 0));
        seen[known[i].f] = true;
    }
    for (int f = 0; f < PLIM_UNARY_COUNT; f++) cr_expect(seen[f], "unary %d is not tested", f);
}

Test(reference_unary, nan_stays_nan)
{
    struct plim_array x = SCALAR(PLIM_BF16), y = SCALAR(PLIM_F16);
    array_put(&x, 0, NAN);
    for (int f = 0; f < PLIM_UNARY_COUNT; f++) {
        unary((enum plim_unary)f, 1, 2, &y, &x);
        if (f == PLIM_UNARY_NOT)
            cr_expect(eq(dbl, array_at(&y, 0), 0));
        else
            cr_expect(isnan(array_at(&y, 0)), "unary %d", f);
    }
}

Test(reference_unary, integers_stay_exact)
{
    struct plim_array x = ARRAY(PLIM_I64, 2), y = ARRAY(PLIM_I64, 2);
    int64_t large = (INT64_C(1) << 60) + 1;
    array_put_integer(&x, 0, large);
    array_put_integer(&x, 1, 3);
    unary(PLIM_UNARY_NEG, 0, 0, &y, &x);
    cr_expect(eq(i64, array_integer_at(&y, 0), -large));
    array_put_integer(&x, 0, -large);
    unary(PLIM_UNARY_ABS, 0, 0, &y, &x);
    cr_expect(eq(i64, array_integer_at(&y, 0), large));
    array_put_integer(&x, 0, large);
    unary(PLIM_UNARY_CLAMP, 4, 0x1p62, &y, &x);
    cr_expect(eq(i64, array_integer_at(&y, 0), large));
    cr_expect(eq(i64, array_integer_at(&y, 1), 4));
    unary(PLIM_UNARY_POW, 39, 0, &y, &x);
    cr_expect(eq(i64, array_integer_at(&y, 1), INT64_C(4052555153018976267)));
    unary(PLIM_UNARY_SIN, 0, 0, &y, &x); /* not an integer's: truncated */
    cr_expect(eq(i64, array_integer_at(&y, 1), 0));
}

Test(reference_unary_backward, is_the_derivative)
{
    struct plim_array x = ARRAY(PLIM_F32, 37), y = ARRAY(PLIM_F32, 37), dy = ARRAY(PLIM_F32, 37),
                      dx = ARRAY(PLIM_F32, 37);
    array_scatter(&x, 1, 0.6, 2.5);
    array_scatter(&dy, 2, -2, 2);
    for (int f = 0; f < PLIM_UNARY_COUNT; f++) {
        if (f == PLIM_UNARY_NOT) continue;
        bool signed_domain =
            f != PLIM_UNARY_RSQRT && f != PLIM_UNARY_RECIPROCAL && f != PLIM_UNARY_POW && f != PLIM_UNARY_LOG;
        for (int i = 0; i < 37 && signed_domain; i += 2) array_put(&x, i, -array_at(&x, i));
        struct plim_op forward = {.kind = PLIM_OP_UNARY,
                                  .unary = (uint8_t)f,
                                  .alpha = 1.25,
                                  .beta = 1.5,
                                  .n_out = 1,
                                  .n_in = 1,
                                  .out = {&y},
                                  .in = {&x}};
        run_op(&forward);
        bool by_result = f == PLIM_UNARY_TANH || f == PLIM_UNARY_RELU || f == PLIM_UNARY_SIGMOID;
        struct plim_op backward = {.kind = PLIM_OP_UNARY_BACKWARD,
                                   .unary = (uint8_t)f,
                                   .alpha = 1.25,
                                   .beta = 1.5,
                                   .n_out = 1,
                                   .n_in = 2,
                                   .out = {&dx},
                                   .in = {&dy, by_result ? &y : &x}};
        run_op(&backward);
        if (f == PLIM_UNARY_CLAMP) { /* differences step over its corners */
            for (int i = 0; i < 37; i++) {
                bool inside = array_at(&x, i) >= 1.25 && array_at(&x, i) <= 1.5;
                cr_expect(eq(dbl, array_at(&dx, i), inside ? array_at(&dy, i) : 0));
            }
        } else {
            expect_gradient(&forward, &dy, &x, &dx, 2e-3);
        }
        for (int i = 0; i < 37; i++) array_put(&x, i, fabs(array_at(&x, i)));
    }
}

Test(reference_unary_backward, there_is_none_of_not)
{
    struct plim_array x = SCALAR(PLIM_F32);
    struct plim_op op = {.kind = PLIM_OP_UNARY_BACKWARD,
                         .unary = PLIM_UNARY_NOT,
                         .n_out = 1,
                         .n_in = 2,
                         .out = {&x},
                         .in = {&x, &x}};
    cr_expect(eq(int, plim_reference_run(&op), PLIM_INVALID));
}

/* --- two and three operands ------------------------------------------------------------------- */

Test(reference_binary, known_values)
{
    static const struct {
        enum plim_binary f;
        double alpha, a, b, y;
    } known[] = {
        {PLIM_BINARY_ADD, 2, 1, 3, 7},       {PLIM_BINARY_SUB, 0.5, 1, 3, -0.5},
        {PLIM_BINARY_MUL, 1, -1.5, 3, -4.5}, {PLIM_BINARY_MUL, 2, 1.5, 3, 9},
        {PLIM_BINARY_RSUB, 1, 1, 4, 3},      {PLIM_BINARY_RSUB, 2, 1, 3, 5},
        {PLIM_BINARY_DIV, 1, 1, 4, 0.25},    {PLIM_BINARY_DIV, 1, 1, 0, INFINITY},
        {PLIM_BINARY_POW, 1, 2, -1, 0.5},    {PLIM_BINARY_MAX, 1, 2, 3, 3},
        {PLIM_BINARY_MIN, 1, 2, 3, 2},       {PLIM_BINARY_MAX, 1, NAN, 3, NAN},
        {PLIM_BINARY_MAX, 1, 3, NAN, NAN},   {PLIM_BINARY_MIN, 1, NAN, 3, NAN},
        {PLIM_BINARY_MIN, 1, 3, NAN, NAN},   {PLIM_BINARY_LERP, 0.25, 2, 4, 2.5},
        {PLIM_BINARY_HYPOT, 1, 3, 4, 5},     {PLIM_BINARY_EQ, 1, 2, 2, 1},
        {PLIM_BINARY_EQ, 1, NAN, NAN, 0},    {PLIM_BINARY_NE, 1, 2, 3, 1},
        {PLIM_BINARY_LT, 1, 2, 3, 1},        {PLIM_BINARY_LT, 1, 3, 3, 0},
        {PLIM_BINARY_LE, 1, 3, 3, 1},        {PLIM_BINARY_GT, 1, 3, 2, 1},
        {PLIM_BINARY_GT, 1, 3, 3, 0},        {PLIM_BINARY_GE, 1, 3, 3, 1},
        {PLIM_BINARY_AND, 1, 1, 0, 0},       {PLIM_BINARY_AND, 1, 2, 1, 1},
        {PLIM_BINARY_OR, 1, 0, 2, 1},        {PLIM_BINARY_OR, 1, 0, 0, 0},
    };
    bool seen[PLIM_BINARY_COUNT] = {false};
    struct plim_array a = SCALAR(PLIM_F32), b = SCALAR(PLIM_BF16), y = SCALAR(PLIM_F32);
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        array_put(&a, 0, known[i].a);
        array_put(&b, 0, known[i].b);
        binary(known[i].f, known[i].alpha, &y, &a, &b);
        EXPECT_VALUES(&y, 0, known[i].y);
        if (known[i].f == PLIM_BINARY_LERP || known[i].alpha != 1) continue;
        binary(known[i].f, known[i].b, &y, &a, NULL); /* a number in the place of b */
        EXPECT_VALUES(&y, 0, known[i].y);
        seen[known[i].f] = true;
    }
    for (int f = 0; f < PLIM_BINARY_COUNT; f++)
        cr_expect(seen[f] || f == PLIM_BINARY_LERP || f < PLIM_BINARY_MUL, "binary %d", f);
}

Test(reference_binary, operands_repeat_over_the_result)
{
    struct plim_array a = ARRAY(PLIM_F32, 3, 1), b = ARRAY(PLIM_I64, 1, 4),
                      y = ARRAY(PLIM_F32, 3, 4);
    VALUES(&a, 0.5, 1.5, 2.5);
    VALUES(&b, 0, 10, 20, 30);
    binary(PLIM_BINARY_ADD, 1, &y, &a, &b);
    EXPECT_VALUES(&y, 0, 0.5, 10.5, 20.5, 30.5, 1.5, 11.5, 21.5, 31.5, 2.5, 12.5, 22.5, 32.5);
}

Test(reference_binary, a_result_may_take_its_operands_place)
{
    struct plim_array a = ARRAY(PLIM_F16, 1000), b = ARRAY(PLIM_F32, 1000);
    for (int i = 0; i < 1000; i++) array_put(&a, i, i), array_put(&b, i, 1);
    binary(PLIM_BINARY_ADD, 1, &a, &a, &b);
    for (int i = 0; i < 1000; i++) cr_assert(eq(dbl, array_at(&a, i), i + 1));
}

Test(reference_binary, integers_stay_exact_and_wrap)
{
    struct plim_array a = ARRAY(PLIM_I64, 2), b = ARRAY(PLIM_I64, 2), y = ARRAY(PLIM_I64, 2),
                      equal = ARRAY(PLIM_BOOL, 2);
    int64_t large = (INT64_C(1) << 60) + 1;
    array_put_integer(&a, 0, large), array_put_integer(&b, 0, 1);
    array_put_integer(&a, 1, INT64_MAX), array_put_integer(&b, 1, 1);
    binary(PLIM_BINARY_ADD, 1, &y, &a, &b);
    cr_expect(eq(i64, array_integer_at(&y, 0), large + 1));
    cr_expect(eq(i64, array_integer_at(&y, 1), INT64_MIN));
    binary(PLIM_BINARY_SUB, 3, &y, &a, &b);
    cr_expect(eq(i64, array_integer_at(&y, 0), large - 3));
    binary(PLIM_BINARY_MUL, 7, &y, &b, NULL);
    cr_expect(eq(i64, array_integer_at(&y, 0), 7));
    array_put_integer(&b, 0, large + 1), array_put_integer(&b, 1, INT64_MAX);
    binary(PLIM_BINARY_EQ, 1, &equal, &a, &b);
    EXPECT_VALUES(&equal, 0, 0, 1);
    array_put_integer(&a, 0, -7), array_put_integer(&b, 0, 2), array_put_integer(&b, 1, 0);
    binary(PLIM_BINARY_DIV, 1, &y, &a, &b);
    cr_expect(eq(i64, array_integer_at(&y, 0), -3));
    cr_expect(eq(i64, array_integer_at(&y, 1), INT64_MAX));
}

Test(reference_binary, an_integer_and_a_fraction_are_floats)
{
    struct plim_array a = SCALAR(PLIM_I32), y = SCALAR(PLIM_F32);
    array_put(&a, 0, 3);
    binary(PLIM_BINARY_MUL, 0.5, &y, &a, NULL);
    EXPECT_VALUES(&y, 0, 1.5);
}

Test(reference_binary, a_number_has_the_precision_of_the_elements)
{
    struct plim_array a = SCALAR(PLIM_F32), y = SCALAR(PLIM_BOOL);
    array_put(&a, 0, 0.1);
    binary(PLIM_BINARY_EQ, 0.1, &y, &a, NULL);
    EXPECT_VALUES(&y, 0, 1);
}

Test(reference_where, chooses_by_a_condition_that_repeats)
{
    struct plim_array c = ARRAY(PLIM_BOOL, 2, 1), a = SCALAR(PLIM_F32), b = ARRAY(PLIM_BF16, 3),
                      y = ARRAY(PLIM_F32, 2, 3);
    struct plim_op op = {
        .kind = PLIM_OP_WHERE, .n_out = 1, .n_in = 3, .out = {&y}, .in = {&c, &a, &b}};
    VALUES(&c, 1, 0);
    VALUES(&a, -INFINITY);
    VALUES(&b, 1, 2, 3);
    run_op(&op);
    EXPECT_VALUES(&y, 0, -INFINITY, -INFINITY, -INFINITY, 1, 2, 3);
    struct plim_array m = SCALAR(PLIM_I64), n = SCALAR(PLIM_I64), k = ARRAY(PLIM_I64, 2, 1);
    array_put_integer(&m, 0, INT64_MAX - 1), array_put_integer(&n, 0, INT64_MIN + 1);
    op.in[1] = &m, op.in[2] = &n, op.out[0] = &k;
    run_op(&op);
    cr_expect(eq(i64, array_integer_at(&k, 0), INT64_MAX - 1));
    cr_expect(eq(i64, array_integer_at(&k, 1), INT64_MIN + 1));
}

Test(reference_complex_mul, multiplies_pairs_by_others_that_repeat)
{
    struct plim_array a = ARRAY(PLIM_F32, 2, 2), b = ARRAY(PLIM_F32, 2), y = ARRAY(PLIM_F32, 2, 2);
    struct plim_op op = {.kind = PLIM_OP_COMPLEX_MUL, .beta = 1, .n_out = 1, .n_in = 2, .out = {&y}, .in = {&a, &b}};
    VALUES(&a, 1, 2, 3, 4);
    VALUES(&b, 5, 7);
    run_op(&op);
    EXPECT_VALUES(&y, 0, 1 * 5 - 2 * 7, 1 * 7 + 2 * 5, 3 * 5 - 4 * 7, 3 * 7 + 4 * 5);
    op.beta = -1; /* 5 - 7i */
    run_op(&op);
    EXPECT_VALUES(&y, 0, 1 * 5 + 2 * 7, -1 * 7 + 2 * 5, 3 * 5 + 4 * 7, -3 * 7 + 4 * 5);
}

Test(reference_tril, keeps_the_diagonal_and_what_is_below)
{
    struct plim_array x = ARRAY(PLIM_F32, 2, 2, 3), y = ARRAY(PLIM_F32, 2, 2, 3);
    VALUES(&x, 1, 2, NAN, 4, 5, 6, 1, 2, 3, 4, 5, INFINITY);
    run_op(&(struct plim_op){.kind = PLIM_OP_TRIL, .n_out = 1, .n_in = 1, .out = {&y}, .in = {&x}});
    EXPECT_VALUES(&y, 0, 1, 0, 0, 4, 5, 0, 1, 0, 0, 4, 5, 0);
}

Test(reference_tril, a_diagonal_is_another_one_on_either_side)
{
    struct plim_array x = ARRAY(PLIM_F32, 3, 3), y = ARRAY(PLIM_F32, 3, 3);
    VALUES(&x, 1, 2, 3, 4, 5, 6, 7, 8, 9);
    struct plim_op op = {.kind = PLIM_OP_TRIL, .dim = -1, .n_out = 1, .n_in = 1, .out = {&y}, .in = {&x}};
    run_op(&op);
    EXPECT_VALUES(&y, 0, 0, 0, 0, 4, 0, 0, 7, 8, 0);
    op.kind = PLIM_OP_TRIU, op.dim = 1;
    run_op(&op);
    EXPECT_VALUES(&y, 0, 0, 2, 3, 0, 0, 6, 0, 0, 0);
    op.dim = 0;
    run_op(&op);
    EXPECT_VALUES(&y, 0, 1, 2, 3, 0, 5, 6, 0, 0, 9);
}

Test(reference_flip, turns_the_last_dimension_of_a_strided_array)
{
    struct plim_array x = array_transposed(ARRAY(PLIM_F32, 3, 2), 0, 1), y = ARRAY(PLIM_F32, 2, 3);
    VALUES(&x, 1, 2, 3, 4, 5, 6);
    run_op(&(struct plim_op){.kind = PLIM_OP_FLIP, .n_out = 1, .n_in = 1, .out = {&y}, .in = {&x}});
    EXPECT_VALUES(&y, 0, 3, 2, 1, 6, 5, 4);
}

Test(reference_cat, along_an_inner_dimension_of_a_strided_result)
{
    struct plim_array a = ARRAY(PLIM_F32, 2, 1), b = ARRAY(PLIM_BF16, 2, 2),
                      none = ARRAY(PLIM_F32, 2, 0),
                      y = array_transposed(ARRAY(PLIM_F32, 3, 2), 0, 1);
    const struct plim_array *list[] = {&a, &none, &b};
    struct plim_op op = {.kind = PLIM_OP_CAT,
                         .n_out = 1,
                         .n_lists = 1,
                         .dim = 1,
                         .out = {&y},
                         .lists = {list},
                         .list_length = 3};
    VALUES(&a, 1, 4);
    VALUES(&b, 2, 3, 5, 6);
    run_op(&op);
    EXPECT_VALUES(&y, 0, 1, 2, 3, 4, 5, 6);
    op.list_length = 2; /* does not fill the result */
    cr_expect(eq(int, plim_reference_run(&op), PLIM_INVALID));
    list[1] = &b;
    op.list_length = 3; /* more than the result holds */
    cr_expect(eq(int, plim_reference_run(&op), PLIM_INVALID));
}

Test(reference_cat, stacks_scalars)
{
    struct plim_array a = SCALAR(PLIM_F32), b = SCALAR(PLIM_F32), y = ARRAY(PLIM_F32, 2);
    const struct plim_array *list[] = {&a, &b};
    VALUES(&a, 3);
    VALUES(&b, 4);
    run_op(&(struct plim_op){.kind = PLIM_OP_CAT,
                             .n_out = 1,
                             .n_lists = 1,
                             .out = {&y},
                             .lists = {list},
                             .list_length = 2});
    EXPECT_VALUES(&y, 0, 3, 4);
}

/* --- dropout ---------------------------------------------------------------------------------- */

Test(reference_dropout, drops_by_the_elements_numbers_and_scales_the_rest)
{
    struct plim_array x = array_transposed(ARRAY(PLIM_BF16, 50, 40), 0, 1),
                      y = ARRAY(PLIM_F32, 40, 50), mask = ARRAY(PLIM_BOOL, 40, 50);
    array_fill(&x, 3);
    run_op(&(struct plim_op){.kind = PLIM_OP_DROPOUT,
                             .alpha = 0.25,
                             .seed = 9,
                             .n_out = 2,
                             .n_in = 1,
                             .out = {&y, &mask},
                             .in = {&x}});
    int dropped = 0;
    for (int i = 0; i < 2000; i++) {
        bool kept = plim_random_unit(plim_random_word(9, (uint64_t)i)) >= 0.25f;
        cr_assert(eq(dbl, array_at(&mask, i), kept));
        cr_assert(eq(dbl, array_at(&y, i), kept ? 4 : 0));
        dropped += !kept;
    }
    cr_expect(dropped > 420 && dropped < 580, "%d of 2000", dropped);
}

Test(reference_dropout, of_everything_and_of_nothing)
{
    struct plim_array x = ARRAY(PLIM_F32, 3), y = ARRAY(PLIM_F32, 3), mask = ARRAY(PLIM_BOOL, 3);
    struct plim_op op = {
        .kind = PLIM_OP_DROPOUT, .alpha = 1, .n_out = 2, .n_in = 1, .out = {&y, &mask}, .in = {&x}};
    array_fill(&x, 3);
    run_op(&op);
    EXPECT_VALUES(&y, 0, 0, 0, 0);
    op.alpha = 0;
    run_op(&op);
    EXPECT_VALUES(&y, 0, 3, 3, 3);
    EXPECT_VALUES(&mask, 0, 1, 1, 1);
}

Test(reference, reading_back_computes_nothing)
{
    struct plim_array x = SCALAR(PLIM_F32);
    array_put(&x, 0, 5);
    run_op(&(struct plim_op){.kind = PLIM_OP_READ_BACK, .n_in = 1, .in = {&x}});
    EXPECT_VALUES(&x, 0, 5);
}

Test(reference, refuses_every_operation_without_operands)
{
    for (int k = 0; k <= PLIM_OP_KIND_COUNT; k++) {
        struct plim_op op = {.kind = (enum plim_op_kind)k};
        cr_expect(eq(int, plim_reference_run(&op), PLIM_INVALID), "%s", plim_op_name(op.kind));
    }
}
