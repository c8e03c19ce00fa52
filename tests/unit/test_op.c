#include "devices/op.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#define ARRAY2(type, a, b)                                                                         \
    {                                                                                              \
        .shape = {a, b}, .stride = {b, 1}, .ndim = 2, .dtype = type                                \
    }

Test(op, every_kind_has_a_name)
{
    for (int k = 0; k < PLIM_OP_KIND_COUNT; k++)
        cr_expect(plim_op_name((enum plim_op_kind)k)[0] != '\0');
    cr_expect(eq(str, (char *)plim_op_name(PLIM_OP_MATMUL), "matmul"));
    cr_expect(eq(str, (char *)plim_op_name(PLIM_OP_KIND_COUNT), "unknown"));
}

Test(op, a_scalar_is_one_element)
{
    struct plim_array a = {.ndim = 0, .dtype = PLIM_F32};
    cr_expect(eq(i64, plim_array_elements(&a), 1));
    cr_expect(eq(i64, plim_array_bytes(&a), 4));
}

Test(op, a_broadcast_dimension_is_read_once)
{
    struct plim_array a = {.shape = {8, 1024}, .stride = {0, 1}, .ndim = 2, .dtype = PLIM_BF16};
    cr_expect(eq(i64, plim_array_elements(&a), 8192));
    cr_expect(eq(i64, plim_array_bytes(&a), 2048));
}

Test(op, an_empty_array_has_no_bytes)
{
    struct plim_array a = {.shape = {0, 4}, .stride = {0, 1}, .ndim = 2, .dtype = PLIM_I64};
    cr_expect(eq(i64, plim_array_elements(&a), 0));
    cr_expect(eq(i64, plim_array_bytes(&a), 0));
}

Test(op, a_matmul_moves_every_operand_once)
{
    struct plim_array a = {.shape = {3, 5, 7}, .stride = {35, 7, 1}, .ndim = 3, .dtype = PLIM_BF16};
    struct plim_array b = {
        .shape = {3, 7, 11}, .stride = {77, 1, 7}, .ndim = 3, .dtype = PLIM_BF16};
    struct plim_array c = {
        .shape = {3, 5, 11}, .stride = {55, 11, 1}, .ndim = 3, .dtype = PLIM_BF16};
    struct plim_op op = {
        .kind = PLIM_OP_MATMUL, .n_out = 1, .n_in = 2, .out = {&c}, .in = {&a, &b}};
    cr_expect(eq(dbl, plim_op_bytes(&op), 2.0 * 3 * (5 * 7 + 7 * 11 + 5 * 11)));
}

Test(op, what_is_kept_of_rows_is_read_and_written)
{
    struct plim_array tile = ARRAY2(PLIM_BF16, 4, 100),
                      row = {.shape = {4}, .stride = {1}, .ndim = 1, .dtype = PLIM_F32},
                      targets = {.shape = {4}, .stride = {1}, .ndim = 1, .dtype = PLIM_I64};
    struct plim_op op = {.kind = PLIM_OP_ROW_STATISTICS,
                         .n_out = 5,
                         .n_in = 2,
                         .out = {&row, &row, &row, NULL, &row},
                         .in = {&tile, &targets}};
    cr_expect(eq(dbl, plim_op_bytes(&op), 2 * 4 * 16 + 800 + 32));
}

Test(op, a_matmul_workspace_is_no_traffic)
{
    struct plim_array a = ARRAY2(PLIM_F32, 4, 4),
                      bias = {.shape = {4}, .stride = {1}, .ndim = 1, .dtype = PLIM_F32};
    struct plim_array space = {.shape = {8 << 20}, .stride = {1}, .ndim = 1, .dtype = PLIM_U8};
    struct plim_op op = {.kind = PLIM_OP_MATMUL,
                         .n_out = 1,
                         .n_in = 3,
                         .n_scratch = 1,
                         .out = {&a},
                         .in = {&a, &a, &bias},
                         .scratch = {&space}};
    cr_expect(eq(dbl, plim_op_bytes(&op), 3 * 64 + 16));
}

Test(op, an_embedding_reads_only_the_rows_it_needs)
{
    struct plim_array table = ARRAY2(PLIM_F32, 50257, 768), rows = ARRAY2(PLIM_F32, 10, 768);
    struct plim_array ids = {.shape = {10}, .stride = {1}, .ndim = 1, .dtype = PLIM_I64};
    struct plim_op op = {
        .kind = PLIM_OP_EMBEDDING, .n_out = 1, .n_in = 2, .out = {&rows}, .in = {&table, &ids}};
    cr_expect(eq(dbl, plim_op_bytes(&op), 2.0 * 10 * 768 * 4 + 80));
}

Test(op, absent_operands_are_skipped)
{
    struct plim_array x = ARRAY2(PLIM_F32, 4, 4);
    struct plim_op op = {.kind = PLIM_OP_LAYER_NORM,
                         .n_out = 2,
                         .n_in = 3,
                         .out = {&x, NULL},
                         .in = {&x, NULL, NULL}};
    cr_expect(eq(dbl, plim_op_bytes(&op), 128));
}

/* Two tensors of 100 and 28 elements of fp32. */
static const struct plim_array first = {
    .shape = {100}, .stride = {1}, .ndim = 1, .dtype = PLIM_F32};
static const struct plim_array second = {
    .shape = {28}, .stride = {1}, .ndim = 1, .dtype = PLIM_F32};
static const struct plim_array *const list_a[] = {&first, &second},
                                      *const list_b[] = {&first, &second},
                                      *const list_c[] = {&first, &second};
static const double list_bytes = 512;

static double foreach_bytes(enum plim_foreach f, int lists)
{
    struct plim_op op = {.kind = PLIM_OP_FOREACH,
                         .foreach = (uint8_t)f,
                         .n_lists = (uint8_t)lists,
                         .lists = {list_a, list_b, list_c},
                         .list_length = 2};
    return plim_op_bytes(&op);
}

Test(op, foreach_in_place_reads_and_writes_its_first_list)
{
    cr_expect(eq(dbl, foreach_bytes(PLIM_FOREACH_MUL, 1), 2 * list_bytes));
    cr_expect(eq(dbl, foreach_bytes(PLIM_FOREACH_LERP, 2), 3 * list_bytes));
    cr_expect(eq(dbl, foreach_bytes(PLIM_FOREACH_ADDCDIV, 3), 4 * list_bytes));
}

Test(op, foreach_that_only_writes_does_not_read_it)
{
    cr_expect(eq(dbl, foreach_bytes(PLIM_FOREACH_NORM, 2), 2 * list_bytes));
    cr_expect(eq(dbl, foreach_bytes(PLIM_FOREACH_SQRT, 2), 2 * list_bytes));
}

Test(op, foreach_reads_a_list_given_twice_once)
{
    struct plim_op op = {.kind = PLIM_OP_FOREACH,
                         .foreach = PLIM_FOREACH_ADDCMUL,
                         .n_lists = 3,
                         .lists = {list_a, list_b, list_b},
                         .list_length = 2};
    cr_expect(eq(dbl, plim_op_bytes(&op), 3 * list_bytes));
}

Test(op, fused_adamw_reads_four_and_writes_three)
{
    static const struct plim_array *const list_d[] = {&first, &second};
    struct plim_op op = {.kind = PLIM_OP_OPTIMIZER,
                         .foreach = PLIM_FUSED_ADAMW,
                         .n_lists = 4,
                         .lists = {list_a, list_b, list_c, list_d},
                         .list_length = 2};
    cr_expect(eq(dbl, plim_op_bytes(&op), 7 * list_bytes));
}
