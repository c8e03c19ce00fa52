#include "devices/host/reference.h"
#include "devices/random.h"
#include "support/arrays.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <math.h>

enum { BATCH = 2, HEADS = 4, GROUPS = 2, ROWS = 5, COLUMNS = 6, SIZE = 3, OUT_SIZE = 4 };

struct head {
    struct plim_array q, k, v, mask, out, logsumexp, dout, dq, dk, dv;
    struct plim_op forward, backward;
};

/* The operations refer to its arrays. q is in (b, s, heads, d) order in memory, as in models. */
static void head_init(struct head *h, enum plim_dtype dtype, int64_t groups, bool mask)
{
    *h = (struct head){.q = array_transposed(ARRAY(dtype, BATCH, ROWS, HEADS, SIZE), 1, 2),
                       .k = ARRAY(dtype, BATCH, groups, COLUMNS, SIZE),
                       .v = ARRAY(dtype, BATCH, groups, COLUMNS, OUT_SIZE),
                       .mask = ARRAY(dtype, BATCH, 1, ROWS, COLUMNS),
                       .out = array_transposed(ARRAY(dtype, BATCH, ROWS, HEADS, OUT_SIZE), 1, 2),
                       .logsumexp = ARRAY(PLIM_F32, BATCH, HEADS, ROWS),
                       .dout = ARRAY(dtype, BATCH, HEADS, ROWS, OUT_SIZE),
                       .dq = array_transposed(ARRAY(dtype, BATCH, ROWS, HEADS, SIZE), 1, 2),
                       .dk = ARRAY(dtype, BATCH, groups, COLUMNS, SIZE),
                       .dv = ARRAY(dtype, BATCH, groups, COLUMNS, OUT_SIZE)};
    array_scatter(&h->q, 1, -2, 2);
    array_scatter(&h->k, 2, -2, 2);
    array_scatter(&h->v, 3, -1, 1);
    array_scatter(&h->mask, 4, -1, 1);
    array_scatter(&h->dout, 5, -1, 1);
    h->forward = (struct plim_op){.kind = PLIM_OP_ATTENTION,
                                  .beta = 0.5,
                                  .n_out = 2,
                                  .n_in = mask ? 4 : 3,
                                  .out = {&h->out, &h->logsumexp},
                                  .in = {&h->q, &h->k, &h->v, mask ? &h->mask : NULL}};
    h->backward = (struct plim_op){
        .kind = PLIM_OP_ATTENTION_BACKWARD,
        .beta = 0.5,
        .n_out = 3,
        .n_in = mask ? 7 : 6,
        .out = {&h->dq, &h->dk, &h->dv},
        .in = {&h->dout, &h->q, &h->k, &h->v, &h->out, &h->logsumexp, mask ? &h->mask : NULL}};
}

static void expect_gradients(struct head *h)
{
    run_op(&h->forward);
    run_op(&h->backward);
    expect_gradient(&h->forward, &h->dout, &h->q, &h->dq, 2e-3);
    expect_gradient(&h->forward, &h->dout, &h->k, &h->dk, 2e-3);
    expect_gradient(&h->forward, &h->dout, &h->v, &h->dv, 2e-3);
}

