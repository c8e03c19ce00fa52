#include "support/kernel_case.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <math.h>

static struct kernel_case c;

static void setup(void)
{
    kernel_case_init(&c, 17);
}

static void finish(void)
{
    kernel_case_finish(&c);
}

TestSuite(kernels_linear_loss, .init = setup, .fini = finish);

/* A head, and the outputs that are computed. */
struct head {
    enum plim_dtype dtype;
    int64_t rows, classes, width;
    int64_t gap; /* every so manyeth row has no place; 0: all have one */
    double cap;
    int8_t shift;
    bool bias, means, dx, dweight, dbias;
    int64_t offset; /* of x, the weight and their gradients from an aligned address, in elements */
};

static const struct plim_array *x, *weight, *bias, *targets, *places, *lse;
static int64_t count;

static const struct plim_array *matrix(const struct head *h, int64_t rows)
{
    const int64_t shape[2] = {rows, h->width}, stride[2] = {h->width, 1};
    return kernel_case_strided(&c, h->dtype, 2, shape, stride, h->offset);
}

static void fill_all(const struct plim_array *a, double value)
{
    for (int64_t i = 0; i < plim_array_elements(a); i++) kernel_case_set(a, i, value);
}

static const struct plim_array *zeros(const struct plim_array *a)
{
    fill_all(a, 0);
    return a;
}

static const struct plim_array *turns(int64_t number)
{
    return zeros(kernel_case_scratch(&c, number * (int64_t)sizeof(int32_t)));
}

static int64_t divide_up(int64_t n, int64_t by)
{
    return (n + by - 1) / by;
}

/* Logits of a few units. Some targets are no classes, and some rows have none. */
static void make_head(const struct head *h)
{
    x = matrix(h, h->rows);
    weight = matrix(h, h->classes);
    bias = h->bias ? KERNEL_ARRAY(&c, h->dtype, h->classes) : NULL;
    targets = KERNEL_ARRAY(&c, PLIM_I64, h->rows);
    count = 0;
    for (int64_t i = 0; i < h->rows; i++) count += !h->gap || i % h->gap;
    places = KERNEL_ARRAY(&c, PLIM_I64, count);
    for (int64_t i = 0, n = 0; i < h->rows; i++)
        if (!h->gap || i % h->gap) kernel_case_set(places, n++, (double)i);
    double range = 3 / sqrt((double)h->width);
    kernel_case_fill(&c, weight, -range, range);
    for (int64_t i = 0; i < h->rows; i++) {
        int64_t target = i % 11 == 3 ? -100 : i % 13 == 5 ? h->classes : i * 37 % h->classes;
        kernel_case_set(targets, i, (double)target);
    }
    lse = KERNEL_ARRAY(&c, PLIM_F32, count);
    fill_all(lse, -INFINITY);
}

static struct plim_op lse_op(const struct head *h)
{
    struct plim_op op = {.kind = PLIM_OP_LINEAR_LSE,
                         .n_out = 2,
                         .n_in = 4,
                         .n_scratch = 1,
                         .softcap = h->cap,
                         .in = {x, weight, places, bias},
                         .out = {lse}};
    op.out[1] = h->means ? zeros(KERNEL_ARRAY(&c, PLIM_F32, h->classes)) : NULL;
    op.scratch[0] = turns(divide_up(count, PLIM_LINEAR_LOSS_TILE));
    return op;
}

static struct plim_op backward_op(const struct head *h)
{
    int64_t steps = divide_up(h->width, PLIM_LINEAR_LOSS_COLUMNS);
    const struct plim_array *dloss = kernel_case_scalar(&c, PLIM_F32);
    struct plim_op op = {.kind = PLIM_OP_LINEAR_LSE_BACKWARD,
                         .n_out = 3,
                         .n_in = 7,
                         .n_scratch = 2,
                         .softcap = h->cap,
                         .beta = 0.5,
                         .dim = h->shift,
                         .in = {dloss, x, weight, lse, targets, places, bias}};
    kernel_case_set(dloss, 0, 1.5);
    if (h->dx) op.out[0] = zeros(matrix(h, h->rows));
    if (h->dweight) op.out[1] = zeros(matrix(h, h->classes));
    if (h->dbias) op.out[2] = zeros(KERNEL_ARRAY(&c, PLIM_F32, h->classes));
    op.scratch[0] = h->dx ? turns(divide_up(count, PLIM_LINEAR_LOSS_TILE) * steps) : NULL;
    op.scratch[1] = h->dweight ? turns(divide_up(h->classes, PLIM_LINEAR_LOSS_TILE) * steps) : NULL;
    return op;
}

static void skip(const struct plim_array *a, bool skipped)
{
    for (int i = 0; i < c.count; i++)
        if (&c.arrays[i].a == a) c.arrays[i].scratch = skipped;
}

/* Each tile's sum is rounded to 16 bits; those of the bias are not. */
static void check_backward(const struct head *h)
{
    const struct plim_op op = backward_op(h);
    skip(op.out[2], true);
    kernel_case_check(&c, &op, 4, fmax(0.5, sqrt((double)count) / 16));
    skip(op.out[2], false);
    skip(op.out[0], true);
    skip(op.out[1], true);
    if (h->dbias) kernel_case_check(&c, &op, 128, 1);
}

static void check(const struct head h)
{
    if (!kernel_case_has(80)) return;
    make_head(&h);
    struct plim_op forward = lse_op(&h);
    kernel_case_check(&c, &forward, 64, 4);
    struct plim_op target = {.kind = PLIM_OP_LINEAR_TARGET,
                             .n_out = 1,
                             .n_in = 5,
                             .dim = h.shift,
                             .out = {KERNEL_ARRAY(&c, PLIM_F32, count)},
                             .in = {x, weight, targets, places, bias}};
    kernel_case_check(&c, &target, 16, 4);
    kernel_case_run(&c, &forward); /* what backward begins with */
    check_backward(&h);
    kernel_case_finish(&c);
}

