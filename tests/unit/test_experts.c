/* Mixtures of experts: what chooses and moves rows, products of groups, what they ask for (measured
 * on the virtual GPU), and their time. Bytes of whole runs are in tests/golden/experts.jsonl. */
#include "devices/catalogue/catalogue.h"
#include "devices/needs/needs.h"
#include "devices/sim/roofline.h"
#include "support/arrays.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

static struct plim_op op_of(enum plim_op_kind kind, struct plim_array *out, struct plim_array *second,
                            struct plim_array *in, struct plim_array *beside)
{
    return (struct plim_op){.kind = kind,
                            .n_out = (uint8_t)(second ? 2 : 1),
                            .n_in = (uint8_t)(beside ? 2 : 1),
                            .out = {out, second},
                            .in = {in, beside}};
}

/* --- choosing and moving ---------------------------------------------------------------------- */

Test(experts, the_largest_of_each_row_stand_in_order)
{
    struct plim_array x = ARRAY(PLIM_F32, 2, 4), y = ARRAY(PLIM_F32, 2, 2), at = ARRAY(PLIM_I64, 2, 2);
    VALUES(&x, 1, 7, 3, 7, -1, -4, -2, -3);
    struct plim_op op = op_of(PLIM_OP_TOP_K, &y, &at, &x, NULL);
    run_op(&op);
    EXPECT_VALUES(&y, 0, 7, 7, -1, -2);
    EXPECT_VALUES(&at, 0, 1, 3, 0, 2);
}

Test(experts, equal_ones_keep_their_order_when_sorted)
{
    struct plim_array x = ARRAY(PLIM_I64, 5), y = ARRAY(PLIM_I64, 5), at = ARRAY(PLIM_I64, 5);
    VALUES(&x, 2, 0, 2, 1, 0);
    struct plim_op op = op_of(PLIM_OP_SORT, &y, &at, &x, NULL);
    run_op(&op);
    EXPECT_VALUES(&y, 0, 0, 0, 1, 2, 2);
    EXPECT_VALUES(&at, 0, 1, 4, 3, 0, 2);
}

Test(experts, a_histogram_counts_and_leaves_out_what_has_no_bin)
{
    struct plim_array x = ARRAY(PLIM_I32, 6), y = ARRAY(PLIM_I32, 3);
    VALUES(&x, 2, 0, 2, 3, -1, 2);
    VALUES(&y, 9, 9, 9);
    struct plim_op op = op_of(PLIM_OP_HISTOGRAM, &y, NULL, &x, NULL);
    run_op(&op);
    EXPECT_VALUES(&y, 0, 1, 0, 3);
}

Test(experts, the_first_of_the_largest_is_found)
{
    struct plim_array x = ARRAY(PLIM_F32, 3, 3), y = ARRAY(PLIM_I64, 3);
    VALUES(&x, 1, 3, 3, 4, 2, NAN, -1, -2, -3);
    struct plim_op op = op_of(PLIM_OP_ARGMAX, &y, NULL, &x, NULL);
    run_op(&op);
    EXPECT_VALUES(&y, 0, 1, 2, 0);
}

Test(experts, scattering_writes_where_indices_say)
{
    struct plim_array x = ARRAY(PLIM_F32, 2, 2), at = ARRAY(PLIM_I64, 2, 2), y = ARRAY(PLIM_F32, 2, 3);
    VALUES(&x, 1, 2, 3, 4);
    VALUES(&at, 2, 0, 1, 2);
    VALUES(&y, 8, 8, 8, 8, 8, 8);
    struct plim_op op = op_of(PLIM_OP_SCATTER, &y, NULL, &x, &at);
    run_op(&op);
    EXPECT_VALUES(&y, 0, 2, 8, 1, 8, 3, 4);
}

Test(experts, gathering_reads_where_indices_say)
{
    struct plim_array x = ARRAY(PLIM_F32, 2, 3), at = ARRAY(PLIM_I64, 2, 2), y = ARRAY(PLIM_F32, 2, 2);
    VALUES(&x, 1, 2, 3, 4, 5, 6);
    VALUES(&at, 2, 0, 1, 2);
    struct plim_op op = op_of(PLIM_OP_GATHER, &y, NULL, &x, &at);
    run_op(&op);
    EXPECT_VALUES(&y, 0, 3, 1, 5, 6);
}

