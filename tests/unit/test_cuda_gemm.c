/* Matmul operations as cuBLASLt problems: what is folded, transposed, batched or refused. */
#include "devices/cuda/gemm.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

static struct plim_array array(int ndim, const int64_t *shape, const int64_t *stride)
{
    struct plim_array a = {.data = 1 << 20, .ndim = (uint8_t)ndim, .dtype = PLIM_BF16};
    int64_t next = 1;
    for (int i = ndim - 1; i >= 0; i--) {
        a.shape[i] = shape[i];
        a.stride[i] = stride ? stride[i] : next;
        next *= shape[i];
    }
    return a;
}
#define DIMS(...) ((const int64_t[]){__VA_ARGS__})

static enum plim_status describe(const struct plim_array *out, const struct plim_array *a,
                                 const struct plim_array *b, const struct plim_array *c,
                                 struct plim_gemm *g)
{
    struct plim_op op = {.kind = PLIM_OP_MATMUL,
                         .n_out = 1,
                         .n_in = c ? 3 : 2,
                         .alpha = 1,
                         .beta = 1,
                         .epilogue = c && c->ndim == 1 ? PLIM_EPILOGUE_BIAS : PLIM_EPILOGUE_NONE,
                         .out = {out},
                         .in = {a, b, c}};
    return plim_gemm_describe(&op, g, NULL);
}

/* x (2, 3, 5) times the transpose of a weight (7, 5): the form that is fastest on the GPU. */
Test(gemm, linear_layer_is_one_product_of_the_weight_transposed)
{
    struct plim_array y = array(3, DIMS(2, 3, 7), NULL), x = array(3, DIMS(2, 3, 5), NULL);
    struct plim_array w = array(2, DIMS(5, 7), DIMS(1, 5));
    struct plim_gemm g;
    cr_assert(eq(int, describe(&y, &x, &w, NULL, &g), PLIM_OK));
    cr_expect(eq(i64, g.batch, 1));
    cr_expect(eq(i64, plim_gemm_runs(&g), 1));
    cr_expect(g.matrix[PLIM_GEMM_A].transposed && !g.matrix[PLIM_GEMM_B].transposed);
    cr_expect(eq(i64, g.matrix[PLIM_GEMM_A].rows, 5));
    cr_expect(eq(i64, g.matrix[PLIM_GEMM_A].columns, 7));
    cr_expect(eq(i64, g.matrix[PLIM_GEMM_D].rows, 7));
    cr_expect(eq(i64, g.matrix[PLIM_GEMM_D].columns, 6), "rows of all batches");
    cr_expect(eq(i64, g.matrix[PLIM_GEMM_D].ld, 7));
}

Test(gemm, column_major_result_is_not_turned)
{
    struct plim_array y = array(2, DIMS(4, 6), DIMS(1, 4)), a = array(2, DIMS(4, 5), NULL);
    struct plim_array b = array(2, DIMS(5, 6), NULL);
    struct plim_gemm g;
    cr_assert(eq(int, describe(&y, &a, &b, NULL, &g), PLIM_OK));
    cr_expect(eq(i64, g.matrix[PLIM_GEMM_D].rows, 4));
    cr_expect(g.matrix[PLIM_GEMM_A].transposed && g.matrix[PLIM_GEMM_B].transposed);
    cr_expect(eq(i64, g.matrix[PLIM_GEMM_A].rows, 5), "a lies row-major: its transpose is (5, 4)");
}

Test(gemm, heads_in_the_middle_are_runs_around_one_batch)
{
    /* (batch 2, heads 3) of (4, 8), with the heads inside the rows in memory */
    struct plim_array a = array(4, DIMS(2, 3, 4, 8), DIMS(96, 8, 24, 1));
    struct plim_array b = array(4, DIMS(2, 3, 8, 5), NULL), y = array(4, DIMS(2, 3, 4, 5), NULL);
    struct plim_gemm g;
    cr_assert(eq(int, describe(&y, &a, &b, NULL, &g), PLIM_OK));
    cr_expect(eq(i64, g.batch, 3), "the longer dimension is the batch");
    cr_expect(eq(i64, plim_gemm_runs(&g), 2));
    uint64_t base = g.matrix[PLIM_GEMM_B].data;
    cr_expect(eq(u64, plim_gemm_address(&g, PLIM_GEMM_B, 1), base + 96 * 2), "b is a here");
    cr_expect(eq(u64, plim_gemm_address(&g, PLIM_GEMM_A, 1), base + 3 * 8 * 5 * 2));
}

Test(gemm, even_batch_dimensions_become_one)
{
    struct plim_array a = array(4, DIMS(2, 3, 4, 8), NULL), b = array(4, DIMS(2, 3, 8, 5), NULL);
    struct plim_array y = array(4, DIMS(2, 3, 4, 5), NULL);
    struct plim_gemm g;
    cr_assert(eq(int, describe(&y, &a, &b, NULL, &g), PLIM_OK));
    cr_expect(eq(i64, g.batch, 6));
    cr_expect(eq(i64, plim_gemm_runs(&g), 1));
    cr_expect(eq(i64, g.matrix[PLIM_GEMM_D].batch_stride, 20));
}

