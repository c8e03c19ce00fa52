#include "devices/host/reference.h"
#include "support/arrays.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <math.h>

typedef const struct plim_array *const list[2];

static struct plim_op foreach (enum plim_foreach f, double alpha, int lists, list a, list b, list c)
{
    return (struct plim_op){.kind = PLIM_OP_FOREACH,
                            .foreach = f,
                            .alpha = alpha,
                            .n_lists = (uint8_t)lists,
                            .lists = {a, b, c},
                            .list_length = 2};
}

static void run_foreach(enum plim_foreach f, double alpha, int lists, list a, list b, list c)
{
    struct plim_op op = foreach (f, alpha, lists, a, b, c);
    run_op(&op);
}

/* --- FOREACH ---------------------------------------------------------------------------------- */

Test(reference_foreach, known_values)
{
    static const struct {
        enum plim_foreach f;
        int lists;
        double alpha, y;
    } known[] = {
        {PLIM_FOREACH_ADD, 2, 0.5, 8},     {PLIM_FOREACH_ADD, 1, 0.5, 6.5},
        {PLIM_FOREACH_MUL, 1, 0.5, 3},     {PLIM_FOREACH_DIV, 1, 0.5, 12},
        {PLIM_FOREACH_LERP, 2, 0.25, 5.5}, {PLIM_FOREACH_ADDCMUL, 3, 0.5, 22},
        {PLIM_FOREACH_ADDCDIV, 3, 2, 7},   {PLIM_FOREACH_SQRT, 2, 0, 2},
    };
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        struct plim_array a = ARRAY(PLIM_F32, 300), b = ARRAY(PLIM_BF16, 300),
                          c = ARRAY(PLIM_F16, 300),
                          scalar[3] = {SCALAR(PLIM_F32), SCALAR(PLIM_F32), SCALAR(PLIM_F32)};
        array_fill(&a, 6), array_fill(&b, 4), array_fill(&c, 8);
        VALUES(&scalar[0], 6);
        VALUES(&scalar[1], 4);
        VALUES(&scalar[2], 8);
        run_foreach(known[i].f, known[i].alpha, known[i].lists, (list){&a, &scalar[0]},
                    (list){&b, &scalar[1]}, (list){&c, &scalar[2]});
        for (int j = 0; j < 300; j++) cr_assert(eq(dbl, array_at(&a, j), known[i].y));
        EXPECT_VALUES(&scalar[0], 0, known[i].y);
    }
}

Test(reference_foreach, multiplies_by_a_number_on_the_device)
{
    struct plim_array a = ARRAY(PLIM_F16, 2), b = SCALAR(PLIM_F32), factor = SCALAR(PLIM_F32);
    VALUES(&a, 1, 2);
    VALUES(&b, 3);
    VALUES(&factor, 0.5);
    struct plim_op op = foreach (PLIM_FOREACH_MUL, 4, 1, (list){&a, &b}, NULL, NULL);
    op.n_in = 1, op.in[0] = &factor;
    run_op(&op);
    EXPECT_VALUES(&a, 0, 2, 4);
    EXPECT_VALUES(&b, 0, 6);
}

Test(reference_foreach, norms)
{
    struct plim_array a = ARRAY(PLIM_F32, 2, 2), b = ARRAY(PLIM_BF16, 700), x = SCALAR(PLIM_F32),
                      y = SCALAR(PLIM_F32);
    VALUES(&a, 1, -2, 2, 4);
    array_fill(&b, -2);
    run_foreach(PLIM_FOREACH_NORM, 2, 2, (list){&x, &y}, (list){&a, &b}, NULL);
    EXPECT_VALUES(&x, 0, 5);
    EXPECT_VALUES(&y, 1e-7, 2 * sqrt(700));
}

Test(reference_foreach, unscaling_finds_what_is_not_finite_before_it_scales)
{
    struct plim_array a = ARRAY(PLIM_F32, 3), b = ARRAY(PLIM_F16, 2), factor = SCALAR(PLIM_F32),
                      found = SCALAR(PLIM_F32);
    struct plim_op op = foreach (PLIM_FOREACH_UNSCALE, 1, 1, (list){&a, &b}, NULL, NULL);
    op.n_in = op.n_out = 1, op.in[0] = &factor, op.out[0] = &found;
    VALUES(&a, 2, -4, 1e30);
    VALUES(&b, 6, 8);
    VALUES(&factor, 0x1p100); /* 1e30 becomes infinite, but it was not */
    VALUES(&found, 0);
    run_op(&op);
    EXPECT_VALUES(&found, 0, 0);
    cr_expect(isinf(array_at(&a, 2)));
    VALUES(&factor, 0.5);
    VALUES(&b, 6, NAN);
    run_op(&op);
    EXPECT_VALUES(&found, 0, 1);
    EXPECT_VALUES(&b, 0, 3, NAN);
}

