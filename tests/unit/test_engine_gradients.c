/* Gradients of the engine's operations against differences of what they compute, on the host. */
#include "support/arrays.h"
#include "support/slopes.h"
#include "workloads/engine/ops.h"
#include "workloads/engine/ops_trl.h"

#include <criterion/criterion.h>
#include <math.h>

static struct engine *e;

static void setup(void)
{
    e = slopes_open();
}

static void teardown(void)
{
    slopes_close();
}

TestSuite(engine_gradients, .init = setup, .fini = teardown);

static struct tensor *solve_lower(struct tensor *const x[2])
{
    return op_solve_triangular(e, x[0], x[1], false);
}
static struct tensor *solve_upper(struct tensor *const x[2])
{
    return op_solve_triangular(e, x[0], x[1], true);
}
Test(engine_gradients, of_triangular_systems)
{
    expect_slopes(solve_lower,
                  (struct tensor *[]){variable(SHAPE(2, 4, 4), 1), variable(SHAPE(2, 4, 3), 2)});
    expect_slopes(solve_upper,
                  (struct tensor *[]){variable(SHAPE(2, 4, 4), 3), variable(SHAPE(2, 4, 3), 4)});
}

static struct tensor *running_sums(struct tensor *const x[2])
{
    return op_cumsum_last(e, x[0], PLIM_F32);
}
Test(engine_gradients, of_running_sums)
{
    expect_slopes(running_sums, (struct tensor *[]){variable(SHAPE(2, 5), 1), NULL});
}

static struct tensor *sums_of_columns(struct tensor *const x[2])
{
    return op_cumsum(e, x[0], -2, PLIM_F32);
}
Test(engine_gradients, of_running_sums_along_another_dimension)
{
    expect_slopes(sums_of_columns, (struct tensor *[]){variable(SHAPE(2, 5, 3), 1), NULL});
    struct tensor *x = variable(SHAPE(1, 3, 2), 2), *y = tensor_keep(op_cumsum(e, x, 1, PLIM_F32));
    cr_expect_float_eq(array_at(&y->a, 5), array_at(&x->a, 1) + array_at(&x->a, 3) + array_at(&x->a, 5), 1e-6);
    tensor_drop(e, y);
}

static struct tensor *behind_zeros(struct tensor *const x[2])
{
    return op_pad_start(e, x[0], 1, 2);
}
Test(engine_gradients, of_zeros_before_a_row)
{
    expect_slopes(behind_zeros, (struct tensor *[]){variable(SHAPE(2, 3, 2), 1), NULL});
    struct tensor *x = variable(SHAPE(1, 3), 2), *y = tensor_keep(op_pad_start(e, x, 1, 2));
    cr_assert_eq(tensor_size(y, 1), 5);
    cr_expect_eq(array_at(&y->a, 1), 0);
    cr_expect_eq(array_at(&y->a, 2), array_at(&x->a, 0));
    tensor_drop(e, y);
}

/* The second part is written over what the first operand is made of. */
static struct tensor *write_parts(struct tensor *const x[2])
{
    struct tensor *y = tensor_keep(op_mul_scalar(e, x[0], 3));
    tensor_set(e, &y, op_set_part_(e, y, 1, 2, op_mul_scalar(e, x[1], 2)));
    tensor_set(e, &y, op_set_part_(e, y, 1, 0, x[1]));
    return tensor_yield(y);
}
Test(engine_gradients, of_what_is_written_into_parts)
{
    expect_slopes(write_parts,
                  (struct tensor *[]){variable(SHAPE(2, 3, 4), 1), variable(SHAPE(2, 4), 2)});
}

static struct tensor *convolve(struct tensor *const x[2])
{
    return op_depthwise(e, x[0], x[1], NULL, 2);
}
Test(engine_gradients, of_convolutions_of_channels)
{
    expect_slopes(convolve,
                  (struct tensor *[]){variable(SHAPE(2, 3, 5), 1), variable(SHAPE(3, 1, 3), 2)});
}

static struct tensor *of_channels_and_biases(struct tensor *const x[2])
{
    struct tensor *kernels = tensor_keep(op_full(e, PLIM_F32, SHAPE(3, 1, 3), 0.5));
    struct tensor *y = op_depthwise(e, x[0], kernels, x[1], 2);
    tensor_drop(e, kernels);
    return y;
}
Test(engine_gradients, of_convolutions_of_channels_with_biases)
{
    expect_slopes(of_channels_and_biases,
                  (struct tensor *[]){variable(SHAPE(2, 3, 5), 1), variable(SHAPE(3), 2)});
}

/* Of all channels together, by steps of one and two, the first and the last window half beside the row */
static struct tensor *fixed;
static int64_t step;

