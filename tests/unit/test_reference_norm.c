#include "devices/host/reference.h"
#include "support/arrays.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <math.h>

enum { ROWS = 6, WIDTH = 9 };

struct layer {
    struct plim_array x, weight, bias, y, mean, rstd;
    struct plim_op forward;
};

/* In place: the operation points into the layer. */
static void layer_init(struct layer *l, enum plim_dtype dtype)
{
    *l = (struct layer){.x = ARRAY(dtype, 2, ROWS / 2, WIDTH),
                        .weight = ARRAY(dtype, WIDTH),
                        .bias = ARRAY(dtype, WIDTH),
                        .y = ARRAY(dtype, 2, ROWS / 2, WIDTH),
                        .mean = ARRAY(PLIM_F32, ROWS),
                        .rstd = ARRAY(PLIM_F32, ROWS)};
    array_scatter(&l->x, 1, -2, 3);
    array_scatter(&l->weight, 2, 0.5, 1.5);
    array_scatter(&l->bias, 3, -1, 1);
    l->forward = (struct plim_op){.kind = PLIM_OP_LAYER_NORM,
                                  .alpha = 1e-2,
                                  .n_out = 3,
                                  .n_in = 3,
                                  .out = {&l->y, &l->mean, &l->rstd},
                                  .in = {&l->x, &l->weight, &l->bias}};
}

static double sum_of_row(const struct plim_array *a, int row, double power)
{
    double sum = 0;
    for (int j = 0; j < WIDTH; j++) sum += pow(array_at(a, row * WIDTH + j), power);
    return sum;
}

Test(reference_layer_norm, standardizes_rows_and_reports_mean_and_rstd)
{
    struct layer l;
    layer_init(&l, PLIM_F32);
    l.forward.n_in = 1;
    run_op(&l.forward);
    for (int i = 0; i < ROWS; i++) {
        double mean = sum_of_row(&l.x, i, 1) / WIDTH;
        double variance = sum_of_row(&l.x, i, 2) / WIDTH - mean * mean; /* biased */
        cr_expect(fabs(array_at(&l.mean, i) - mean) < 1e-6);
        cr_expect(fabs(array_at(&l.rstd, i) - 1 / sqrt(variance + 1e-2)) < 1e-6);
        cr_expect(fabs(sum_of_row(&l.y, i, 1)) < 1e-5);
        cr_expect(fabs(sum_of_row(&l.y, i, 2) / WIDTH - variance / (variance + 1e-2)) < 1e-5);
    }
}

Test(reference_layer_norm, applies_weight_and_bias_where_they_are)
{
    for (int which = 0; which < 4; which++) {
        struct layer l, plain;
        bool weight = which & 1, bias = which & 2;
        layer_init(&l, PLIM_BF16);
        layer_init(&plain, PLIM_F32);
        for (int i = 0; i < ROWS * WIDTH; i++) array_put(&plain.x, i, array_at(&l.x, i));
        plain.forward.n_in = 1;
        run_op(&plain.forward);
        if (!weight) l.forward.in[1] = NULL;
        if (!bias) l.forward.in[2] = NULL;
        run_op(&l.forward);
        for (int i = 0; i < ROWS * WIDTH; i++) {
            double y = array_at(&plain.y, i);
            if (weight) y *= array_at(&l.weight, i % WIDTH);
            if (bias) y += array_at(&l.bias, i % WIDTH);
            cr_expect(fabs(array_at(&l.y, i) - y) <= 0x1p-8 * fabs(y) + 1e-5);
        }
    }
}

Test(reference_layer_norm, of_equal_numbers_is_the_bias)
{
    struct layer l;
    layer_init(&l, PLIM_F32);
    array_fill(&l.x, 7);
    run_op(&l.forward);
    for (int i = 0; i < ROWS * WIDTH; i++)
        cr_expect(eq(dbl, array_at(&l.y, i), array_at(&l.bias, i % WIDTH)));
}

