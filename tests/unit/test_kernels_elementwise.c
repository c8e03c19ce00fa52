#include "support/kernel_case.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <string.h>

static struct kernel_case c;

static void setup(void)
{
    kernel_case_init(&c, 1);
}

static void finish(void)
{
    kernel_case_finish(&c);
}

TestSuite(kernels_elementwise, .init = setup, .fini = finish);

/* Beyond the largest grid of the test's GPU: 4 waves of 2048 threads with 8 elements each. */
enum { MORE_THAN_A_GRID = 4 * 2048 * 8 + 8 * 300 + 5 };

static const int64_t lengths[] = {1, 2, 7, 8, 9, 31, 257, 2048, 4099, MORE_THAN_A_GRID};
enum { LENGTHS = sizeof lengths / sizeof *lengths };

static bool is_float(int dtype)
{
    return dtype == PLIM_F32 || dtype == PLIM_BF16 || dtype == PLIM_F16;
}

/* --- without operands ------------------------------------------------------------------------- */

Test(kernels_elementwise, fill_of_every_type_and_length)
{
    for (int t = 0; t < PLIM_DTYPE_COUNT; t++)
        for (int i = 0; i < LENGTHS; i++) {
            const struct plim_array *y = KERNEL_ARRAY(&c, (enum plim_dtype)t, lengths[i]);
            struct plim_op op = {.kind = PLIM_OP_FILL, .n_out = 1, .out = {y}, .alpha = 3.25};
            kernel_case_check(&c, &op, 0, 0);
            kernel_case_finish(&c);
        }
}

Test(kernels_elementwise, fill_of_a_strided_array_leaves_gaps_alone)
{
    const struct plim_array *y =
        kernel_case_strided(&c, PLIM_BF16, 3, (int64_t[]){3, 5, 7}, (int64_t[]){100, 2, 13}, 3);
    struct plim_op op = {.kind = PLIM_OP_FILL, .n_out = 1, .out = {y}, .alpha = -1};
    kernel_case_check(&c, &op, 0, 0);
}

Test(kernels_elementwise, arange_counts_elements_in_row_major_order)
{
    static const enum plim_dtype types[] = {PLIM_F32, PLIM_I64, PLIM_I32};
    for (int t = 0; t < 3; t++)
        for (int i = 0; i < LENGTHS; i++) {
            const struct plim_array *y = KERNEL_ARRAY(&c, types[t], lengths[i]);
            struct plim_op op = {
                .kind = PLIM_OP_ARANGE, .n_out = 1, .out = {y}, .alpha = 3, .beta = -5};
            kernel_case_check(&c, &op, 0, 0);
            kernel_case_finish(&c);
        }
    const struct plim_array *y =
        kernel_case_permuted(&c, PLIM_F32, 2, (int64_t[]){24, 16}, (int[]){1, 0}, 0);
    struct plim_op op = {.kind = PLIM_OP_ARANGE, .n_out = 1, .out = {y}, .alpha = 0.5};
    kernel_case_check(&c, &op, 0, 0);
}

Test(kernels_elementwise, random_numbers_are_those_of_the_host)
{
    for (int t = 0; t < PLIM_BOOL; t++)
        for (int i = 0; i < LENGTHS; i++) {
            const struct plim_array *y = KERNEL_ARRAY(&c, (enum plim_dtype)t, lengths[i]);
            struct plim_op op = {.kind = PLIM_OP_RANDOM,
                                 .n_out = 1,
                                 .out = {y},
                                 .alpha = is_float(t) ? 0.02 : 199,
                                 .seed = 0x123456789abcdefu};
            kernel_case_check(&c, &op, 0, 0);
            kernel_case_finish(&c);
        }
}

/* --- copies ----------------------------------------------------------------------------------- */

static struct plim_op copy_op(const struct plim_array *to, const struct plim_array *from)
{
    return (struct plim_op){.kind = PLIM_OP_COPY, .n_out = 1, .n_in = 1, .out = {to}, .in = {from}};
}