Test(experts, adding_by_index_adds_up_where_indices_are_alike)
{
    struct plim_array x = ARRAY(PLIM_F32, 2, 3), at = ARRAY(PLIM_I64, 1, 3), y = ARRAY(PLIM_F32, 2, 2);
    VALUES(&x, 1, 2, 3, 4, 5, 6);
    VALUES(&at, 1, 0, 1);
    VALUES(&y, 10, 20, 30, 40);
    at.shape[0] = 2, at.stride[0] = 0; /* the same for both rows */
    struct plim_op op = op_of(PLIM_OP_ADD_BY_INDEX, &y, NULL, &x, &at);
    run_op(&op);
    EXPECT_VALUES(&y, 0, 12, 24, 35, 50);
}

Test(experts, a_mask_is_broadcast_over_rows)
{
    struct plim_array x = ARRAY(PLIM_F32, 2, 2), mask = ARRAY(PLIM_BOOL, 2, 1), y = ARRAY(PLIM_F32, 2, 2);
    VALUES(&x, 1, 2, 3, 4);
    VALUES(&mask, 0, 1);
    struct plim_op op = op_of(PLIM_OP_MASKED_FILL, &y, NULL, &x, &mask);
    op.alpha = -1;
    run_op(&op);
    EXPECT_VALUES(&y, 0, 1, 2, -1, -1);
}

/* --- products of groups ----------------------------------------------------------------------- */

static struct plim_op grouped(struct plim_array *y, struct plim_array *a, struct plim_array *b,
                              struct plim_array *ends)
{
    return (struct plim_op){.kind = PLIM_OP_MATMUL_GROUPED,
                            .n_out = 1,
                            .n_in = 3,
                            .alpha = 1,
                            .out = {y},
                            .in = {a, b, ends}};
}

/* Three groups, of which the second has no rows. */
Test(experts, a_row_meets_the_matrix_of_its_group)
{
    struct plim_array a = ARRAY(PLIM_F32, 3, 1), b = ARRAY(PLIM_F32, 3, 1, 2),
                      ends = ARRAY(PLIM_I32, 3), y = ARRAY(PLIM_F32, 3, 2);
    VALUES(&a, 1, 2, 3);
    VALUES(&b, 1, 10, 5, 50, 7, 70);
    VALUES(&ends, 1, 1, 3);
    struct plim_op op = grouped(&y, &a, &b, &ends);
    run_op(&op);
    EXPECT_VALUES(&y, 0, 1, 10, 14, 140, 21, 210);
}

Test(experts, the_gradient_of_a_matrix_sums_over_its_rows_alone)
{
    struct plim_array a = ARRAY(PLIM_F32, 1, 3), b = ARRAY(PLIM_F32, 3, 2),
                      ends = ARRAY(PLIM_I32, 3), y = ARRAY(PLIM_F32, 3, 1, 2);
    VALUES(&a, 1, 2, 3);
    VALUES(&b, 1, 10, 2, 20, 3, 30);
    VALUES(&ends, 1, 1, 3);
    VALUES(&y, 8, 8, 8, 8, 8, 8);
    struct plim_op op = grouped(&y, &a, &b, &ends);
    run_op(&op);
    EXPECT_VALUES(&y, 0, 1, 10, 0, 0, 13, 130);
}

/* --- what they ask for ------------------------------------------------------------------------ */

static const struct plim_device_info a100 = {.compute_capability = 80, .multiprocessors = 108},
                                     h100 = {.compute_capability = 90, .multiprocessors = 132};

Test(experts, many_items_are_sorted_with_a_temporary_of_cub)
{
    struct plim_need needs[PLIM_SORT_MAX_NEEDS];
    cr_expect(eq(int, plim_sort_needs(&a100, PLIM_I64, 4096, needs), 1));
    cr_expect(eq(i64, needs[0].bytes, 32768));
    cr_expect(eq(int, plim_sort_needs(&a100, PLIM_I64, 4097, needs), 2));
    cr_expect(eq(i64, needs[1].bytes, 84991));
    cr_expect(eq(int, plim_sort_needs(&h100, PLIM_I64, 4097, needs), 2));
    cr_expect(eq(i64, needs[1].bytes, 83967));
}

