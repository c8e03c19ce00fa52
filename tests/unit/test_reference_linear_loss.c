#include "devices/host/reference.h"
#include "support/arrays.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <math.h>

enum { ROWS = 50, PLACES = 40, CLASSES = 70, WIDTH = 3, SHIFT = 1 }; /* more than one block of each */

static struct plim_array x, weight, bias, targets, places, lse, means, chosen;
static double cap;

/* Every fifth row has no place, and some targets are no classes. */
static void setup(void)
{
    x = ARRAY(PLIM_F32, ROWS, WIDTH);
    weight = ARRAY(PLIM_F32, CLASSES, WIDTH);
    bias = ARRAY(PLIM_F32, CLASSES);
    targets = ARRAY(PLIM_I64, ROWS);
    places = ARRAY(PLIM_I64, PLACES);
    lse = ARRAY(PLIM_F32, PLACES);
    means = ARRAY(PLIM_F32, CLASSES);
    chosen = ARRAY(PLIM_F32, PLACES);
    array_scatter(&x, 1, -1, 1);
    array_scatter(&weight, 2, -1, 1);
    array_scatter(&bias, 3, -1, 1);
    for (int i = 0; i < ROWS; i++)
        array_put_integer(&targets, i, i % 17 == 3 ? -100 : i % 19 == 4 ? CLASSES : i * 3 % CLASSES);
    for (int i = 0; i < PLACES; i++) array_put_integer(&places, i, i / 4 * 5 + i % 4);
}

TestSuite(reference_linear_loss, .init = setup);

/* Row `i` of those that have a place; before the cap. */
static double plain_logit(int i, int64_t class)
{
    double z = array_at(&bias, class);
    for (int j = 0; j < WIDTH; j++)
        z += array_at(&x, array_integer_at(&places, i) * WIDTH + j) * array_at(&weight, class * WIDTH + j);
    return z;
}

static double capped(double z)
{
    return cap > 0 ? cap * tanh(z / cap) : z;
}

static int64_t target_of(int i)
{
    int64_t at = array_integer_at(&places, i) + SHIFT, target = at < ROWS ? array_integer_at(&targets, at) : -1;
    return target >= 0 && target < CLASSES ? target : -1;
}

static double logsumexp_of(int i)
{
    double sum = 0;
    for (int c = 0; c < CLASSES; c++) sum += exp(capped(plain_logit(i, c)));
    return log(sum);
}

static double loss(void)
{
    double sum = 0;
    for (int i = 0; i < PLACES; i++)
        sum += logsumexp_of(i) - (target_of(i) < 0 ? 0 : capped(plain_logit(i, target_of(i))));
    return sum;
}

static void make_lse(void)
{
    const struct plim_op op = {.kind = PLIM_OP_LINEAR_LSE,
                               .n_out = 2,
                               .n_in = 4,
                               .softcap = cap,
                               .out = {&lse, &means},
                               .in = {&x, &weight, &places, &bias}};
    run_op(&op);
}

Test(reference_linear_loss, logsumexp_and_means_of_the_logits)
{
    for (cap = 0; cap < 3; cap += 1.5) {
        make_lse();
        for (int i = 0; i < PLACES; i++)
            cr_expect(fabs(array_at(&lse, i) - logsumexp_of(i)) < 1e-5, "row %d, cap %g", i, cap);
        for (int c = 0; c < CLASSES; c++) {
            double sum = 0;
            for (int i = 0; i < PLACES; i++) sum += capped(plain_logit(i, c));
            cr_expect(fabs(array_at(&means, c) - sum / PLACES) < 1e-5, "class %d, cap %g", c, cap);
        }
    }
}

Test(reference_linear_loss, logits_of_targets_before_the_cap)
{
    const struct plim_op op = {.kind = PLIM_OP_LINEAR_TARGET,
                               .n_out = 1,
                               .n_in = 5,
                               .dim = SHIFT,
                               .out = {&chosen},
                               .in = {&x, &weight, &targets, &places, &bias}};
    run_op(&op);
    for (int i = 0; i < PLACES; i++) {
        double expected = target_of(i) < 0 ? 0 : -plain_logit(i, target_of(i));
        cr_expect(fabs(array_at(&chosen, i) - expected) < 1e-5, "row %d", i);
    }
}

static void expect_slopes(const struct plim_array *a, const struct plim_array *da, double scale)
{
    const double step = 1e-2;
    for (int64_t i = 0; i < plim_array_elements(a); i++) {
        double at = array_at(a, i), ahead, behind;
        array_put(a, i, at + step), ahead = loss();
        array_put(a, i, at - step), behind = loss();
        array_put(a, i, at);
        double slope = scale * (ahead - behind) / (2 * step);
        cr_assert(fabs(array_at(da, i) - slope) < 1e-3 * fmax(1, fabs(slope)), "element %d: %g, differences %g", (int)i,
                  array_at(da, i), slope);
    }
}

static void check_gradients(void)
{
    struct plim_array dloss = SCALAR(PLIM_F32), dx = ARRAY(PLIM_F32, ROWS, WIDTH), dbias = ARRAY(PLIM_F32, CLASSES),
                      dweight = ARRAY(PLIM_F32, CLASSES, WIDTH);
    const struct plim_op op = {.kind = PLIM_OP_LINEAR_LSE_BACKWARD,
                               .n_out = 3,
                               .n_in = 7,
                               .softcap = cap,
                               .beta = 0.5,
                               .dim = SHIFT,
                               .out = {&dx, &dweight, &dbias},
                               .in = {&dloss, &x, &weight, &lse, &targets, &places, &bias}};
    array_put(&dloss, 0, 1.5);
    array_fill(&dx, 0), array_fill(&dweight, 0), array_fill(&dbias, 0);
    make_lse();
    run_op(&op);
    expect_slopes(&x, &dx, 0.75);
    expect_slopes(&weight, &dweight, 0.75);
    expect_slopes(&bias, &dbias, 0.75);
}

Test(reference_linear_loss, gradients_are_the_derivatives)
{
    cap = 0;
    check_gradients();
    cap = 1.5;
    check_gradients();
}

Test(reference_linear_loss, refuses_other_shapes_and_places_that_are_none)
{
    struct plim_array few = ARRAY(PLIM_F32, PLACES - 1);
    struct plim_op op = {
        .kind = PLIM_OP_LINEAR_LSE, .n_out = 1, .n_in = 3, .out = {&few}, .in = {&x, &weight, &places}};
    cr_expect(eq(int, plim_reference_run(&op), PLIM_INVALID));
    op.out[0] = &lse;
    cr_expect(eq(int, plim_reference_run(&op), PLIM_OK));
    array_put_integer(&places, 7, ROWS);
    cr_expect(eq(int, plim_reference_run(&op), PLIM_INVALID));
    array_put_integer(&places, 7, 8);
    op.in[1] = &x; /* as many columns */
    cr_expect(eq(int, plim_reference_run(&op), PLIM_OK));
    op.in[1] = &bias;
    cr_expect(eq(int, plim_reference_run(&op), PLIM_INVALID));
}