static void check_copy(const struct plim_array *to, const struct plim_array *from)
{
    struct plim_op op = copy_op(to, from);
    kernel_case_check(&c, &op, 0, 0);
    kernel_case_finish(&c);
}

Test(kernels_elementwise, copy_casts_every_type_to_every_type)
{
    for (int to = 0; to < PLIM_DTYPE_COUNT; to++)
        for (int from = 0; from < PLIM_DTYPE_COUNT; from++)
            for (int64_t n = 1; n < 2000; n = n * 3 + 5) {
                const struct plim_array *x = KERNEL_ARRAY(&c, (enum plim_dtype)from, n);
                /* what a float below 0 becomes as uint8 is not defined */
                if (to == PLIM_U8 && is_float(from)) kernel_case_fill(&c, x, 0, 250);
                check_copy(KERNEL_ARRAY(&c, (enum plim_dtype)to, n), x);
            }
}

Test(kernels_elementwise, copy_keeps_integers_exact)
{
    const struct plim_array *x = KERNEL_ARRAY(&c, PLIM_I64, 3);
    memcpy((void *)(uintptr_t)x->data, (int64_t[]){INT64_MAX, INT64_MIN + 1, 1LL << 53 | 1}, 24);
    check_copy(KERNEL_ARRAY(&c, PLIM_I64, 3), x);
}

Test(kernels_elementwise, copy_of_the_same_type_moves_bits)
{
    const struct plim_array *x = KERNEL_ARRAY(&c, PLIM_F16, 11);
    uint16_t *bits = (void *)(uintptr_t)x->data;
    for (int i = 0; i < 11; i++) bits[i] = (uint16_t)(0x7bff + i); /* largest, infinity, NaNs */
    check_copy(KERNEL_ARRAY(&c, PLIM_F16, 11), x);
}

Test(kernels_elementwise, copy_of_misaligned_addresses)
{
    for (int to = 0; to < 9; to++)
        for (int from = 0; from < 9; from += 1 + (to > 1)) {
            int64_t n = 83, one = 1;
            const struct plim_array *x = kernel_case_strided(&c, PLIM_BF16, 1, &n, &one, from);
            check_copy(kernel_case_strided(&c, PLIM_BF16, 1, &n, &one, to), x);
        }
}

Test(kernels_elementwise, copy_transposes_matrices_of_every_type)
{
    for (int t = 0; t < PLIM_DTYPE_COUNT; t++)
        for (int64_t rows = 1; rows < 150; rows = rows * 2 + 5)
            for (int64_t columns = 3; columns < 120; columns = columns * 2 + 3) {
                int64_t shape[] = {rows, columns};
                const struct plim_array *x =
                    kernel_case_permuted(&c, (enum plim_dtype)t, 2, shape, (int[]){1, 0}, 0);
                check_copy(kernel_case_array(&c, (enum plim_dtype)t, 2, shape), x);
            }
}

Test(kernels_elementwise, copy_transposes_and_casts)
{
    int64_t shape[] = {70, 45};
    const struct plim_array *x = kernel_case_permuted(&c, PLIM_BF16, 2, shape, (int[]){1, 0}, 1);
    check_copy(kernel_case_array(&c, PLIM_F32, 2, shape), x);
    x = kernel_case_array(&c, PLIM_F32, 2, shape);
    check_copy(kernel_case_permuted(&c, PLIM_BF16, 2, shape, (int[]){1, 0}, 3), x);
}

/* (b, s, heads, d) and its relatives, in every order of dimensions. */
Test(kernels_elementwise, copy_permutes_four_dimensions)
{
    int64_t shape[] = {3, 9, 10, 16};
    for (int p = 0; p < 256; p++) {
        int order[] = {p & 3, p >> 2 & 3, p >> 4 & 3, p >> 6};
        if ((1 << order[0] | 1 << order[1] | 1 << order[2] | 1 << order[3]) != 15) continue;
        const struct plim_array *x = kernel_case_permuted(&c, PLIM_BF16, 4, shape, order, 0);
        check_copy(kernel_case_array(&c, PLIM_BF16, 4, shape), x);
    }
}