Test(reference_foreach, refuses_lists_that_do_not_fit)
{
    struct plim_array a = ARRAY(PLIM_F32, 3), b = ARRAY(PLIM_F32, 2);
    struct plim_op op = foreach (PLIM_FOREACH_ADD, 1, 2, (list){&a, &a}, (list){&a, &b}, NULL);
    cr_expect(eq(int, plim_reference_run(&op), PLIM_INVALID));
    op = foreach (PLIM_FOREACH_ADDCMUL, 1, 2, (list){&a, &a}, (list){&a, &a}, NULL);
    cr_expect(eq(int, plim_reference_run(&op), PLIM_INVALID));
    op = foreach (PLIM_FOREACH_NORM, 1, 2, (list){&a, &a}, (list){&a, &a}, NULL);
    cr_expect(eq(int, plim_reference_run(&op), PLIM_INVALID));
    op = foreach (PLIM_FOREACH_UNSCALE, 1, 1, (list){&a, &a}, NULL, NULL);
    cr_expect(eq(int, plim_reference_run(&op), PLIM_INVALID));
    op = foreach (PLIM_FUSED_ADAMW, 1, 1, (list){&a, &a}, NULL, NULL);
    cr_expect(eq(int, plim_reference_run(&op), PLIM_INVALID));
}

/* --- AdamW ------------------------------------------------------------------------------------ */

static const struct plim_adam adam = {
    .rate = 1e-2, .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8, .weight_decay = 0.1, .step = 1};

/* Two tensors with moments, gradients and counters. */
struct parameters {
    struct plim_array p[2], m[2], v[2], g[2], step[2], root[2];
};

static void parameters_init(struct parameters *x)
{
    for (int j = 0; j < 2; j++) {
        struct plim_array *all[] = {&x->p[j], &x->m[j], &x->v[j], &x->g[j], &x->root[j]};
        for (int k = 0; k < 5; k++) *all[k] = j ? ARRAY(PLIM_F32, 300) : ARRAY(PLIM_F32, 3, 4);
        x->step[j] = SCALAR(PLIM_F32);
        array_scatter(&x->p[j], 1, -1, 1);
        array_fill(&x->m[j], 0), array_fill(&x->v[j], 0), array_put(&x->step[j], 0, 0);
    }
}

#define LIST(x, what) ((list){&(x)->what[0], &(x)->what[1]})

static void run_fused(const struct parameters *x, const struct plim_array *found_inf,
                      const struct plim_array *grad_scale)
{
    run_op(&(struct plim_op){
        .kind = PLIM_OP_OPTIMIZER,
        .foreach = PLIM_FUSED_ADAMW,
        .adam = &adam,
        .n_lists = 5,
        .n_in = 2,
        .in = {found_inf, grad_scale},
        .list_length = 2,
        .lists = {LIST(x, p), LIST(x, m), LIST(x, v), LIST(x, step), LIST(x, g)}});
}

/* torch's _multi_tensor_adam, launch by launch. */
static void foreach_step(const struct parameters *x, int step)
{
    double correction1 = 1 - pow(adam.beta1, step), correction2 = 1 - pow(adam.beta2, step);
    run_foreach(PLIM_FOREACH_MUL, 1 - adam.rate * adam.weight_decay, 1, LIST(x, p), NULL, NULL);
    run_foreach(PLIM_FOREACH_LERP, 1 - adam.beta1, 2, LIST(x, m), LIST(x, g), NULL);
    run_foreach(PLIM_FOREACH_MUL, adam.beta2, 1, LIST(x, v), NULL, NULL);
    run_foreach(PLIM_FOREACH_ADDCMUL, 1 - adam.beta2, 3, LIST(x, v), LIST(x, g), LIST(x, g));
    run_foreach(PLIM_FOREACH_SQRT, 0, 2, LIST(x, root), LIST(x, v), NULL);
    run_foreach(PLIM_FOREACH_DIV, sqrt(correction2), 1, LIST(x, root), NULL, NULL);
    run_foreach(PLIM_FOREACH_ADD, adam.epsilon, 1, LIST(x, root), NULL, NULL);
    run_foreach(PLIM_FOREACH_ADDCDIV, -adam.rate / correction1, 3, LIST(x, p), LIST(x, m),
                LIST(x, root));
}