Test(gemm, repeated_matrix_has_a_batch_stride_of_zero)
{
    struct plim_array a = array(3, DIMS(6, 4, 8), DIMS(0, 8, 1)), b = array(3, DIMS(6, 8, 5), NULL);
    struct plim_array y = array(3, DIMS(6, 4, 5), NULL);
    struct plim_gemm g;
    cr_assert(eq(int, describe(&y, &a, &b, NULL, &g), PLIM_OK));
    cr_expect(eq(i64, g.batch, 6));
    cr_expect(eq(i64, g.matrix[PLIM_GEMM_B].batch_stride, 0));
}

Test(gemm, bias_row_goes_to_the_epilogue)
{
    struct plim_array y = array(2, DIMS(4, 6), NULL), a = array(2, DIMS(4, 5), NULL);
    struct plim_array b = array(2, DIMS(5, 6), NULL), c = array(1, DIMS(6), NULL);
    struct plim_gemm g;
    cr_assert(eq(int, describe(&y, &a, &b, &c, &g), PLIM_OK));
    cr_expect(eq(int, g.addend, PLIM_GEMM_C_BIAS));
}

/* addmm goes to cuBLASLt's epilogue where neither the summed dimension nor the last one is 1. */
Test(gemm, bias_of_an_outer_product_is_copied)
{
    struct plim_array y = array(2, DIMS(4, 6), NULL), a = array(2, DIMS(4, 1), NULL);
    struct plim_array b = array(2, DIMS(1, 6), NULL), c = array(1, DIMS(6), NULL);
    struct plim_gemm g;
    cr_assert(eq(int, describe(&y, &a, &b, &c, &g), PLIM_OK));
    cr_expect(eq(int, g.addend, PLIM_GEMM_C_COPIED));
}

Test(gemm, bias_along_a_column_major_result_is_copied)
{
    struct plim_array y = array(2, DIMS(4, 6), DIMS(1, 4)), a = array(2, DIMS(4, 5), NULL);
    struct plim_array b = array(2, DIMS(5, 6), NULL), c = array(1, DIMS(6), NULL);
    struct plim_gemm g;
    cr_assert(eq(int, describe(&y, &a, &b, &c, &g), PLIM_OK));
    cr_expect(eq(int, g.addend, PLIM_GEMM_C_COPIED));
}

Test(gemm, matrix_that_lies_as_the_result_is_read_in_place)
{
    struct plim_array y = array(3, DIMS(2, 4, 6), NULL), a = array(3, DIMS(2, 4, 5), NULL);
    struct plim_array b = array(3, DIMS(2, 5, 6), NULL), c = array(2, DIMS(4, 6), NULL);
    struct plim_gemm g;
    cr_assert(eq(int, describe(&y, &a, &b, &c, &g), PLIM_OK));
    cr_expect(eq(int, g.addend, PLIM_GEMM_C_MATRIX));
    cr_expect(eq(i64, g.matrix[PLIM_GEMM_C].batch_stride, 0));
}

Test(gemm, matrix_that_lies_the_other_way_is_copied)
{
    struct plim_array y = array(2, DIMS(4, 6), NULL), a = array(2, DIMS(4, 5), NULL);
    struct plim_array b = array(2, DIMS(5, 6), NULL), c = array(2, DIMS(4, 6), DIMS(1, 4));
    struct plim_gemm g;
    cr_assert(eq(int, describe(&y, &a, &b, &c, &g), PLIM_OK));
    cr_expect(eq(int, g.addend, PLIM_GEMM_C_COPIED));
    cr_expect(eq(i64, g.matrix[PLIM_GEMM_C].ld, g.matrix[PLIM_GEMM_D].ld));
}

Test(gemm, matrix_without_a_dimension_of_stride_one_is_unsupported)
{
    struct plim_array y = array(2, DIMS(4, 6), NULL), a = array(2, DIMS(4, 5), DIMS(20, 2));
    struct plim_array b = array(2, DIMS(5, 6), NULL);
    struct plim_gemm g;
    cr_expect(eq(int, describe(&y, &a, &b, NULL, &g), PLIM_UNSUPPORTED));
}

Test(gemm, matrix_of_repeated_rows_is_unsupported)
{
    struct plim_array y = array(2, DIMS(4, 6), NULL), a = array(2, DIMS(4, 5), DIMS(0, 1));
    struct plim_array b = array(2, DIMS(5, 6), NULL);
    struct plim_gemm g;
    cr_expect(eq(int, describe(&y, &a, &b, NULL, &g), PLIM_UNSUPPORTED));
}

Test(gemm, mixed_types_are_unsupported)
{
    struct plim_array y = array(2, DIMS(4, 6), NULL), a = array(2, DIMS(4, 5), NULL);
    struct plim_array b = array(2, DIMS(5, 6), NULL);
    struct plim_gemm g;
    b.dtype = PLIM_F16;
    cr_expect(eq(int, describe(&y, &a, &b, NULL, &g), PLIM_UNSUPPORTED));
}

Test(gemm, shapes_that_do_not_fit_are_invalid)
{
    struct plim_array y = array(2, DIMS(4, 6), NULL), a = array(2, DIMS(4, 5), NULL);
    struct plim_array b = array(2, DIMS(4, 6), NULL);
    struct plim_gemm g;
    cr_expect(eq(int, describe(&y, &a, &b, NULL, &g), PLIM_INVALID));
}