Test(kernels_elementwise, copy_transposes_more_tiles_than_a_grid_has_blocks)
{
    int64_t shape[] = {1300, 41};
    const struct plim_array *x = kernel_case_permuted(&c, PLIM_U8, 2, shape, (int[]){1, 0}, 0);
    check_copy(kernel_case_array(&c, PLIM_U8, 2, shape), x);
}

Test(kernels_elementwise, copy_repeats_broadcast_dimensions)
{
    const struct plim_array *x = KERNEL_ARRAY(&c, PLIM_F32, 5, 1, 24);
    check_copy(KERNEL_ARRAY(&c, PLIM_F32, 2, 5, 3, 24), x);
    x = KERNEL_ARRAY(&c, PLIM_F32, 5, 3, 1);
    check_copy(KERNEL_ARRAY(&c, PLIM_F32, 5, 3, 40), x);
    x = kernel_case_scalar(&c, PLIM_F32);
    check_copy(KERNEL_ARRAY(&c, PLIM_F32, 3, 40), x);
}

Test(kernels_elementwise, copy_gathers_reversed_and_gapped_elements)
{
    const struct plim_array *x =
        kernel_case_strided(&c, PLIM_I32, 2, (int64_t[]){6, 40}, (int64_t[]){120, -3}, 0);
    check_copy(KERNEL_ARRAY(&c, PLIM_I32, 6, 40), x);
}

Test(kernels_elementwise, empty_arrays_launch_nothing)
{
    struct plim_op op = copy_op(KERNEL_ARRAY(&c, PLIM_F32, 0, 4), KERNEL_ARRAY(&c, PLIM_F32, 0, 4));
    kernel_case_check(&c, &op, 0, 0);
    cr_expect(eq(int, c.launches, 0));
}

Test(kernels_elementwise, shapes_that_do_not_broadcast_are_refused)
{
    struct plim_op op = copy_op(KERNEL_ARRAY(&c, PLIM_F32, 4, 4), KERNEL_ARRAY(&c, PLIM_F32, 3, 4));
    cr_expect(eq(int, plim_cuda_plan(&c.info, &op, NULL, NULL), PLIM_INVALID));
}

/* --- functions of one ------------------------------------------------------------------------- */

static const enum plim_dtype floats[] = {PLIM_F32, PLIM_BF16, PLIM_F16};

/* fp32 functions of CUDA and libm are off by a few units in the last place. */
enum { FUNCTION_EPSILONS = 8 };

static void check_unary(int function, const struct plim_array *y, const struct plim_array *x)
{
    bool positive = function == PLIM_UNARY_RSQRT || function == PLIM_UNARY_POW || function == PLIM_UNARY_LOG;
    if (positive) kernel_case_fill(&c, x, 0.1, 4);
    struct plim_op op = {.kind = PLIM_OP_UNARY,
                         .n_out = 1,
                         .n_in = 1,
                         .out = {y},
                         .in = {x},
                         .unary = (uint8_t)function,
                         .alpha = -0.5,
                         .beta = 1.25};
    kernel_case_check(&c, &op, is_float(y->dtype) ? FUNCTION_EPSILONS : 0, 1e-6);
    kernel_case_finish(&c);
}

Test(kernels_elementwise, unary_functions_of_every_float)
{
    for (int f = 0; f < PLIM_UNARY_COUNT; f++)
        for (int t = 0; t < 3; t++)
            for (int64_t n = 1; n < 300; n = n * 5 + 3) {
                const struct plim_array *x = KERNEL_ARRAY(&c, floats[t], n);
                enum plim_dtype result = f == PLIM_UNARY_NOT ? PLIM_BOOL : floats[t];
                check_unary(f, KERNEL_ARRAY(&c, result, n), x);
            }
}

Test(kernels_elementwise, unary_functions_of_strided_arrays)
{
    int64_t shape[] = {11, 24};
    for (int f = 0; f < PLIM_UNARY_COUNT; f++) {
        const struct plim_array *x =
            kernel_case_permuted(&c, PLIM_BF16, 2, shape, (int[]){1, 0}, 1);
        check_unary(f, kernel_case_array(&c, PLIM_F32, 2, shape), x);
    }
}

