#include "support/kernel_case.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

static struct kernel_case c;

static void setup(void)
{
    kernel_case_init(&c, 3);
}

static void finish(void)
{
    kernel_case_finish(&c);
}

TestSuite(kernels_embedding, .init = setup, .fini = finish);

static const enum plim_dtype floats[] = {PLIM_F32, PLIM_BF16, PLIM_F16};
static const int64_t widths[] = {1, 5, 8, 64, 100, 257};
enum { ROWS = 37, WIDTHS = sizeof widths / sizeof *widths };

static const struct plim_array *indices_below(int64_t rows, enum plim_dtype type, int ndim,
                                              const int64_t *shape)
{
    const struct plim_array *indices = kernel_case_array(&c, type, ndim, shape);
    kernel_case_fill(&c, indices, 0, (double)rows);
    return indices;
}

static struct plim_op embedding_op(const struct plim_array *y, const struct plim_array *weight,
                                   const struct plim_array *indices)
{
    return (struct plim_op){
        .kind = PLIM_OP_EMBEDDING, .n_out = 1, .n_in = 2, .out = {y}, .in = {weight, indices}};
}

static void check_embedding(const struct plim_array *y, const struct plim_array *weight,
                            const struct plim_array *indices)
{
    struct plim_op op = embedding_op(y, weight, indices);
    kernel_case_check(&c, &op, 0, 0);
    kernel_case_finish(&c);
}

Test(kernels_embedding, rows_of_every_width_and_type)
{
    static const enum plim_dtype types[] = {PLIM_F32, PLIM_BF16, PLIM_F16, PLIM_I64};
    for (int t = 0; t < 4; t++)
        for (int w = 0; w < WIDTHS; w++)
            check_embedding(
                KERNEL_ARRAY(&c, types[t], 3, 11, widths[w]),
                KERNEL_ARRAY(&c, types[t], ROWS, widths[w]),
                indices_below(ROWS, t % 2 ? PLIM_I32 : PLIM_I64, 2, (int64_t[]){3, 11}));
}

Test(kernels_embedding, more_rows_than_a_grid_takes)
{
    check_embedding(KERNEL_ARRAY(&c, PLIM_BF16, 700, 128), KERNEL_ARRAY(&c, PLIM_BF16, ROWS, 128),
                    indices_below(ROWS, PLIM_I64, 1, (int64_t[]){700}));
}

Test(kernels_embedding, repeated_indices_and_a_misaligned_table)
{
    int64_t shape[] = {4, 9}, repeated[] = {0, 1}, table[] = {ROWS, 16}, rows[] = {17, 1};
    const struct plim_array *indices = kernel_case_strided(&c, PLIM_I64, 2, shape, repeated, 0);
    kernel_case_fill(&c, indices, 0, ROWS);
    check_embedding(KERNEL_ARRAY(&c, PLIM_BF16, 4, 9, 16),
                    kernel_case_strided(&c, PLIM_BF16, 2, table, rows, 3), indices);
}

Test(kernels_embedding, an_index_out_of_range_reads_zeros)
{
    const struct plim_array *y = KERNEL_ARRAY(&c, PLIM_F32, 3, 8);
    const struct plim_array *indices = KERNEL_ARRAY(&c, PLIM_I64, 3);
    struct plim_op op = embedding_op(y, KERNEL_ARRAY(&c, PLIM_F32, ROWS, 8), indices);
    kernel_case_set(indices, 0, -1);
    kernel_case_set(indices, 1, ROWS);
    kernel_case_set(indices, 2, 1e15);
    kernel_case_run(&c, &op);
    for (int i = 0; i < 24; i++) cr_expect(eq(dbl, kernel_case_get(y, i), 0));
}

Test(kernels_embedding, elements_of_a_table_by_two_indices)
{
    static const enum plim_dtype types[] = {PLIM_BOOL, PLIM_I64, PLIM_BF16};
    for (int t = 0; t < 3; t++) {
        struct plim_op op = embedding_op(KERNEL_ARRAY(&c, types[t], 4, 1, 5, 23),
                                         KERNEL_ARRAY(&c, types[t], ROWS, 29),
                                         indices_below(ROWS, PLIM_I64, 4, (int64_t[]){4, 1, 1, 1}));
        op.n_in = 3;
        op.in[2] = indices_below(29, PLIM_I64, 1, (int64_t[]){23});
        kernel_case_check(&c, &op, 0, 0);
        kernel_case_finish(&c);
    }
}

/* --- backward --------------------------------------------------------------------------------- */