Test(reference_adamw, the_fused_kernel_is_the_foreach_composition)
{
    struct parameters a, b;
    parameters_init(&a);
    parameters_init(&b);
    for (int step = 1; step <= 4; step++) {
        for (int j = 0; j < 2; j++) {
            array_scatter(&a.g[j], (unsigned)step, -1, 1);
            array_scatter(&b.g[j], (unsigned)step, -1, 1);
        }
        foreach_step(&a, step);
        run_fused(&b, NULL, NULL);
        for (int j = 0; j < 2; j++) {
            expect_equal_arrays(&b.p[j], &a.p[j], 1e-6);
            expect_equal_arrays(&b.m[j], &a.m[j], 1e-6);
            expect_equal_arrays(&b.v[j], &a.v[j], 1e-6);
            EXPECT_VALUES(&b.step[j], 0, step);
        }
    }
}

Test(reference_adamw, the_fused_kernel_divides_gradients_by_the_scale)
{
    struct parameters a, b;
    struct plim_array none = SCALAR(PLIM_F32), scale = SCALAR(PLIM_F32);
    array_put(&none, 0, 0);
    array_put(&scale, 0, 1024);
    parameters_init(&a);
    parameters_init(&b);
    for (int j = 0; j < 2; j++) {
        array_scatter(&a.g[j], 3, -1, 1);
        for (int64_t i = 0; i < plim_array_elements(&a.g[j]); i++)
            array_put(&b.g[j], i, 1024 * array_at(&a.g[j], i));
    }
    run_fused(&a, NULL, NULL);
    run_fused(&b, &none, &scale);
    expect_equal_arrays(&b.p[1], &a.p[1], 0);
    expect_equal_arrays(&b.v[1], &a.v[1], 0);
}

Test(reference_adamw, the_fused_kernel_does_nothing_after_an_infinity)
{
    struct parameters a, b;
    struct plim_array found = SCALAR(PLIM_F32);
    array_put(&found, 0, 1);
    parameters_init(&a);
    parameters_init(&b);
    array_fill(&a.g[0], INFINITY), array_fill(&a.g[1], 1);
    run_fused(&a, &found, NULL);
    for (int j = 0; j < 2; j++) {
        expect_equal_arrays(&a.p[j], &b.p[j], 0);
        expect_equal_arrays(&a.m[j], &b.m[j], 0);
        EXPECT_VALUES(&a.step[j], 0, 0);
    }
}

/* bitsandbytes' formula: the step size takes both corrections, epsilon one; decay comes last. */
static double decayed(double p, double m, double v, const struct plim_adam *o)
{
    double c1 = 1 - pow(o->beta1, (double)o->step), c2 = sqrt(1 - pow(o->beta2, (double)o->step));
    double updated = p + -o->rate * c2 / c1 * (m / (sqrt(v) + c2 * o->epsilon));
    return updated * (1 - o->rate * o->weight_decay);
}

Test(reference_adamw, with_states_of_32_bits)
{
    struct plim_array p = ARRAY(PLIM_BF16, 300), m = ARRAY(PLIM_F32, 300), v = ARRAY(PLIM_F32, 300),
                      g = ARRAY(PLIM_BF16, 300);
    struct plim_adam third = adam;
    third.step = 3;
    array_scatter(&p, 1, -1, 1), array_scatter(&m, 2, -1, 1), array_scatter(&v, 3, 0, 1),
        array_scatter(&g, 4, -1, 1);
    double was[3][300];
    for (int i = 0; i < 300; i++)
        was[0][i] = array_at(&p, i), was[1][i] = array_at(&m, i), was[2][i] = array_at(&v, i);
    struct plim_op op = {.kind = PLIM_OP_OPTIMIZER,
                         .foreach = PLIM_ADAMW_32BIT,
                         .adam = &third,
                         .n_out = 3,
                         .n_in = 1,
                         .out = {&p, &m, &v},
                         .in = {&g}};
    run_op(&op);
    for (int i = 0; i < 300; i++) {
        double x = array_at(&g, i), moment = was[1][i] * 0.9 + x * 0.1,
               second = was[2][i] * 0.999 + x * x * 0.001;
        cr_expect(fabs(array_at(&m, i) - moment) < 1e-6);
        cr_expect(fabs(array_at(&v, i) - second) < 1e-6);
        double expected = decayed(was[0][i], moment, second, &third);
        cr_expect(fabs(array_at(&p, i) - expected) <= 0x1p-8 * fabs(expected));
    }
    op.adam = NULL;
    cr_expect(eq(int, plim_reference_run(&op), PLIM_INVALID));
}