Test(kernels_elementwise, unary_cosine_and_sine_of_large_angles)
{
    static const int functions[] = {PLIM_UNARY_COS, PLIM_UNARY_SIN};
    for (int i = 0; i < 2; i++) {
        const struct plim_array *x = KERNEL_ARRAY(&c, PLIM_F32, 1000);
        kernel_case_fill(&c, x, -200000, 200000);
        struct plim_op op = {.kind = PLIM_OP_UNARY,
                             .n_out = 1,
                             .n_in = 1,
                             .out = {KERNEL_ARRAY(&c, PLIM_F32, 1000)},
                             .in = {x},
                             .unary = (uint8_t)functions[i]};
        kernel_case_check(&c, &op, 2, 1);
        kernel_case_finish(&c);
    }
}

Test(kernels_elementwise, unary_functions_of_integers_are_exact)
{
    static const int functions[] = {PLIM_UNARY_NEG, PLIM_UNARY_RELU, PLIM_UNARY_POW, PLIM_UNARY_NOT,
                                    PLIM_UNARY_ABS, PLIM_UNARY_CLAMP};
    static const enum plim_dtype types[] = {PLIM_I64, PLIM_I32, PLIM_U8, PLIM_BOOL};
    for (int f = 0; f < 6; f++)
        for (int t = 0; t < 4; t++)
            for (int64_t n = 5; n < 300; n = n * 5 + 3) {
                struct plim_op op = {.kind = PLIM_OP_UNARY,
                                     .n_out = 1,
                                     .n_in = 1,
                                     .out = {KERNEL_ARRAY(&c, types[t], n)},
                                     .in = {KERNEL_ARRAY(&c, types[t], n)},
                                     .unary = (uint8_t)functions[f],
                                     .alpha = 3,
                                     .beta = 60};
                kernel_case_check(&c, &op, 0, 0);
                kernel_case_finish(&c);
            }
}

Test(kernels_elementwise, unary_keeps_nan_where_pytorch_does)
{
    static const int functions[] = {PLIM_UNARY_RELU, PLIM_UNARY_CLAMP, PLIM_UNARY_NEG};
    for (int f = 0; f < 3; f++) {
        const struct plim_array *x = KERNEL_ARRAY(&c, PLIM_F32, 12);
        kernel_case_set(x, 3, NAN);
        kernel_case_set(x, 4, INFINITY);
        kernel_case_set(x, 5, -INFINITY);
        check_unary(functions[f], KERNEL_ARRAY(&c, PLIM_F32, 12), x);
    }
}

Test(kernels_elementwise, derivatives_of_every_float)
{
    for (int f = 0; f < PLIM_UNARY_COUNT; f++)
        for (int t = 0; t < 3 && f != PLIM_UNARY_NOT; t++)
            for (int64_t n = 3; n < 300; n = n * 5 + 9) {
                const struct plim_array *saved = KERNEL_ARRAY(&c, floats[t], n);
                if (f == PLIM_UNARY_RSQRT || f == PLIM_UNARY_POW || f == PLIM_UNARY_LOG)
                    kernel_case_fill(&c, saved, 0.1, 4);
                if (f == PLIM_UNARY_TANH) kernel_case_fill(&c, saved, -1, 1);
                struct plim_op op = {.kind = PLIM_OP_UNARY_BACKWARD,
                                     .n_out = 1,
                                     .n_in = 2,
                                     .out = {KERNEL_ARRAY(&c, floats[t], n)},
                                     .in = {KERNEL_ARRAY(&c, floats[t], n), saved},
                                     .unary = (uint8_t)f,
                                     .alpha = -0.5,
                                     .beta = 1.25};
                kernel_case_check(&c, &op, FUNCTION_EPSILONS, 0.25); /* slopes cancel near 0 */
                kernel_case_finish(&c);
            }
}

/* --- functions of two and three --------------------------------------------------------------- */