/* --- shapes ----------------------------------------------------------------------------------- */

Test(kernels_linear_loss, one_tile_and_parts_of_it)
{
    check((struct head){PLIM_BF16, 128, 128, 64, .shift = 1, .dx = true, .dweight = true});
    check((struct head){PLIM_F16, 1, 1, 8, .dx = true, .dweight = true});
    check((struct head){PLIM_BF16, 5, 3, 72, .shift = 1, .dx = true});
    check((struct head){PLIM_F16, 100, 130, 16, .shift = 1, .dweight = true});
}

Test(kernels_linear_loss, several_tiles_with_all_that_may_be_asked_for)
{
    check((struct head){PLIM_BF16, 300, 400, 96, 4, .shift = 1, .bias = true, .means = true, .dx = true,
                        .dweight = true, .dbias = true});
    check((struct head){PLIM_F16, 270, 517, 136, 3, .cap = 2, .shift = 1, .bias = true, .means = true, .dx = true,
                        .dweight = true, .dbias = true});
    check((struct head){PLIM_BF16, 140, 2300, 64, 2, .cap = 30, .shift = 1, .means = true, .dx = true,
                        .dweight = true});
}

/* Twenty tiles of places: more than a group of them. */
Test(kernels_linear_loss, more_tiles_of_places_than_a_group)
{
    check((struct head){PLIM_BF16, 2500, 200, 16, .shift = 1, .means = true, .dx = true, .dweight = true});
}

Test(kernels_linear_loss, rows_that_are_not_of_whole_16_bytes)
{
    check((struct head){PLIM_BF16, 150, 140, 65, 5, .shift = 1, .bias = true, .dx = true, .dweight = true,
                        .dbias = true});
    check((struct head){PLIM_F16, 7, 9, 1, .shift = 1, .dx = true, .dweight = true});
    check((struct head){PLIM_F16, 30, 20, 64, .shift = 1, .means = true, .dx = true, .dweight = true, .offset = 1});
}

Test(kernels_linear_loss, no_place_leaves_what_was_there)
{
    check((struct head){PLIM_BF16, 1, 40, 64, 1, .shift = 1, .means = true, .dx = true, .dweight = true});
}

/* --- refusals --------------------------------------------------------------------------------- */

static enum plim_status count_launch(void *user, const struct plim_cuda_launch *launch)
{
    (void)launch;
    ++*(int *)user;
    return PLIM_OK;
}

static void expect_plan(const struct plim_op *op, enum plim_status expected, int launches)
{
    int launched = 0;
    cr_expect(eq(int, plim_cuda_plan(&c.info, op, count_launch, &launched), expected));
    cr_expect(eq(int, launched, launches));
}

static const struct head usual = {PLIM_BF16, 40, 50, 64, .shift = 1, .bias = true, .means = true, .dx = true,
                                  .dweight = true, .dbias = true};

Test(kernels_linear_loss, want_tensor_cores_and_16_bits)
{
    make_head(&usual);
    struct plim_op forward = lse_op(&usual), backward = backward_op(&usual);
    expect_plan(&forward, PLIM_OK, 2);
    expect_plan(&backward, PLIM_OK, 1);
    c.info.compute_capability = 75;
    expect_plan(&forward, PLIM_UNSUPPORTED, 0);
    expect_plan(&backward, PLIM_UNSUPPORTED, 0);
    c.info.compute_capability = 80;
    const struct plim_array *wide = KERNEL_ARRAY(&c, PLIM_F32, 40, 64), *other = KERNEL_ARRAY(&c, PLIM_F16, 50, 64);
    forward.in[0] = wide;
    expect_plan(&forward, PLIM_UNSUPPORTED, 0);
    backward.in[2] = other;
    expect_plan(&backward, PLIM_UNSUPPORTED, 0);
}

Test(kernels_linear_loss, want_a_turn_for_every_tile)
{
    make_head(&usual);
    struct plim_op forward = lse_op(&usual), backward = backward_op(&usual);
    forward.n_scratch = 0;
    expect_plan(&forward, PLIM_UNSUPPORTED, 0);
    backward.scratch[0] = NULL;
    expect_plan(&backward, PLIM_UNSUPPORTED, 0);
    backward.out[0] = NULL;
    expect_plan(&backward, PLIM_OK, 1);
    backward.out[1] = NULL; /* and then nobody's turn is known for the bias */
    expect_plan(&backward, PLIM_UNSUPPORTED, 0);
    backward.out[2] = NULL;
    expect_plan(&backward, PLIM_OK, 0);
}

Test(kernels_linear_loss, refuse_other_shapes)
{
    make_head(&usual);
    struct plim_op forward = lse_op(&usual), backward = backward_op(&usual);
    forward.in[1] = KERNEL_ARRAY(&c, PLIM_BF16, 50, 60);
    expect_plan(&forward, PLIM_INVALID, 0);
    forward.in[1] = weight;
    forward.out[0] = KERNEL_ARRAY(&c, PLIM_F32, 39);
    expect_plan(&forward, PLIM_INVALID, 0);
    backward.in[4] = KERNEL_ARRAY(&c, PLIM_I64, 41);
    expect_plan(&backward, PLIM_INVALID, 0);
    backward.in[4] = KERNEL_ARRAY(&c, PLIM_I32, 40);
    expect_plan(&backward, PLIM_UNSUPPORTED, 0);
    backward.in[4] = targets;
    backward.out[1] = KERNEL_ARRAY(&c, PLIM_BF16, 51, 64);
    expect_plan(&backward, PLIM_INVALID, 0);
}