static struct tensor *of_rows_and_kernels(struct tensor *const x[2])
{
    return op_conv1d(e, x[0], x[1], fixed, step, 1);
}
static struct tensor *of_kernels_and_biases(struct tensor *const x[2])
{
    return op_conv1d(e, fixed, x[0], x[1], step, 1);
}
Test(engine_gradients, of_convolutions_along_rows)
{
    for (step = 1; step <= 2; step++)
        for (int64_t length = 5; length <= 6; length++) {
            fixed = tensor_keep(op_full(e, PLIM_F32, SHAPE(4), 0.5));
            expect_slopes(of_rows_and_kernels,
                          (struct tensor *[]){variable(SHAPE(2, 3, length), 1), variable(SHAPE(4, 3, 3), 2)});
            tensor_set(e, &fixed, op_full(e, PLIM_F32, SHAPE(2, 3, length), 0.5));
            expect_slopes(of_kernels_and_biases,
                          (struct tensor *[]){variable(SHAPE(4, 3, 3), 1), variable(SHAPE(4), 2)});
            tensor_drop(e, fixed);
        }
}

/* Each result is the sum over a window, with zero padding around the row, plus its kernel's bias. */
Test(engine_gradients, convolutions_along_rows_are_sums_over_windows)
{
    enum { CHANNELS = 3, LENGTH = 6, KERNELS = 4, TAPS = 3, RESULTS = 3 };
    struct tensor *x = variable(SHAPE(2, CHANNELS, LENGTH), 1), *weight = variable(SHAPE(KERNELS, CHANNELS, TAPS), 2),
                  *bias = variable(SHAPE(KERNELS), 3);
    struct tensor *y = tensor_keep(op_conv1d(e, x, weight, bias, 2, 1));
    cr_assert_eq(tensor_elements(y), 2 * KERNELS * RESULTS);
    for (int64_t i = 0; i < 2 * KERNELS * RESULTS; i++) {
        int64_t row = i / (KERNELS * RESULTS), kernel = i / RESULTS % KERNELS, first = 2 * (i % RESULTS) - 1;
        double sum = array_at(&bias->a, kernel);
        for (int64_t channel = 0; channel < CHANNELS; channel++)
            for (int64_t tap = 0; tap < TAPS; tap++)
                if (first + tap >= 0 && first + tap < LENGTH)
                    sum += array_at(&x->a, (row * CHANNELS + channel) * LENGTH + first + tap) *
                           array_at(&weight->a, (kernel * CHANNELS + channel) * TAPS + tap);
        cr_expect_float_eq(array_at(&y->a, i), sum, 1e-6, "%lld", (long long)i);
    }
    tensor_drop_all(e, x, weight, bias, y);
}

static struct tensor *grow(struct tensor *const x[2])
{
    struct tensor *y = op_pad(e, op_pad(e, x[0], 1, 2), 0, -1);
    return op_softplus(e, op_exp(e, op_repeat_each(e, op_masked_fill(e, y, x[1], -1), 1, 3)));
}
Test(engine_gradients, of_padding_repeating_masks_and_exponentials)
{
    struct tensor *mask = tensor_keep(op_full(e, PLIM_BOOL, SHAPE(2, 6), 0));
    array_put(&mask->a, 3, 1);
    struct tensor *x = variable(SHAPE(3, 4), 1), *given[2] = {tensor_ref(x), tensor_ref(mask)};
    expect_slopes(grow, given);
    cr_expect_eq(array_at(&x->grad->a, 3), 0, "masked");
    tensor_drop_all(e, x, mask);
}

static struct tensor *smaller_of(struct tensor *const x[2])
{
    return op_trl_minimum(e, x[0], x[1]);
}
/* Each has half of the gradient where they are equal, of which the difference to both sides is half, too. */
Test(engine_gradients, of_minima)
{
    struct tensor *a = variable(SHAPE(2, 6), 1), *b = variable(SHAPE(2, 6), 2);
    array_put(&b->a, 4, array_at(&a->a, 4));
    expect_slopes(smaller_of, (struct tensor *[]){a, b});
}

static struct tensor *log_odds(struct tensor *const x[2])
{
    return op_log1p(e, op_rsub_scalar(e, op_exp(e, x[0]), 3));
}
Test(engine_gradients, of_logarithms_of_one_more)
{
    expect_slopes(log_odds, (struct tensor *[]){variable(SHAPE(2, 5), 1), NULL});
}

/* log(1 - exp(-exp(x))) */
static struct tensor *log_of_rest(struct tensor *const x[2])
{
    struct tensor *power = tensor_keep(op_neg(e, op_exp(e, x[0])));
    struct tensor *y = op_log(e, op_neg(e, op_expm1(e, power)));
    tensor_drop(e, power);
    return y;
}
Test(engine_gradients, of_logarithms)
{
    expect_slopes(log_of_rest, (struct tensor *[]){variable(SHAPE(2, 5), 1), NULL});
}

static struct tensor *mean_of_numbers(struct tensor *const x[2])
{
    struct tensor *mean = op_nanmean(e, x[0]);
    return op_mul(e, mean, x[1]);
}
Test(engine_gradients, of_means_of_numbers)
{
    expect_slopes(mean_of_numbers, (struct tensor *[]){variable(SHAPE(6), 1), variable(SHAPE(1), 2)});
}