static void check_binary(int function, const struct plim_array *y, const struct plim_array *a,
                         const struct plim_array *b, double alpha)
{
    bool exact = !is_float(y->dtype);
    if (function == PLIM_BINARY_POW && !exact) kernel_case_fill(&c, a, 0.1, 4);
    if (function == PLIM_BINARY_DIV && b) kernel_case_fill(&c, b, 0.5, 4);
    struct plim_op op = {.kind = PLIM_OP_BINARY,
                         .n_out = 1,
                         .n_in = b ? 2 : 1,
                         .out = {y},
                         .in = {a, b},
                         .binary = (uint8_t)function,
                         .alpha = alpha};
    kernel_case_check(&c, &op, exact ? 0 : FUNCTION_EPSILONS, 1);
    kernel_case_finish(&c);
}

static enum plim_dtype binary_result(int function, enum plim_dtype type)
{
    return function >= PLIM_BINARY_EQ ? PLIM_BOOL : type;
}

Test(kernels_elementwise, binary_functions_of_every_float)
{
    for (int f = 0; f < PLIM_BINARY_COUNT; f++)
        for (int t = 0; t < 3; t++)
            for (int64_t n = 1; n < 300; n = n * 5 + 3) {
                const struct plim_array *a = KERNEL_ARRAY(&c, floats[t], n);
                const struct plim_array *b = KERNEL_ARRAY(&c, floats[t], n);
                if (n > 2) kernel_case_set(a, 2, kernel_case_get(b, 2)); /* equal somewhere */
                check_binary(f, KERNEL_ARRAY(&c, binary_result(f, floats[t]), n), a, b,
                             f == PLIM_BINARY_LERP ? 0.3 : 1);
            }
}

Test(kernels_elementwise, binary_functions_of_integers_are_exact)
{
    static const enum plim_dtype types[] = {PLIM_I64, PLIM_I32, PLIM_U8, PLIM_BOOL};
    for (int f = 0; f < PLIM_BINARY_COUNT; f++)
        for (int t = 0; t < 4; t++) {
            if (f == PLIM_BINARY_DIV || f == PLIM_BINARY_LERP || f == PLIM_BINARY_HYPOT) continue;
            const struct plim_array *a = KERNEL_ARRAY(&c, types[t], 83);
            const struct plim_array *b = KERNEL_ARRAY(&c, types[t], 83);
            check_binary(f, KERNEL_ARRAY(&c, binary_result(f, types[t]), 83), a, b, 1);
        }
}

Test(kernels_elementwise, binary_with_a_number_and_with_a_factor)
{
    check_binary(PLIM_BINARY_ADD, KERNEL_ARRAY(&c, PLIM_F32, 77), KERNEL_ARRAY(&c, PLIM_F32, 77),
                 KERNEL_ARRAY(&c, PLIM_F32, 77), -0.01);
    check_binary(PLIM_BINARY_MUL, KERNEL_ARRAY(&c, PLIM_BF16, 77), KERNEL_ARRAY(&c, PLIM_BF16, 77),
                 NULL, 0.125);
    check_binary(PLIM_BINARY_GE, KERNEL_ARRAY(&c, PLIM_BOOL, 77), KERNEL_ARRAY(&c, PLIM_I64, 77),
                 NULL, 7);
    check_binary(PLIM_BINARY_SUB, KERNEL_ARRAY(&c, PLIM_I64, 77), KERNEL_ARRAY(&c, PLIM_I64, 77),
                 KERNEL_ARRAY(&c, PLIM_I64, 77), 3);
}

Test(kernels_elementwise, binary_of_mixed_types)
{
    check_binary(PLIM_BINARY_MUL, KERNEL_ARRAY(&c, PLIM_F32, 4, 24),
                 KERNEL_ARRAY(&c, PLIM_BF16, 4, 24), KERNEL_ARRAY(&c, PLIM_F32, 4, 1), 1);
    check_binary(PLIM_BINARY_ADD, KERNEL_ARRAY(&c, PLIM_BF16, 96), KERNEL_ARRAY(&c, PLIM_BF16, 96),
                 KERNEL_ARRAY(&c, PLIM_I64, 96), 1);
    check_binary(PLIM_BINARY_DIV, KERNEL_ARRAY(&c, PLIM_F32, 96), KERNEL_ARRAY(&c, PLIM_I64, 96),
                 KERNEL_ARRAY(&c, PLIM_I32, 96), 1);
}

