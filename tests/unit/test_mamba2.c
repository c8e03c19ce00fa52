/* The scan of Mamba-2 in chunks, on the host, beside its recurrence from token to token; and its gradients. */
#include "support/arrays.h"
#include "support/slopes.h"
#include "workloads/nn/nn.h"

#include <criterion/criterion.h>
#include <math.h>

enum { ROWS = 2, HEADS = 4, WIDTH = 2, GROUPS = 2, STATE = 3, LONGEST = 9 };

static struct engine *e;
static struct mamba2_scan scan;
static int64_t tokens;

static void setup(void)
{
    e = slopes_open();
}

static void teardown(void)
{
    slopes_close();
}

TestSuite(mamba2, .init = setup, .fini = teardown);

static void make(int64_t length, int64_t chunk)
{
    tokens = length;
    scan = (struct mamba2_scan){.x = variable(SHAPE(ROWS, length, HEADS, WIDTH), 1),
                                .step = variable(SHAPE(ROWS, length, HEADS), 2),
                                .b = variable(SHAPE(ROWS, length, GROUPS, STATE), 3),
                                .c = variable(SHAPE(ROWS, length, GROUPS, STATE), 4),
                                .a = variable(SHAPE(HEADS), 5),
                                .skip = variable(SHAPE(HEADS), 6),
                                .step_bias = variable(SHAPE(HEADS), 7),
                                .chunk = chunk};
}

/* The result for one element of a head: h <- exp(step a) h + step b x, y = c h + skip x. */
static void recur(int64_t row, int64_t head, int64_t element, double y[LONGEST])
{
    double h[STATE] = {0};
    int64_t group = head / (HEADS / GROUPS);
    for (int64_t t = 0; t < tokens; t++) {
        int64_t token = row * tokens + t, of_group = (token * GROUPS + group) * STATE;
        double x = array_at(&scan.x->a, (token * HEADS + head) * WIDTH + element);
        double step = log1p(exp(array_at(&scan.step->a, token * HEADS + head) + array_at(&scan.step_bias->a, head)));
        y[t] = array_at(&scan.skip->a, head) * x;
        for (int64_t n = 0; n < STATE; n++) {
            h[n] = exp(step * array_at(&scan.a->a, head)) * h[n] + step * array_at(&scan.b->a, of_group + n) * x;
            y[t] += array_at(&scan.c->a, of_group + n) * h[n];
        }
    }
}

/* Rows of one chunk and of several, whole and cut */
Test(mamba2, chunks_are_the_recurrence)
{
    static const int64_t lengths[] = {4, 8, 9, 3, 1};
    for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
        make(lengths[i], 4);
        struct tensor *y = tensor_keep(nn_mamba2_scan(e, &scan));
        cr_assert(!e->halted);
        for (int64_t k = 0; k < ROWS * HEADS * WIDTH; k++) {
            int64_t row = k / (HEADS * WIDTH), head = k / WIDTH % HEADS, element = k % WIDTH;
            double expected[LONGEST];
            recur(row, head, element, expected);
            for (int64_t t = 0; t < tokens; t++) {
                double ours = array_at(&y->a, ((row * tokens + t) * HEADS + head) * WIDTH + element);
                cr_expect(fabs(ours - expected[t]) < 1e-4, "%d tokens, token %d: %g, expected %g", (int)tokens, (int)t,
                          ours, expected[t]);
            }
        }
        tensor_drop(e, y);
    }
}

static struct tensor *of_inputs(struct tensor *const x[2])
{
    struct mamba2_scan s = scan;
    s.x = x[0], s.step = x[1];
    return nn_mamba2_scan(e, &s);
}
static struct tensor *of_matrices(struct tensor *const x[2])
{
    struct mamba2_scan s = scan;
    s.b = x[0], s.c = x[1];
    return nn_mamba2_scan(e, &s);
}
static struct tensor *of_heads(struct tensor *const x[2])
{
    struct mamba2_scan s = scan;
    s.a = x[0], s.skip = x[1];
    return nn_mamba2_scan(e, &s);
}
Test(mamba2, gradients_are_slopes)
{
    make(5, 2);
    expect_slopes(of_inputs, (struct tensor *[]){scan.x, scan.step});
    make(5, 2);
    expect_slopes(of_matrices, (struct tensor *[]){scan.b, scan.c});
    make(5, 2);
    expect_slopes(of_heads, (struct tensor *[]){scan.a, scan.skip});
}