/* A tensor of 600 elements with states of 8 bits: two whole blocks and a part of one. Books of
 * even steps from -1 to 1, and from 0 to 1. */
struct eight_bits {
    struct plim_array p, m, v, g, book1, book2, max1, max2;
    struct plim_op op;
};

static void eight_bits_init(struct eight_bits *x)
{
    *x = (struct eight_bits){.p = ARRAY(PLIM_F32, 600),
                             .m = ARRAY(PLIM_U8, 600),
                             .v = ARRAY(PLIM_U8, 600),
                             .g = ARRAY(PLIM_F32, 600),
                             .book1 = ARRAY(PLIM_F32, 256),
                             .book2 = ARRAY(PLIM_F32, 256),
                             .max1 = ARRAY(PLIM_F32, 3),
                             .max2 = ARRAY(PLIM_F32, 3)};
    for (int i = 0; i < 256; i++)
        array_put(&x->book1, i, (i - 127) / 128.0), array_put(&x->book2, i, i / 255.0);
    array_scatter(&x->p, 1, -1, 1), array_scatter(&x->g, 2, -1, 1);
    array_fill(&x->m, 127), array_fill(&x->v, 0), array_fill(&x->max1, 0), array_fill(&x->max2, 0);
    x->op = (struct plim_op){.kind = PLIM_OP_OPTIMIZER,
                             .foreach = PLIM_ADAMW_8BIT,
                             .adam = &adam,
                             .n_out = 3,
                             .n_in = 5,
                             .out = {&x->p, &x->m, &x->v},
                             .in = {&x->g, &x->book1, &x->book2, &x->max1, &x->max2}};
}

/* The largest of a block in magnitude, and each element by the nearest code, found one by one. */
static void expect_quantized(const struct plim_array *codes, const struct plim_array *book,
                             const struct plim_array *maxima, const double *x)
{
    for (int block = 0; block < 3; block++) {
        double maximum = 0;
        int end = block == 2 ? 600 : 256 * (block + 1);
        for (int i = 256 * block; i < end; i++) maximum = fmax(maximum, fabs(x[i]));
        cr_expect(fabs(array_at(maxima, block) - maximum) <= 1e-6 * maximum);
        for (int i = 256 * block; i < end; i++) {
            double least = INFINITY, target = maximum > 0 ? x[i] / maximum : 0;
            for (int c = 0; c < 256; c++) least = fmin(least, fabs(array_at(book, c) - target));
            double error = fabs(array_at(book, (int64_t)array_at(codes, i)) - target);
            cr_assert(error <= least + 1e-6, "element %d: off by %g, at best %g", i, error, least);
        }
    }
}

Test(reference_adamw, with_states_of_8_bits)
{
    struct eight_bits x;
    struct plim_adam at = adam;
    eight_bits_init(&x);
    x.op.adam = &at;
    for (at.step = 1; at.step <= 3; at.step++) {
        double p[600], m[600], v[600];
        array_scatter(&x.g, (unsigned)at.step, -1, 1);
        for (int i = 0; i < 600; i++) {
            double g = array_at(&x.g, i);
            m[i] =
                0.9 * array_at(&x.book1, (int64_t)array_at(&x.m, i)) * array_at(&x.max1, i / 256) +
                0.1 * g;
            v[i] = 0.999 * array_at(&x.book2, (int64_t)array_at(&x.v, i)) *
                       array_at(&x.max2, i / 256) +
                   0.001 * g * g;
            p[i] = decayed(array_at(&x.p, i), m[i], v[i], &at);
        }
        run_op(&x.op);
        expect_values(&x.p, p, 600, 1e-6);
        expect_quantized(&x.m, &x.book1, &x.max1, m);
        expect_quantized(&x.v, &x.book2, &x.max2, v);
    }
}