Test(kernels_elementwise, binary_broadcasts)
{
    static const int64_t inner[] = {1, 5, 8, 24, 33, 64};
    for (int i = 0; i < 6; i++) {
        int64_t h = inner[i];
        check_binary(PLIM_BINARY_ADD, KERNEL_ARRAY(&c, PLIM_BF16, 3, 7, h),
                     KERNEL_ARRAY(&c, PLIM_BF16, 3, 7, h), KERNEL_ARRAY(&c, PLIM_BF16, h), 1);
        check_binary(PLIM_BINARY_MUL, KERNEL_ARRAY(&c, PLIM_F32, 3, 7, h),
                     KERNEL_ARRAY(&c, PLIM_F32, 3, 1, h), KERNEL_ARRAY(&c, PLIM_F32, 7, 1), 1);
        check_binary(PLIM_BINARY_SUB, KERNEL_ARRAY(&c, PLIM_F32, 3, 7, h),
                     kernel_case_scalar(&c, PLIM_F32), KERNEL_ARRAY(&c, PLIM_F16, 3, 7, h), 1);
    }
}

Test(kernels_elementwise, binary_of_permuted_operands)
{
    int64_t shape[] = {5, 12, 16};
    static int orders[][3] = {{0, 1, 2}, {2, 1, 0}, {1, 2, 0}, {0, 2, 1}};
    for (int y = 0; y < 4; y++)
        for (int a = 0; a < 4; a++) {
            const struct plim_array *b =
                kernel_case_permuted(&c, PLIM_BF16, 3, shape, orders[a], 8);
            check_binary(PLIM_BINARY_MUL,
                         kernel_case_permuted(&c, PLIM_BF16, 3, shape, orders[y], 0),
                         kernel_case_permuted(&c, PLIM_BF16, 3, shape, orders[a], 1), b, 1);
        }
}

Test(kernels_elementwise, operands_that_lie_alike_in_memory_are_taken_in_packs)
{
    int64_t shape[] = {5, 12, 3};
    const struct plim_array *x = kernel_case_permuted(&c, PLIM_BF16, 3, shape, (int[]){2, 0, 1}, 0);
    check_binary(PLIM_BINARY_ADD, x, x, NULL, 1);
    cr_expect(strcmp(c.kernel, "binary_float_vector") == 0);
    check_binary(PLIM_BINARY_ADD, KERNEL_ARRAY(&c, PLIM_F32, 7, 24),
                 KERNEL_ARRAY(&c, PLIM_BF16, 24), KERNEL_ARRAY(&c, PLIM_F32, 7, 1), 1);
    cr_expect(strcmp(c.kernel, "binary_float_vector") == 0);
    check_binary(PLIM_BINARY_ADD, KERNEL_ARRAY(&c, PLIM_F32, 7, 20),
                 KERNEL_ARRAY(&c, PLIM_BF16, 20), KERNEL_ARRAY(&c, PLIM_F32, 7, 1), 1);
    cr_expect(strcmp(c.kernel, "binary_float_scalar") == 0);
}

Test(kernels_elementwise, binary_in_place_and_beyond_a_grid)
{
    const struct plim_array *a = KERNEL_ARRAY(&c, PLIM_F32, MORE_THAN_A_GRID);
    check_binary(PLIM_BINARY_ADD, a, a, KERNEL_ARRAY(&c, PLIM_BF16, MORE_THAN_A_GRID), 1);
    a = KERNEL_ARRAY(&c, PLIM_F32, 5, 3 * 2048 + 1); /* one by one */
    check_binary(PLIM_BINARY_ADD, a, a, KERNEL_ARRAY(&c, PLIM_F32, 3 * 2048 + 1), 1);
}