static struct plim_op backward_op(const struct plim_array *dweight, const struct plim_array *dout,
                                  const struct plim_array *indices)
{
    return (struct plim_op){.kind = PLIM_OP_EMBEDDING_BACKWARD,
                            .n_out = 1,
                            .n_in = 2,
                            .out = {dweight},
                            .in = {dout, indices}};
}

static void check_backward(const struct plim_array *dweight, const struct plim_array *dout,
                           const struct plim_array *indices)
{
    struct plim_op op = backward_op(dweight, dout, indices);
    kernel_case_fill(&c, dweight, 0, 0);
    int64_t tokens = plim_array_elements(indices);
    kernel_case_check(&c, &op, 1, (double)tokens / 8);
    kernel_case_finish(&c);
}

Test(kernels_embedding, gradients_of_every_width_and_type)
{
    for (int t = 0; t < 3; t++)
        for (int w = 0; w < WIDTHS; w++)
            for (int64_t tokens = 1; tokens < 600; tokens = tokens * 5 + 2)
                check_backward(KERNEL_ARRAY(&c, floats[t], ROWS, widths[w]),
                               KERNEL_ARRAY(&c, floats[t], tokens, widths[w]),
                               indices_below(ROWS, PLIM_I64, 1, &tokens));
}

Test(kernels_embedding, gradients_of_one_index_and_of_rare_ones)
{
    int64_t tokens = 700;
    check_backward(KERNEL_ARRAY(&c, PLIM_BF16, ROWS, 16), KERNEL_ARRAY(&c, PLIM_BF16, tokens, 16),
                   indices_below(1, PLIM_I64, 1, &tokens));
    check_backward(KERNEL_ARRAY(&c, PLIM_F32, 5000, 16), KERNEL_ARRAY(&c, PLIM_F32, tokens, 16),
                   indices_below(5000, PLIM_I32, 1, &tokens));
}

Test(kernels_embedding, gradients_wider_than_a_block)
{
    int64_t shape[] = {3, 5};
    check_backward(KERNEL_ARRAY(&c, PLIM_BF16, 9, 2048 + 24),
                   KERNEL_ARRAY(&c, PLIM_BF16, 3, 5, 2048 + 24),
                   indices_below(9, PLIM_I64, 2, shape));
}

/* Positions: (1, s) indices repeated over the batch. */
Test(kernels_embedding, gradients_of_repeated_indices)
{
    int64_t shape[] = {4, 33}, repeated[] = {0, 1};
    const struct plim_array *indices = kernel_case_strided(&c, PLIM_I64, 2, shape, repeated, 0);
    for (int i = 0; i < 33; i++) kernel_case_set(indices, i, i);
    check_backward(KERNEL_ARRAY(&c, PLIM_F32, ROWS, 24), KERNEL_ARRAY(&c, PLIM_F32, 4, 33, 24),
                   indices);
}

Test(kernels_embedding, gradients_of_an_index_out_of_range_write_nothing)
{
    int64_t tokens = 20;
    const struct plim_array *dweight = KERNEL_ARRAY(&c, PLIM_F32, ROWS, 8);
    const struct plim_array *indices = indices_below(ROWS, PLIM_I64, 1, &tokens);
    struct plim_op op = backward_op(dweight, KERNEL_ARRAY(&c, PLIM_F32, tokens, 8), indices);
    kernel_case_fill(&c, dweight, 0, 0);
    for (int i = 0; i < tokens; i++)
        kernel_case_set(indices, i, i % 3 == 0 ? -1 : i % 3 == 1 ? ROWS : -1e12);
    kernel_case_run(&c, &op);
    for (int i = 0; i < ROWS * 8; i++) cr_assert(eq(dbl, kernel_case_get(dweight, i), 0));
}

/* --- backward of many tokens ------------------------------------------------------------------ */

/* With what PyTorch has at hand when it sums: two arrays of places, one of starts, a number, the
 * partial sums. */
static struct plim_op sorted_op(const struct plim_array *dweight, const struct plim_array *dout,
                                const struct plim_array *indices)
{
    struct plim_op op = backward_op(dweight, dout, indices);
    int64_t tokens = plim_array_elements(indices), rows = dweight->shape[0],
            partials = tokens / 10 + (tokens < rows ? tokens : rows) + 2;
    const int64_t bytes[] = {8 * tokens, 8 * tokens, 8 * tokens, 8,
                             4 * partials * dweight->shape[1]};
    for (size_t i = 0; i < sizeof(bytes) / sizeof(*bytes); i++)
        op.scratch[op.n_scratch++] = kernel_case_scratch(&c, bytes[i]);
    kernel_case_fill(&c, dweight, 0, 0);
    return op;
}