static struct tensor *some_rows(struct tensor *const x[2])
{
    struct tensor *mask = tensor_keep(op_full(e, PLIM_BOOL, SHAPE(4), 1));
    array_put(&mask->a, 1, 0);
    struct tensor *rows = op_mul(e, op_rows_where(e, x[0], mask, 3), op_rows_where(e, x[1], mask, 3));
    tensor_drop(e, mask);
    return rows;
}
Test(engine_gradients, of_rows_by_a_mask)
{
    expect_slopes(some_rows, (struct tensor *[]){variable(SHAPE(4, 1), 1), variable(SHAPE(4), 2)});
}

static struct tensor *likely(struct tensor *const x[2])
{
    return op_log_softmax(e, op_slice(e, x[0], 1, 0, 2));
}
Test(engine_gradients, of_a_part_that_does_not_lie_together)
{
    expect_slopes(likely, (struct tensor *[]){variable(SHAPE(2, 3, 4), 1), NULL});
}

/* Distances of two tokens to one another, by which both rows of scores are read */
static struct tensor *chosen_again(struct tensor *const x[2])
{
    struct tensor *index = tensor_keep(op_full(e, PLIM_I64, SHAPE(1, 2, 4), 0));
    for (int i = 0; i < 8; i++) array_put(&index->a, i, (int[]){2, 1, 1, 0, 0, 2, 2, 2}[i]);
    struct tensor *wide = op_expand(e, index, SHAPE(3, 2, 4));
    struct tensor *y = op_mul(e, op_gather_any(e, x[0], wide), x[1]);
    tensor_drop(e, index);
    return y;
}
/* The same with a transposed gradient */
static struct tensor *chosen_across(struct tensor *const x[2])
{
    struct tensor *index = tensor_keep(op_full(e, PLIM_I64, SHAPE(1, 2, 4), 1));
    struct tensor *y = op_gather_any(e, x[0], op_expand(e, index, SHAPE(3, 2, 4)));
    tensor_drop(e, index);
    return op_mul(e, op_transpose(e, y, 1, 2), x[1]);
}
Test(engine_gradients, of_what_is_chosen_more_than_once)
{
    expect_slopes(chosen_again, (struct tensor *[]){variable(SHAPE(3, 2, 3), 1), variable(SHAPE(3, 2, 4), 2)});
    expect_slopes(chosen_across, (struct tensor *[]){variable(SHAPE(3, 2, 3), 1), variable(SHAPE(3, 4, 2), 2)});
}

static struct tensor *chosen_rows(struct tensor *const x[2])
{
    struct tensor *places = tensor_keep(op_full(e, PLIM_I64, SHAPE(2), 0));
    array_put(&places->a, 0, 2);
    struct tensor *y = op_mul(e, op_gather_rows(e, x[0], places), x[1]);
    tensor_drop(e, places);
    return y;
}
Test(engine_gradients, of_rows_that_are_gathered)
{
    expect_slopes(chosen_rows, (struct tensor *[]){variable(SHAPE(3, 4), 1), variable(SHAPE(2, 4), 2)});
}

static struct tensor *repeated(struct tensor *const x[2])
{
    return op_mul(e, op_repeat(e, x[0], 3), x[1]);
}
Test(engine_gradients, of_what_is_repeated)
{
    expect_slopes(repeated, (struct tensor *[]){variable(SHAPE(2, 3), 1), variable(SHAPE(6, 3), 2)});
}

/* -log sum exp, and the selected elements, of rows that are not adjacent */
static struct tensor *chosen_logs(struct tensor *const x[2])
{
    struct tensor *part = tensor_keep(op_slice(e, x[0], 1, 0, 2));
    struct tensor *at = tensor_keep(op_full(e, PLIM_I64, SHAPE(2, 2), 1));
    struct tensor *chosen = op_row_gather(e, part, at), *norms = op_row_logsumexp(e, part);
    struct tensor *y = op_sub(e, chosen, op_unsqueeze(e, norms, -1));
    struct tensor *mask = tensor_keep(op_full(e, PLIM_BOOL, SHAPE(2, 2), 0)), *base = tensor_keep(y);
    array_put(&mask->a, 3, 1);
    struct tensor *logs = op_mul_scalar(e, op_zero_where_(e, base, mask), 3);
    tensor_drop_all(e, part, at, mask, base);
    return logs;
}
/* The same by TRL 1.16's kernel */
static struct tensor *label_logs(struct tensor *const x[2])
{
    struct tensor *part = tensor_keep(op_slice(e, x[0], 1, 0, 2));
    struct tensor *at = tensor_keep(op_full(e, PLIM_I64, SHAPE(2, 2), 1));
    struct tensor *logs = op_mul(e, op_label_log_probs(e, part, at), x[1]);
    tensor_drop_all(e, part, at);
    return logs;
}
Test(engine_gradients, of_logarithms_of_labels)
{
    expect_slopes(label_logs, (struct tensor *[]){variable(SHAPE(2, 3, 4), 1), variable(SHAPE(2, 2), 2)});
}

Test(engine_gradients, of_logarithms_of_what_is_chosen)
{
    expect_slopes(chosen_logs, (struct tensor *[]){variable(SHAPE(2, 3, 4), 1), NULL});
}