static void check_where(const struct plim_array *y, const struct plim_array *condition,
                        const struct plim_array *a, const struct plim_array *b)
{
    struct plim_op op = {
        .kind = PLIM_OP_WHERE, .n_out = 1, .n_in = 3, .out = {y}, .in = {condition, a, b}};
    kernel_case_check(&c, &op, 0, 0);
    kernel_case_finish(&c);
}

Test(kernels_elementwise, where_chooses)
{
    for (int64_t n = 1; n < 300; n = n * 5 + 3) {
        check_where(KERNEL_ARRAY(&c, PLIM_F32, n), KERNEL_ARRAY(&c, PLIM_BOOL, n),
                    KERNEL_ARRAY(&c, PLIM_F32, n), KERNEL_ARRAY(&c, PLIM_F32, n));
        check_where(KERNEL_ARRAY(&c, PLIM_BF16, n), KERNEL_ARRAY(&c, PLIM_BOOL, n),
                    kernel_case_scalar(&c, PLIM_F32), KERNEL_ARRAY(&c, PLIM_BF16, 1));
        check_where(KERNEL_ARRAY(&c, PLIM_I64, 3, n), KERNEL_ARRAY(&c, PLIM_BOOL, 3, 1),
                    KERNEL_ARRAY(&c, PLIM_I64, n), kernel_case_scalar(&c, PLIM_I64));
    }
}

/* --- the rest --------------------------------------------------------------------------------- */

Test(kernels_elementwise, triangles_of_every_diagonal)
{
    static const int64_t shapes[][2] = {{1, 1}, {5, 3}, {3, 5}, {40, 40}, {33, 64}};
    static const enum plim_dtype types[] = {PLIM_F32, PLIM_BF16, PLIM_BOOL, PLIM_I64};
    for (int i = 0; i < 5; i++)
        for (int t = 0; t < 4; t++) {
            struct plim_op op = {.n_out = 1,
                                 .n_in = 1,
                                 .out = {kernel_case_array(&c, types[t], 2, shapes[i])},
                                 .in = {kernel_case_array(&c, types[t], 2, shapes[i])}};
            for (op.dim = -2; op.dim <= 3; op.dim++) {
                op.kind = op.dim % 2 ? PLIM_OP_TRIU : PLIM_OP_TRIL;
                kernel_case_check(&c, &op, 0, 0);
                op.kind = op.dim % 2 ? PLIM_OP_TRIL : PLIM_OP_TRIU;
                kernel_case_check(&c, &op, 0, 0);
            }
            kernel_case_finish(&c);
        }
}

Test(kernels_elementwise, rows_backwards)
{
    static const enum plim_dtype types[] = {PLIM_F32, PLIM_BF16, PLIM_BOOL, PLIM_I64};
    const int64_t shape[] = {3, 70}, turned[] = {1, 3};
    for (int t = 0; t < 4; t++) {
        struct plim_op op = {.kind = PLIM_OP_FLIP,
                             .n_out = 1,
                             .n_in = 1,
                             .out = {KERNEL_ARRAY(&c, types[t], 3, 70)},
                             .in = {KERNEL_ARRAY(&c, types[t], 3, 70)}};
        kernel_case_check(&c, &op, 0, 0);
        op.in[0] = kernel_case_strided(&c, types[t], 2, shape, turned, 1);
        kernel_case_check(&c, &op, 0, 0);
        op.in[0] = op.out[0] = KERNEL_ARRAY(&c, types[t], 4, 0);
        kernel_case_check(&c, &op, 0, 0);
        kernel_case_finish(&c);
    }
}

Test(kernels_elementwise, dropout_drops_what_the_host_drops)
{
    for (int t = 0; t < 3; t++)
        for (int i = 0; i < LENGTHS; i++) {
            int64_t n = lengths[i];
            struct plim_op op = {
                .kind = PLIM_OP_DROPOUT,
                .n_out = 2,
                .n_in = 1,
                .out = {KERNEL_ARRAY(&c, floats[t], n), KERNEL_ARRAY(&c, PLIM_BOOL, n)},
                .in = {KERNEL_ARRAY(&c, floats[t], n)},
                .alpha = 0.1,
                .seed = 42};
            kernel_case_check(&c, &op, 1, 0);
            kernel_case_finish(&c);
        }
}