Test(reference_layer_norm, the_backward_is_the_derivative)
{
    for (int weight = 0; weight < 2; weight++) {
        struct layer l;
        struct plim_array dy = ARRAY(PLIM_F32, 2, ROWS / 2, WIDTH),
                          dx = ARRAY(PLIM_F32, 2, ROWS / 2, WIDTH);
        layer_init(&l, PLIM_F32);
        array_scatter(&dy, 4, -1, 1);
        if (!weight) l.forward.in[1] = NULL;
        run_op(&l.forward);
        run_op(&(struct plim_op){.kind = PLIM_OP_LAYER_NORM_BACKWARD,
                                 .n_out = 1,
                                 .n_in = weight ? 5 : 4,
                                 .out = {&dx},
                                 .in = {&dy, &l.x, &l.mean, &l.rstd, weight ? &l.weight : NULL}});
        expect_gradient(&l.forward, &dy, &l.x, &dx, 1e-3);
    }
}

/* A layer and the gradients of its parameters. */
struct params {
    struct layer l;
    struct plim_array dy, dweight, dbias;
    struct plim_op op;
};

/* Runs both operations; in place, as the layer. */
static void params_run(struct params *p)
{
    *p = (struct params){.dy = ARRAY(PLIM_F32, 2, ROWS / 2, WIDTH),
                         .dweight = ARRAY(PLIM_F32, WIDTH),
                         .dbias = ARRAY(PLIM_F32, WIDTH)};
    layer_init(&p->l, PLIM_F32);
    array_scatter(&p->dy, 4, -1, 1);
    run_op(&p->l.forward);
    p->op = (struct plim_op){.kind = PLIM_OP_LAYER_NORM_BACKWARD_PARAMS,
                             .n_out = 2,
                             .n_in = 4,
                             .out = {&p->dweight, &p->dbias},
                             .in = {&p->dy, &p->l.x, &p->l.mean, &p->l.rstd}};
    run_op(&p->op);
}

Test(reference_layer_norm, the_gradients_of_the_parameters_are_derivatives)
{
    struct params p;
    params_run(&p);
    expect_gradient(&p.l.forward, &p.dy, &p.l.weight, &p.dweight, 1e-3);
    expect_gradient(&p.l.forward, &p.dy, &p.l.bias, &p.dbias, 1e-3);
    array_fill(&p.dbias, 5);
    p.op.n_out = 1; /* without a bias */
    run_op(&p.op);
    cr_expect(eq(dbl, array_at(&p.dbias, 0), 5));
}

Test(reference_layer_norm, partial_sums_add_up_to_the_gradients)
{
    struct params p;
    params_run(&p);
    static const int parts[] = {1, 4, ROWS, ROWS + 3};
    for (int k = 0; k < 4; k++) {
        struct plim_array w = ARRAY(PLIM_F32, parts[k], WIDTH),
                          b = ARRAY(PLIM_F32, parts[k], WIDTH);
        p.op.out[0] = &w, p.op.out[1] = &b;
        run_op(&p.op);
        for (int j = 0; j < WIDTH; j++) {
            double sum_w = 0, sum_b = 0;
            for (int part = 0; part < parts[k]; part++) {
                sum_w += array_at(&w, part * WIDTH + j);
                sum_b += array_at(&b, part * WIDTH + j);
            }
            cr_expect(fabs(sum_w - array_at(&p.dweight, j)) < 1e-5);
            cr_expect(fabs(sum_b - array_at(&p.dbias, j)) < 1e-5);
        }
    }
}

Test(reference_layer_norm, refuses_other_shapes)
{
    struct layer l;
    struct plim_array narrow = ARRAY(PLIM_F32, WIDTH - 1), few = ARRAY(PLIM_F32, ROWS - 1);
    layer_init(&l, PLIM_F32);
    l.forward.in[1] = &narrow;
    cr_expect(eq(int, plim_reference_run(&l.forward), PLIM_INVALID));
    l.forward.in[1] = NULL;
    l.forward.out[2] = &few;
    cr_expect(eq(int, plim_reference_run(&l.forward), PLIM_INVALID));
}