/* The same by operations: matmul, mask, softmax, matmul. */
Test(reference_attention, is_matmul_softmax_matmul)
{
    struct head h;
    head_init(&h, PLIM_F32, HEADS, true);
    struct plim_array kt = array_transposed(h.k, 2, 3),
                      scores = ARRAY(PLIM_F32, BATCH, HEADS, ROWS, COLUMNS),
                      y = ARRAY(PLIM_F32, BATCH, HEADS, ROWS, OUT_SIZE);
    run_op(&(struct plim_op){.kind = PLIM_OP_MATMUL,
                             .alpha = 0.5,
                             .beta = 1,
                             .n_out = 1,
                             .n_in = 3,
                             .out = {&scores},
                             .in = {&h.q, &kt, &h.mask}});
    struct plim_array logsumexp = ARRAY(PLIM_F32, BATCH, HEADS, ROWS);
    for (int row = 0; row < BATCH * HEADS * ROWS; row++) {
        double sum = 0;
        for (int j = 0; j < COLUMNS; j++) sum += exp(array_at(&scores, row * COLUMNS + j));
        array_put(&logsumexp, row, log(sum));
    }
    run_op(&(struct plim_op){
        .kind = PLIM_OP_SOFTMAX, .n_out = 1, .n_in = 1, .out = {&scores}, .in = {&scores}});
    run_op(&(struct plim_op){.kind = PLIM_OP_MATMUL,
                             .alpha = 1,
                             .n_out = 1,
                             .n_in = 2,
                             .out = {&y},
                             .in = {&scores, &h.v}});
    run_op(&h.forward);
    expect_equal_arrays(&h.out, &y, 1e-6);
    expect_equal_arrays(&h.logsumexp, &logsumexp, 1e-6);
}

Test(reference_attention, shared_heads_are_repeated_heads)
{
    struct head shared, full;
    head_init(&shared, PLIM_F32, GROUPS, false);
    head_init(&full, PLIM_F32, HEADS, false);
    for (int b = 0; b < BATCH; b++)
        for (int head = 0; head < HEADS; head++)
            for (int i = 0; i < COLUMNS * OUT_SIZE; i++) {
                int from = b * GROUPS + head / (HEADS / GROUPS), to = b * HEADS + head;
                array_put(&full.v, to * COLUMNS * OUT_SIZE + i,
                          array_at(&shared.v, from * COLUMNS * OUT_SIZE + i));
                if (i < COLUMNS * SIZE)
                    array_put(&full.k, to * COLUMNS * SIZE + i,
                              array_at(&shared.k, from * COLUMNS * SIZE + i));
            }
    run_op(&shared.forward);
    run_op(&full.forward);
    expect_equal_arrays(&shared.out, &full.out, 0);
}

Test(reference_attention, causal_is_a_mask_of_minus_infinities_above_the_diagonal)
{
    struct head causal, masked;
    head_init(&causal, PLIM_F32, HEADS, false);
    head_init(&masked, PLIM_F32, HEADS, true);
    for (int n = 0; n < BATCH * ROWS * COLUMNS; n++)
        array_put(&masked.mask, n, n % COLUMNS > n / COLUMNS % ROWS ? -INFINITY : 0);
    causal.forward.causal = causal.backward.causal = true;
    run_op(&causal.forward);
    run_op(&masked.forward);
    expect_equal_arrays(&causal.out, &masked.out, 0);
    run_op(&causal.backward);
    run_op(&masked.backward);
    expect_equal_arrays(&causal.dk, &masked.dk, 0);
    masked.forward.causal = true; /* equivalent */
    run_op(&masked.forward);
    expect_equal_arrays(&causal.out, &masked.out, 0);
}

Test(reference_attention, a_row_that_sees_nothing_gives_zeros)
{
    struct head h;
    head_init(&h, PLIM_F32, GROUPS, true);
    for (int j = 0; j < COLUMNS; j++)
        array_put(&h.mask, COLUMNS + j, -INFINITY); /* row 1 of batch 0 */
    run_op(&h.forward);
    for (int head = 0; head < HEADS; head++) {
        cr_expect(eq(dbl, array_at(&h.logsumexp, head * ROWS + 1), -INFINITY));
        for (int j = 0; j < OUT_SIZE; j++)
            cr_expect(eq(dbl, array_at(&h.out, (head * ROWS + 1) * OUT_SIZE + j), 0));
    }
    expect_gradients(&h);
    for (int j = 0; j < SIZE; j++) cr_expect(eq(dbl, array_at(&h.dq, SIZE + j), 0));
}