Test(kernels_elementwise, dropout_counts_elements_of_a_transposed_array_in_row_major_order)
{
    int64_t shape[] = {19, 24};
    struct plim_op op = {.kind = PLIM_OP_DROPOUT,
                         .n_out = 2,
                         .n_in = 1,
                         .out = {kernel_case_permuted(&c, PLIM_F32, 2, shape, (int[]){1, 0}, 0),
                                 kernel_case_permuted(&c, PLIM_BOOL, 2, shape, (int[]){1, 0}, 0)},
                         .in = {kernel_case_permuted(&c, PLIM_F32, 2, shape, (int[]){1, 0}, 0)},
                         .alpha = 0.5,
                         .seed = 43};
    kernel_case_check(&c, &op, 1, 0);
}

/* --- concatenation ---------------------------------------------------------------------------- */

static void check_cat(const struct plim_array *y, int dim, const struct plim_array *const *list,
                      size_t length)
{
    struct plim_op op = {.kind = PLIM_OP_CAT,
                         .n_out = 1,
                         .n_lists = 1,
                         .out = {y},
                         .dim = (int8_t)dim,
                         .lists = {list},
                         .list_length = length};
    kernel_case_check(&c, &op, 0, 0);
}

Test(kernels_elementwise, cat_along_every_dimension)
{
    static const enum plim_dtype types[] = {PLIM_U8, PLIM_BF16, PLIM_F32, PLIM_I64};
    for (int t = 0; t < 4; t++)
        for (int dim = 0; dim < 3; dim++) {
            int64_t shape[] = {3, 4, 5}, total = 0;
            const struct plim_array *list[4];
            for (int i = 0; i < 4; i++) {
                shape[dim] = i * 8 % 11; /* 0, 8, 5, 2 */
                total += shape[dim];
                list[i] = kernel_case_array(&c, types[t], 3, shape);
            }
            shape[dim] = total;
            check_cat(kernel_case_array(&c, types[t], 3, shape), dim, list, 4);
            kernel_case_finish(&c);
        }
}

Test(kernels_elementwise, cat_of_contiguous_arrays_is_one_launch)
{
    const struct plim_array *list[] = {KERNEL_ARRAY(&c, PLIM_BF16, 300, 64),
                                       KERNEL_ARRAY(&c, PLIM_BF16, 300, 640)};
    check_cat(KERNEL_ARRAY(&c, PLIM_BF16, 300, 704), 1, list, 2);
    cr_expect(eq(int, c.launches, 1));
}

Test(kernels_elementwise, cat_stacks_more_scalars_than_a_launch_takes)
{
    enum { SCALARS = 250 };
    const struct plim_array *values = KERNEL_ARRAY(&c, PLIM_F32, SCALARS);
    struct plim_array scalars[SCALARS];
    const struct plim_array *list[SCALARS];
    for (int i = 0; i < SCALARS; i++) {
        scalars[i] = (struct plim_array){.data = values->data + 4 * (uint64_t)i, .dtype = PLIM_F32};
        list[SCALARS - 1 - i] = &scalars[i];
    }
    check_cat(KERNEL_ARRAY(&c, PLIM_F32, SCALARS), 0, list, SCALARS);
    cr_expect(eq(int, c.launches, 3));
}

Test(kernels_elementwise, cat_of_strided_arrays_and_other_types)
{
    int64_t shape[] = {20, 16};
    const struct plim_array *list[] = {
        kernel_case_permuted(&c, PLIM_F32, 2, shape, (int[]){1, 0}, 0),
        kernel_case_array(&c, PLIM_BF16, 2, shape),
        kernel_case_strided(&c, PLIM_F32, 2, shape, (int64_t[]){40, 1}, 1)};
    check_cat(KERNEL_ARRAY(&c, PLIM_F32, 20, 48), 1, list, 3);
}
