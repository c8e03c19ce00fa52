/* The kernels of the gated delta rule on numbers as the rule has them: keys of a length about 1, decays that add up. */
#include "support/kernel_case.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

static struct kernel_case c;

static void setup(void)
{
    kernel_case_init(&c, 29);
}

static void finish(void)
{
    kernel_case_finish(&c);
}

TestSuite(kernels_delta, .init = setup, .fini = finish);

enum { CHUNK = 64, MOST = 8 };
static const double EPSILONS = 64, MAGNITUDE = 4; /* sums of up to 256 products about 1 */

/* lengths: of the documents of the one row, behind which -1 stands; none: rows of `seq` tokens. spare: chunks that the
 * states have room for beside. dtype: of what is not fp32 always */
struct shape {
    int64_t batch, seq, heads, key, value;
    enum plim_dtype dtype;
    int64_t lengths[MOST];
    int documents, spare;
};

static const struct plim_array *keys(const struct shape *s)
{
    const struct plim_array *a = KERNEL_ARRAY(&c, s->dtype, s->batch, s->seq, s->heads, s->key);
    kernel_case_fill(&c, a, -0.3, 0.3);
    return a;
}

static const struct plim_array *values(const struct shape *s)
{
    return KERNEL_ARRAY(&c, s->dtype, s->batch, s->seq, s->heads, s->value);
}

static const struct plim_array *numbers(const struct shape *s, enum plim_dtype dtype, double low, double high)
{
    const struct plim_array *a = KERNEL_ARRAY(&c, dtype, s->batch, s->seq, s->heads);
    kernel_case_fill(&c, a, low, high);
    return a;
}

/* The position of the token in its chunk; without documents also in its row */
static int64_t place_of(const struct shape *s, int64_t token)
{
    int64_t at = token % s->seq;
    for (int i = 0; i < s->documents; at -= s->lengths[i++])
        if (at < s->lengths[i]) break;
    return at % CHUNK;
}

/* Lower triangles with ones on the diagonal */
static const struct plim_array *inverses(const struct shape *s)
{
    const struct plim_array *a = KERNEL_ARRAY(&c, s->dtype, s->batch, s->seq, s->heads, CHUNK);
    kernel_case_fill(&c, a, -0.1, 0.1);
    for (int64_t i = 0; i < plim_array_elements(a); i++) {
        int64_t row = place_of(s, i / CHUNK / s->heads), column = i % CHUNK;
        if (column >= row) kernel_case_set(a, i, column == row);
    }
    return a;
}

static const struct plim_array *betas(const struct shape *s)
{
    return numbers(s, s->dtype, 0, 1);
}

/* Falling along a chunk, as sums of decays do */
static const struct plim_array *decays(const struct shape *s)
{
    const struct plim_array *g = numbers(s, PLIM_F32, 0, 1);
    for (int64_t i = 0; i < plim_array_elements(g); i++)
        kernel_case_set(g, i, -0.05 * (double)place_of(s, i / s->heads) - 0.02 * kernel_case_get(g, i));
    return g;
}

static const struct plim_array *states(const struct shape *s)
{
    int64_t chunks = s->documents ? s->spare : (s->seq + CHUNK - 1) / CHUNK;
    for (int i = 0; i < s->documents; i++) chunks += (s->lengths[i] + CHUNK - 1) / CHUNK;
    return KERNEL_ARRAY(&c, s->dtype, s->batch, chunks, s->heads, s->key, s->value);
}

static void check(struct plim_op op, const struct shape *s, int outs, int ins)
{
    if (s->documents) {
        const struct plim_array *ends = KERNEL_ARRAY(&c, PLIM_I32, s->documents + 1);
        int64_t end = 0;
        for (int i = 0; i <= s->documents; i++) {
            kernel_case_set(ends, i, (double)end);
            end += i < s->documents ? s->lengths[i] : 0;
        }
        op.in[ins] = ends;
    }
    op.n_out = (uint8_t)outs;
    op.n_in = (uint8_t)(ins + (s->documents > 0));
    op.alpha = 0.35;
    kernel_case_check(&c, &op, s->dtype == PLIM_F32 ? EPSILONS : 2, MAGNITUDE);
    kernel_case_finish(&c);
}

static void check_forward(const struct shape *s)
{
    for (int beta = -1; beta <= 1; beta += 2)
        check((struct plim_op){.kind = PLIM_OP_CHUNK_SUMS,
                               .beta = beta,
                               .out = {numbers(s, PLIM_F32, 0, 1)},
                               .in = {numbers(s, s->dtype, -1, 0)}}, s, 1, 1);
    check((struct plim_op){.kind = PLIM_OP_DELTA_INVERSE,
                           .out = {inverses(s)},
                           .in = {keys(s), decays(s), betas(s)}}, s, 1, 3);
    check((struct plim_op){.kind = PLIM_OP_DELTA_SOLVE,
                           .out = {keys(s), values(s)},
                           .in = {keys(s), values(s), betas(s), inverses(s), decays(s)}}, s, 2, 5);
    check((struct plim_op){.kind = PLIM_OP_DELTA_STATES,
                           .out = {states(s), values(s)},
                           .in = {keys(s), keys(s), values(s), decays(s)}}, s, 2, 4);
    check((struct plim_op){.kind = PLIM_OP_DELTA_OUTPUT,
                           .out = {values(s)},
                           .in = {keys(s), keys(s), values(s), states(s), decays(s)}}, s, 1, 5);
}