Test(reference_attention, nan_in_a_row_reaches_that_row_only)
{
    struct head h;
    head_init(&h, PLIM_F32, HEADS, false);
    array_put(&h.q, 0, NAN);
    run_op(&h.forward);
    cr_expect(isnan(array_at(&h.out, 0)));
    cr_expect(isnan(array_at(&h.logsumexp, 0)));
    for (int i = OUT_SIZE; i < BATCH * HEADS * ROWS * OUT_SIZE; i++)
        cr_expect(isfinite(array_at(&h.out, i)));
}

Test(reference_attention, the_backward_is_the_derivative)
{
    struct head h;
    head_init(&h, PLIM_F32, HEADS, false);
    expect_gradients(&h);
}

Test(reference_attention, the_backward_of_shared_heads_with_a_causal_mask)
{
    struct head h;
    head_init(&h, PLIM_F32, GROUPS, true);
    h.forward.causal = h.backward.causal = true;
    expect_gradients(&h);
}

Test(reference_attention, the_backward_drops_what_the_forward_dropped)
{
    struct head h;
    head_init(&h, PLIM_F32, GROUPS, false);
    h.forward.alpha = h.backward.alpha = 0.3;
    h.forward.seed = h.backward.seed = 11;
    expect_gradients(&h);
}

Test(reference_attention, drops_probabilities_by_their_number)
{
    struct head h;
    head_init(&h, PLIM_F32, HEADS, false);
    array_fill(&h.q, 0); /* all probabilities are 1 / COLUMNS */
    array_fill(&h.v, 1);
    h.forward.alpha = 0.5, h.forward.seed = 3;
    run_op(&h.forward);
    for (int row = 0; row < BATCH * HEADS * ROWS; row++) {
        int kept = 0;
        for (int j = 0; j < COLUMNS; j++)
            kept += (plim_random_word(3, (uint64_t)row * 4 + j / 4) >> j % 4 * 8 & 255) <= 127;
        cr_expect(fabs(array_at(&h.out, row * OUT_SIZE) - 2.0 * kept / COLUMNS) < 1e-6);
    }
}

Test(reference_attention, sixteen_bits_are_the_rounded_result)
{
    for (int type = PLIM_BF16; type <= PLIM_F16; type++) {
        struct head h, wide;
        head_init(&h, (enum plim_dtype)type, HEADS, true);
        head_init(&wide, PLIM_F32, HEADS, true);
        const struct plim_array *from[] = {&h.q, &h.k, &h.v, &h.mask},
                                *to[] = {&wide.q, &wide.k, &wide.v, &wide.mask};
        for (int n = 0; n < 4; n++)
            for (int64_t i = 0; i < plim_array_elements(from[n]); i++)
                array_put(to[n], i, array_at(from[n], i));
        run_op(&h.forward);
        run_op(&wide.forward);
        expect_equal_arrays(&h.out, &wide.out, 0x1p-9);
        expect_equal_arrays(&h.logsumexp, &wide.logsumexp, 0);
    }
}

Test(reference_attention, refuses_shapes_that_do_not_fit)
{
    struct head h;
    head_init(&h, PLIM_F32, GROUPS, true);
    struct plim_array three = ARRAY(PLIM_F32, BATCH, 3, COLUMNS, SIZE),
                      wide = ARRAY(PLIM_F32, 1, 1, 1, COLUMNS + 1);
    h.forward.in[1] = &three; /* 4 heads are not shared by 3 */
    cr_expect(eq(int, plim_reference_run(&h.forward), PLIM_INVALID));
    h.forward.in[1] = &h.k, h.forward.in[3] = &wide;
    cr_expect(eq(int, plim_reference_run(&h.forward), PLIM_INVALID));
    h.forward.in[3] = NULL, h.forward.out[0] = &h.q;
    cr_expect(eq(int, plim_reference_run(&h.forward), PLIM_INVALID));
    h.backward.out[1] = &h.dv;
    cr_expect(eq(int, plim_reference_run(&h.backward), PLIM_INVALID));
}
