#include "support/kernel_case.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

static struct kernel_case c;

static void setup(void)
{
    kernel_case_init(&c, 7);
}

static void finish(void)
{
    kernel_case_finish(&c);
}

TestSuite(kernels_quantized, .init = setup, .fini = finish);

static const enum plim_dtype floats[] = {PLIM_F32, PLIM_BF16, PLIM_F16};
enum { BOOK = 256 };

/* 256 numbers in increasing order, from -1 to 1. */
static const struct plim_array *book(void)
{
    const struct plim_array *a = KERNEL_ARRAY(&c, PLIM_F32, BOOK);
    for (int i = 0; i < BOOK; i++) kernel_case_set(a, i, (2.0 * i * (i + 3) / (255.0 * 258.0)) - 1);
    return a;
}

static int64_t bytes_of(enum plim_quantized how, int64_t elements)
{
    return how < PLIM_QUANTIZED_BOOK ? (elements + 1) / 2 : elements;
}

static struct plim_op op_of(enum plim_op_kind kind, enum plim_quantized how, int64_t block)
{
    return (struct plim_op){.kind = kind, .quantized = (uint8_t)how, .block = block};
}

/* The last block is shorter, and has an odd number of elements. */
static void check_quantize(enum plim_quantized how, int64_t block, enum plim_dtype type, int64_t elements)
{
    struct plim_op op = op_of(PLIM_OP_QUANTIZE, how, block);
    op.n_out = 2;
    op.n_in = 2;
    op.out[0] = KERNEL_ARRAY(&c, PLIM_U8, bytes_of(how, elements));
    op.out[1] = KERNEL_ARRAY(&c, PLIM_F32, (elements + block - 1) / block);
    op.in[0] = KERNEL_ARRAY(&c, type, elements);
    op.in[1] = how == PLIM_QUANTIZED_BOOK ? book() : NULL;
    for (int64_t i = 0; i < elements; i += block) kernel_case_set(op.in[0], i, 2); /* no quotient is rounded */
    kernel_case_check(&c, &op, 0, 0);
    kernel_case_finish(&c);
}

Test(kernels_quantized, codes_of_every_kind_and_type)
{
    for (int t = 0; t < 3; t++) {
        for (int64_t block = 64; block <= 256; block *= 2) {
            check_quantize(PLIM_QUANTIZED_NF4, block, floats[t], 5 * block + 33);
            check_quantize(PLIM_QUANTIZED_FP4, block, floats[t], 2 * block + 1);
        }
        check_quantize(PLIM_QUANTIZED_BOOK, 256, floats[t], 700);
        check_quantize(PLIM_QUANTIZED_ROWS, 100, floats[t], 900);
        check_quantize(PLIM_QUANTIZED_ROWS, 2051, floats[t], 3 * 2051);
    }
}

Test(kernels_quantized, codes_of_more_blocks_than_a_grid_takes)
{
    check_quantize(PLIM_QUANTIZED_NF4, 2, PLIM_F32, 40000);
}

Test(kernels_quantized, a_block_of_zeros_has_the_code_of_zero)
{
    struct plim_op op = op_of(PLIM_OP_QUANTIZE, PLIM_QUANTIZED_NF4, 64);
    op.n_out = 2;
    op.n_in = 1;
    op.out[0] = KERNEL_ARRAY(&c, PLIM_U8, 64);
    op.out[1] = KERNEL_ARRAY(&c, PLIM_F32, 2);
    op.in[0] = KERNEL_ARRAY(&c, PLIM_BF16, 128);
    kernel_case_fill(&c, op.in[0], 0, 0);
    kernel_case_check(&c, &op, 0, 0);
}

/* `offset`: of the result's first element from an aligned address. */
static void check_dequantize(enum plim_quantized how, int64_t block, enum plim_dtype type, int64_t elements,
                             int64_t offset)
{
    struct plim_op op = op_of(PLIM_OP_DEQUANTIZE, how, block);
    op.n_out = 1;
    op.n_in = 3;
    op.out[0] = kernel_case_strided(&c, type, 1, &elements, (int64_t[]){1}, offset);
    op.in[0] = KERNEL_ARRAY(&c, PLIM_U8, bytes_of(how, elements));
    op.in[1] = KERNEL_ARRAY(&c, PLIM_F32, (elements + block - 1) / block);
    op.in[2] = how == PLIM_QUANTIZED_BOOK ? book() : NULL;
    kernel_case_fill(&c, op.in[0], 0, 256);
    kernel_case_check(&c, &op, 1, 0);
    kernel_case_finish(&c);
}