Test(reference_adamw, of_8_bits_leaves_elements_without_a_finite_gradient)
{
    struct eight_bits x;
    eight_bits_init(&x);
    double was = array_at(&x.p, 300), other = array_at(&x.p, 301);
    array_put(&x.g, 300, NAN);
    run_op(&x.op);
    cr_expect(eq(dbl, array_at(&x.p, 300), was));
    cr_expect(ne(dbl, array_at(&x.p, 301), other));
    cr_expect(eq(dbl, array_at(&x.m, 300), 127));
    cr_expect(eq(dbl, array_at(&x.v, 300), 0));
    cr_expect(isfinite(array_at(&x.max1, 1)));
}

Test(reference_adamw, of_8_bits_keeps_zeros)
{
    struct eight_bits x;
    eight_bits_init(&x);
    array_fill(&x.g, 0);
    run_op(&x.op);
    for (int i = 0; i < 600; i++) cr_assert(eq(dbl, array_at(&x.m, i), 127));
    EXPECT_VALUES(&x.max1, 0, 0, 0, 0);
}

/* --- GradScaler ------------------------------------------------------------------------------- */

Test(reference_amp_update_scale, halves_grows_and_counts)
{
    struct plim_array scale = SCALAR(PLIM_F32), growth = SCALAR(PLIM_I32), found = SCALAR(PLIM_F32);
    struct plim_op op = {.kind = PLIM_OP_OPTIMIZER,
                         .foreach = PLIM_AMP_UPDATE_SCALE,
                         .n_out = 2,
                         .n_in = 1,
                         .out = {&scale, &growth},
                         .in = {&found}};
    array_put(&scale, 0, 65536), array_put(&growth, 0, 7), array_put(&found, 0, 1);
    run_op(&op);
    EXPECT_VALUES(&scale, 0, 32768);
    EXPECT_VALUES(&growth, 0, 0);
    array_put(&growth, 0, 1998), array_put(&found, 0, 0);
    run_op(&op);
    EXPECT_VALUES(&scale, 0, 32768);
    EXPECT_VALUES(&growth, 0, 1999);
    run_op(&op);
    EXPECT_VALUES(&scale, 0, 65536);
    EXPECT_VALUES(&growth, 0, 0);
    array_put(&growth, 0, 1999), array_put(&scale, 0, 0x1p127); /* twice is infinite */
    run_op(&op);
    EXPECT_VALUES(&scale, 0, 0x1p127);
    EXPECT_VALUES(&growth, 0, 0);
}

/* --- torchao's AdamW -------------------------------------------------------------------------- */

enum { KEPT = 512, SCALED = 128 };

/* A tensor of 512 elements with moments in 4 or 8 bits, a scale for each 128; the new ones */
struct few_bits {
    struct plim_array p, g, codes[2], scales[2], books[2], new_scales[2], scaled[2], places[2];
    int bits;
};

static void few_bits_init(struct few_bits *x, int bits)
{
    *x = (struct few_bits){.p = ARRAY(PLIM_F32, KEPT), .g = ARRAY(PLIM_F32, KEPT), .bits = bits};
    int count = 1 << bits;
    array_scatter(&x->p, 1, -1, 1), array_scatter(&x->g, 2, -1, 1);
    for (int k = 0; k < 2; k++) {
        x->codes[k] = ARRAY(PLIM_U8, KEPT * bits / 8);
        x->scales[k] = ARRAY(PLIM_F32, KEPT / SCALED);
        x->books[k] = ARRAY(PLIM_F32, count);
        x->new_scales[k] = ARRAY(PLIM_F32, KEPT / SCALED);
        x->scaled[k] = ARRAY(PLIM_F32, KEPT);
        x->places[k] = ARRAY(PLIM_I64, KEPT);
        array_scatter(&x->codes[k], 3 + (unsigned)k, 0, 256);
        array_scatter(&x->scales[k], 5 + (unsigned)k, 0.01, 0.1);
        for (int i = 0; i < count; i++)
            array_put(&x->books[k], i, k ? (i + 1.0) / count : (2.0 * i + 2 - count) / count);
    }
}

static double few_bits_at(const struct few_bits *x, int k, int i)
{
    int code = (int)array_at(&x->codes[k], x->bits == 8 ? i : i / 2);
    if (x->bits == 4) code = i % 2 ? code & 15 : code >> 4;
    return array_at(&x->books[k], code) * array_at(&x->scales[k], i / SCALED);
}