/* torch.sort(x, stable=True) of fp32 on the virtual GPUs */
Test(experts, keys_of_four_bytes_are_sorted_in_tiles_of_their_own)
{
    static const struct {
        int compute_capability;
        int64_t items, bytes;
    } seen[] = {
        {75, 32003, 405503}, {80, 32003, 404479}, {86, 262144, 3242495}, {90, 151936, 1861631}, {100, 5000, 70143}};
    for (size_t i = 0; i < sizeof(seen) / sizeof(seen[0]); i++) {
        const struct plim_device_info info = {.compute_capability = seen[i].compute_capability};
        struct plim_need needs[PLIM_SORT_MAX_NEEDS];
        cr_expect(eq(int, plim_sort_needs(&info, PLIM_F32, seen[i].items, needs), 2));
        cr_expect(eq(i64, needs[0].bytes, 8 * seen[i].items));
        cr_expect(eq(i64, needs[1].bytes, seen[i].bytes));
    }
}

Test(experts, rows_are_added_by_as_many_bits_as_there_are_rows)
{
    static const struct {
        int64_t items, rows, bytes;
    } measured[] = {{2304, 100, 1},        {8192, 1, 5631},       {8192, 256, 5631},
                    {8192, 257, 138751},   {8192, 65536, 138751}, {8192, 65537, 140799},
                    {8192, 16777217, 142847}};
    for (size_t i = 0; i < sizeof(measured) / sizeof(measured[0]); i++) {
        struct plim_need needs[PLIM_INDEX_ADD_NEEDS];
        plim_index_add_needs(&a100, measured[i].items, measured[i].rows, needs);
        cr_expect(eq(i64, needs[0].bytes, 8 * measured[i].items));
        cr_expect(eq(i64, needs[PLIM_INDEX_ADD_NEEDS - 1].bytes, measured[i].bytes));
    }
}

Test(experts, one_kernel_for_all_groups_takes_tables_and_a_workspace)
{
    static const int64_t measured[][2] = {{1, 84}, {3, 204}, {4, 240}, {60, 3600}, {128, 7680}};
    struct plim_need needs[PLIM_GROUPED_MATMUL_NEEDS];
    for (size_t i = 0; i < sizeof(measured) / sizeof(measured[0]); i++) {
        cr_expect(eq(int, plim_grouped_matmul_needs(&h100, PLIM_BF16, measured[i][0], needs), 2));
        cr_expect(eq(i64, needs[0].bytes, measured[i][1]));
        cr_expect(eq(i64, needs[1].bytes, 67584));
    }
    cr_expect(eq(int, plim_grouped_matmul_needs(&h100, PLIM_F32, 8, needs), 0));
    cr_expect(eq(int, plim_grouped_matmul_needs(&a100, PLIM_BF16, 8, needs), 0));
}

/* --- the clock -------------------------------------------------------------------------------- */

Test(experts, without_such_a_kernel_each_group_is_a_launch)
{
    const struct plim_gpu *gpu;
    struct plim_error err = PLIM_ERROR_INIT;
    static struct plim_roofline r;
    cr_assert(eq(int, plim_catalogue_find("H100-SXM", &gpu, &err), PLIM_OK));
    plim_roofline_init(&r, gpu);
    struct plim_array a = {.shape = {1024, 512}, .stride = {512, 1}, .ndim = 2, .dtype = PLIM_BF16},
                      b = {.shape = {64, 512, 256}, .stride = {131072, 256, 1}, .ndim = 3, .dtype = PLIM_BF16},
                      ends = {.shape = {64}, .stride = {1}, .ndim = 1, .dtype = PLIM_I32},
                      y = {.shape = {1024, 256}, .stride = {256, 1}, .ndim = 2, .dtype = PLIM_BF16},
                      scratch = {.shape = {1}, .stride = {1}, .ndim = 1, .dtype = PLIM_U8};
    struct plim_op op = grouped(&y, &a, &b, &ends), whole = op;
    whole.n_scratch = 1;
    whole.scratch[0] = &scratch;
    double one = plim_work_of(&whole, false).host_seconds;
    cr_expect(epsilon_eq(dbl, plim_work_of(&op, false).host_seconds, 64 * one, 1e-9));
    cr_expect(lt(dbl, plim_roofline_device_seconds(&r, &whole), plim_roofline_device_seconds(&r, &op)));
}