static void check_backward(const struct shape *s, int64_t parts)
{
    check((struct plim_op){.kind = PLIM_OP_DELTA_OUTPUT_BACKWARD_FRESH,
                           .out = {values(s)},
                           .in = {keys(s), keys(s), decays(s), values(s)}}, s, 1, 4);
    check((struct plim_op){.kind = PLIM_OP_DELTA_STATES_BACKWARD,
                           .out = {states(s), values(s)},
                           .in = {keys(s), keys(s), keys(s), decays(s), values(s), values(s)}}, s, 2, 6);
    check((struct plim_op){.kind = PLIM_OP_DELTA_OUTPUT_BACKWARD,
                           .out = {keys(s), keys(s), keys(s),
                                   KERNEL_ARRAY(&c, s->dtype, parts, s->batch, s->seq, s->heads)},
                           .in = {keys(s), keys(s), decays(s), values(s), states(s), values(s), states(s), values(s)}},
          s, 4, 8);
    check((struct plim_op){.kind = PLIM_OP_DELTA_SOLVE_BACKWARD,
                           .out = {keys(s), values(s), betas(s), betas(s)},
                           .in = {keys(s), values(s), betas(s), decays(s), inverses(s), keys(s), values(s)}}, s, 4, 7);
}

static const struct shape rows[] = {
    {.batch = 1, .seq = 1, .heads = 1, .key = 1, .value = 1},
    {.batch = 2, .seq = 3, .heads = 2, .key = 8, .value = 5},
    {.batch = 1, .seq = 64, .heads = 1, .key = 16, .value = 64},
    {.batch = 2, .seq = 65, .heads = 3, .key = 33, .value = 20, .dtype = PLIM_BF16},
    {.batch = 1, .seq = 130, .heads = 2, .key = 70, .value = 66, .dtype = PLIM_F16},
    {.batch = 1, .seq = 200, .heads = 1, .key = 12, .value = 33},
    {.batch = 0, .seq = 8, .heads = 2, .key = 4, .value = 4},
    {.batch = 2, .seq = 0, .heads = 2, .key = 4, .value = 4},
    {.batch = 2, .seq = 8, .heads = 0, .key = 4, .value = 4},
};
enum { ROWS = sizeof rows / sizeof *rows };

Test(kernels_delta, rows_forward)
{
    for (int i = 0; i < ROWS; i++) check_forward(&rows[i]);
}

Test(kernels_delta, rows_backward)
{
    for (int i = 0; i < ROWS; i++) check_backward(&rows[i], 1 + i % 3);
}

/* Documents of one token, of none, of full chunks and of one more; in the middle of rows, and with unused states */
static const struct shape documents[] = {
    {1, 1, 1, 4, 4, PLIM_F32, {1}, 1, 0},
    {1, 9, 2, 6, 10, PLIM_F32, {1, 0, 7, 1}, 4, 0},
    {1, 200, 2, 17, 9, PLIM_F32, {65, 64, 1, 70}, 4, 2},
    {1, 140, 1, 8, 40, PLIM_BF16, {3, 128, 9}, 3, 1},
};
enum { DOCUMENTS = sizeof documents / sizeof *documents };

Test(kernels_delta, documents_forward)
{
    for (int i = 0; i < DOCUMENTS; i++) check_forward(&documents[i]);
}

Test(kernels_delta, documents_backward)
{
    for (int i = 0; i < DOCUMENTS; i++) check_backward(&documents[i], 1);
}

Test(kernels_delta, wide_heads)
{
    const struct shape widest = {.batch = 1, .seq = 70, .heads = 1, .key = 256, .value = 130};
    check_forward(&widest);
    check_backward(&widest, 2);
}

Test(kernels_delta, what_does_not_fit_is_refused)
{
    const struct shape wide = {.batch = 1, .seq = 5, .heads = 1, .key = 257, .value = 4},
                       two = {.batch = 2, .seq = 5, .heads = 1, .key = 8, .value = 4};
    struct plim_op op = {.kind = PLIM_OP_DELTA_STATES,
                         .n_out = 2,
                         .n_in = 4,
                         .out = {states(&wide), values(&wide)},
                         .in = {keys(&wide), keys(&wide), values(&wide), decays(&wide)}};
    cr_expect(eq(int, plim_cuda_plan(&c.info, &op, NULL, NULL), PLIM_UNSUPPORTED));
    op.in[1] = keys(&two);
    cr_expect(eq(int, plim_cuda_plan(&c.info, &op, NULL, NULL), PLIM_INVALID));
    /* documents of one row alone */
    op = (struct plim_op){.kind = PLIM_OP_DELTA_INVERSE,
                          .n_out = 1,
                          .n_in = 4,
                          .out = {inverses(&two)},
                          .in = {keys(&two), decays(&two), betas(&two), KERNEL_ARRAY(&c, PLIM_I32, 3)}};
    cr_expect(eq(int, plim_cuda_plan(&c.info, &op, NULL, NULL), PLIM_INVALID));
    op.in[1] = betas(&wide);
    op.n_in = 3;
    cr_expect(eq(int, plim_cuda_plan(&c.info, &op, NULL, NULL), PLIM_INVALID));
}