Test(kernels_quantized, numbers_of_every_kind_and_type)
{
    static const enum plim_quantized kinds[] = {PLIM_QUANTIZED_NF4, PLIM_QUANTIZED_FP4, PLIM_QUANTIZED_BOOK,
                                                PLIM_QUANTIZED_ROWS};
    for (int t = 0; t < 3; t++)
        for (int k = 0; k < 4; k++) {
            check_dequantize(kinds[k], 64, floats[t], 64 * 9, 0);
            check_dequantize(kinds[k], 64, floats[t], 64 * 40 + 8, 0);
            check_dequantize(kinds[k], 64, floats[t], 64 * 3 + 5, 0);
            check_dequantize(kinds[k], 64, floats[t], 64 * 3, 1);
            check_dequantize(kinds[k], 12, floats[t], 240, 0);
        }
}

Test(kernels_quantized, numbers_of_more_elements_than_a_grid_takes)
{
    check_dequantize(PLIM_QUANTIZED_NF4, 64, PLIM_BF16, 64 * 3000, 0);
    check_dequantize(PLIM_QUANTIZED_ROWS, 7, PLIM_F32, 7 * 5000, 0);
}

/* `nested`: its scales are codes of 256 to a scale. */
static void check_product(enum plim_dtype type, int64_t rows, int64_t n, int64_t k, bool bias, bool nested)
{
    enum { BLOCK = 64, NESTED_BLOCK = 256 };
    struct plim_op op = op_of(PLIM_OP_MATMUL_4BIT, PLIM_QUANTIZED_NF4, BLOCK);
    int64_t blocks = (n * k + BLOCK - 1) / BLOCK;
    op.n_out = 1;
    op.n_in = (uint8_t)(nested ? 7 : 4);
    op.out[0] = KERNEL_ARRAY(&c, type, rows, n);
    op.in[0] = KERNEL_ARRAY(&c, type, rows, k);
    op.in[1] = KERNEL_ARRAY(&c, PLIM_U8, (n * k + 1) / 2);
    op.in[2] = KERNEL_ARRAY(&c, PLIM_F32, nested ? (blocks + NESTED_BLOCK - 1) / NESTED_BLOCK : blocks);
    op.in[3] = bias ? KERNEL_ARRAY(&c, type, n) : NULL;
    if (nested) {
        op.in[4] = KERNEL_ARRAY(&c, PLIM_U8, blocks);
        op.in[5] = book();
        op.in[6] = kernel_case_scalar(&c, PLIM_F32);
    }
    kernel_case_check(&c, &op, 2, 4 * (double)k);
    kernel_case_finish(&c);
}

Test(kernels_quantized, products_with_a_weight_in_4_bits)
{
    for (int t = 0; t < 3; t++)
        for (int way = 0; way < 4; way++) {
            check_product(floats[t], 1, 37, 192, way & 1, way & 2);
            check_product(floats[t], 3, 70, 65, way & 1, way & 2);
        }
    check_product(PLIM_BF16, 2, 300, 128, true, true);
}

static void check_scaled(enum plim_dtype type, int64_t m, int64_t n, bool bias)
{
    struct plim_op op = {.kind = PLIM_OP_SCALE_INT32, .n_out = 1, .n_in = 4};
    op.out[0] = KERNEL_ARRAY(&c, type, m, n);
    op.in[0] = KERNEL_ARRAY(&c, PLIM_I32, m, n);
    op.in[1] = KERNEL_ARRAY(&c, PLIM_F32, m);
    op.in[2] = KERNEL_ARRAY(&c, PLIM_F32, n);
    op.in[3] = bias ? KERNEL_ARRAY(&c, type, n) : NULL;
    kernel_case_fill(&c, op.in[0], -127 * 127, 127 * 127);
    kernel_case_check(&c, &op, 2, 4);
    kernel_case_finish(&c);
}

Test(kernels_quantized, sums_of_bytes_are_scaled_by_row_and_column)
{
    for (int t = 0; t < 3; t++) {
        check_scaled(floats[t], 5, 33, false);
        check_scaled(floats[t], 130, 64, true);
    }
}

static void check_bytes(int64_t m, int64_t n, int64_t k)
{
    struct plim_op op = {.kind = PLIM_OP_MATMUL_INT8, .n_out = 1, .n_in = 2};
    op.out[0] = KERNEL_ARRAY(&c, PLIM_I32, m, n);
    op.in[0] = KERNEL_ARRAY(&c, PLIM_U8, m, k);
    op.in[1] = KERNEL_ARRAY(&c, PLIM_U8, n, k);
    kernel_case_fill(&c, op.in[0], 0, 256);
    kernel_case_fill(&c, op.in[1], 0, 256);
    kernel_case_check(&c, &op, 0, 0);
    kernel_case_finish(&c);
}

Test(kernels_quantized, products_of_bytes_of_any_size)
{
    check_bytes(1, 1, 1);
    check_bytes(5, 33, 70);
    check_bytes(40, 101, 3);
}