static void check_sorted(const struct plim_array *dweight, const struct plim_array *dout,
                         const struct plim_array *indices)
{
    struct plim_op op = sorted_op(dweight, dout, indices);
    kernel_case_check(&c, &op, 1, (double)plim_array_elements(indices) / 8);
    cr_expect(lt(int, 4, c.launches)); /* sorted at least once, and summed twice */
    kernel_case_finish(&c);
}

Test(kernels_embedding, sorted_gradients_of_every_width_and_type)
{
    int64_t tokens = 611, many = 8200; /* more than two tiles */
    for (int t = 0; t < 3; t++)
        for (int w = 0; w < WIDTHS; w++)
            check_sorted(KERNEL_ARRAY(&c, floats[t], ROWS, widths[w]),
                         KERNEL_ARRAY(&c, floats[t], tokens, widths[w]),
                         indices_below(ROWS, PLIM_I64, 1, &tokens));
    check_sorted(KERNEL_ARRAY(&c, PLIM_BF16, ROWS, 8), KERNEL_ARRAY(&c, PLIM_BF16, many, 8),
                 indices_below(ROWS, PLIM_I64, 1, &many));
}

/* One digit, two and three of them. What was sorted lies in the first array of places after an odd
 * number of digits, by index and then by token; each of 64 indices, of which four are neighbours, is
 * there several times. */
Test(kernels_embedding, many_tokens_are_sorted_by_index_and_in_their_order)
{
    static const int64_t rows[] = {4, 255, 256, 65535, 70000};
    static const int places[] = {0, 0, 1, 1, 0};
    int64_t tokens = 4500;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        const struct plim_array *indices = indices_below(64, PLIM_I32, 1, &tokens);
        struct plim_op op = sorted_op(KERNEL_ARRAY(&c, PLIM_F32, rows[i], 8),
                                      KERNEL_ARRAY(&c, PLIM_F32, tokens, 8), indices);
        for (int k = 0; k < 2; k++) op.scratch[k] = KERNEL_ARRAY(&c, PLIM_I64, tokens);
        for (int64_t t = 0; t < tokens; t++) {
            int64_t index = (int64_t)kernel_case_get(indices, t);
            kernel_case_set(indices, t, (double)(index / 4 * (rows[i] / 4 - 1) / 4 + index % 4));
        }
        kernel_case_run(&c, &op);
        const struct plim_array *sorted = op.scratch[places[i]];
        for (int64_t t = 1; t < tokens; t++)
            cr_assert(lt(dbl, kernel_case_get(sorted, t - 1), kernel_case_get(sorted, t)),
                      "%d rows, place %d", (int)rows[i], (int)t);
        kernel_case_finish(&c);
        check_sorted(KERNEL_ARRAY(&c, PLIM_F32, rows[i], 8), KERNEL_ARRAY(&c, PLIM_F32, 900, 8),
                     indices_below(rows[i], PLIM_I64, 1, (int64_t[]){900}));
    }
}

/* Segments that end and begin at every place of a chunk, and longer ones. */
Test(kernels_embedding, sorted_gradients_of_segments_of_every_length)
{
    for (int64_t length = 4; length < 80; length += 15) {
        int64_t tokens = 40 * length + length / 2;
        const struct plim_array *indices = KERNEL_ARRAY(&c, PLIM_I64, tokens);
        for (int64_t i = 0; i < tokens; i++)
            kernel_case_set(indices, i, (double)(i * 7 % tokens / length));
        check_sorted(KERNEL_ARRAY(&c, PLIM_BF16, 41, 16), KERNEL_ARRAY(&c, PLIM_BF16, tokens, 16),
                     indices);
    }
}

Test(kernels_embedding, sorted_gradients_leave_out_what_is_out_of_range)
{
    int64_t tokens = 5000, found[ROWS] = {0};
    const struct plim_array *indices = indices_below(ROWS, PLIM_I64, 1, &tokens),
                            *dout = KERNEL_ARRAY(&c, PLIM_F32, tokens, 8),
                            *dweight = KERNEL_ARRAY(&c, PLIM_F32, ROWS, 8);
    struct plim_op op = sorted_op(dweight, dout, indices);
    kernel_case_fill(&c, dout, 1, 1);
    for (int64_t i = 0; i < tokens; i++) {
        if (i % 3 == 0)
            kernel_case_set(indices, i, i % 2 ? -1 : i % 4 ? ROWS : 1e12);
        else
            found[(int)kernel_case_get(indices, i)]++;
    }
    kernel_case_run(&c, &op);
    for (int i = 0; i < ROWS * 8; i++)
        cr_assert(eq(dbl, kernel_case_get(dweight, i), (double)found[i / 8]));
}