/* The launches of one step, as the engine makes them */
static void few_bits_step(struct few_bits *x, const struct plim_adam *at)
{
    bool eight = x->bits == 8;
    struct plim_op op = {.kind = PLIM_OP_OPTIMIZER,
                         .foreach = PLIM_TORCHAO_SCALES,
                         .adam = at,
                         .block = SCALED,
                         .n_out = eight ? 4 : 2,
                         .n_in = 7,
                         .out = {&x->new_scales[0], &x->new_scales[1], eight ? &x->scaled[0] : NULL,
                                 eight ? &x->scaled[1] : NULL},
                         .in = {&x->g, &x->codes[0], &x->codes[1], &x->scales[0], &x->scales[1], &x->books[0],
                                &x->books[1]}};
    run_op(&op);
    op.foreach = eight ? PLIM_TORCHAO_STEP_8BIT : PLIM_TORCHAO_STEP_4BIT;
    op.n_out = eight ? 3 : 5;
    op.n_in = 10;
    const struct plim_array *const in[] = {&x->p,         &x->g,         &x->codes[0], &x->codes[1], &x->scales[0],
                                           &x->scales[1], &x->new_scales[0], &x->new_scales[1], &x->books[0],
                                           &x->books[1]};
    for (int i = 0; i < 10; i++) op.in[i] = in[i];
    op.out[0] = &x->p;
    for (int k = 0; k < 2; k++) {
        if (eight) op.in[6 + k] = &x->scaled[k];
        op.out[1 + k] = eight ? &x->codes[k] : &x->scaled[k];
        op.out[3 + k] = eight ? NULL : &x->places[k];
    }
    run_op(&op);
    for (int k = 0; k < 2; k++) {
        const struct plim_op code = {.kind = PLIM_OP_OPTIMIZER,
                                     .foreach = PLIM_TORCHAO_CODES,
                                     .n_out = 1,
                                     .n_in = 3,
                                     .out = {&x->codes[k]},
                                     .in = {&x->scaled[k], &x->places[k], &x->books[k]}};
        if (!eight) run_op(&code);
        for (int i = 0; i < KEPT / SCALED; i++) array_put(&x->scales[k], i, array_at(&x->new_scales[k], i));
    }
}

/* The parameter is as exact as the moments are that it was stepped by; what is kept of these is off by half of a step
 * of the book, or by a whole one below the least number. */
Test(reference_adamw, of_torchao_is_adamw_within_a_step_of_the_book)
{
    for (int bits = 4; bits <= 8; bits += 4) {
        struct few_bits x;
        struct plim_adam at = adam;
        few_bits_init(&x, bits);
        for (at.step = 1; at.step <= 3; at.step++) {
            double p[KEPT], moment[2][KEPT];
            for (int i = 0; i < KEPT; i++) {
                double g = array_at(&x.g, i), c1 = 1 - pow(at.beta1, (double)at.step);
                double c2 = 1 - pow(at.beta2, (double)at.step);
                moment[0][i] = at.beta1 * few_bits_at(&x, 0, i) + (1 - at.beta1) * g;
                moment[1][i] = at.beta2 * few_bits_at(&x, 1, i) + (1 - at.beta2) * g * g;
                p[i] = array_at(&x.p, i) * (1 - at.rate * at.weight_decay) -
                       at.rate * (moment[0][i] / c1) / (sqrt(moment[1][i] / c2) + at.epsilon);
            }
            few_bits_step(&x, &at);
            expect_values(&x.p, p, KEPT, 1e-6);
            for (int k = 0; k < 2; k++)
                for (int i = 0; i < KEPT; i++) {
                    double most = 0, step = (k ? 1.0 : 2.0) / (1 << bits);
                    for (int j = i / SCALED * SCALED; j < (i / SCALED + 1) * SCALED; j++)
                        most = fmax(most, fabs(moment[k][j]));
                    cr_expect(fabs(array_at(&x.scales[k], i / SCALED) - most) <= 1e-6 * most);
                    double off = fabs(few_bits_at(&x, k, i) - moment[k][i]) / most;
                    bool is_below = moment[k][i] < array_at(&x.books[k], 0) * most;
                    cr_assert(off <= step * (is_below ? 1 : 0.5) + 1e-6, "%d bits, moment %d, element %d: %g", bits, k,
                              i, off);
                }
        }
    }
}
