#include "support/kernel_case.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <math.h>

static struct kernel_case c;

static void setup(void)
{
    kernel_case_init(&c, 11);
}

static void finish(void)
{
    kernel_case_finish(&c);
}

TestSuite(kernels_indexed, .init = setup, .fini = finish);

static const enum plim_dtype types[] = {PLIM_F32, PLIM_BF16, PLIM_F16, PLIM_I64};

/* Distinct indices of a row of `room` elements, unordered. */
static const struct plim_array *places(int64_t rows, int64_t width, int64_t room, enum plim_dtype type)
{
    const struct plim_array *a = KERNEL_ARRAY(&c, type, rows, width);
    for (int64_t i = 0; i < rows * width; i++)
        kernel_case_set(a, i, (double)((i / width * 7 + i % width * 3) % room));
    return a;
}

/* `room` is not a multiple of 3. */
static void check_by_index(enum plim_op_kind kind, enum plim_dtype type, int64_t rows, int64_t width, int64_t room)
{
    const struct plim_array *own = KERNEL_ARRAY(&c, type, rows, width), *named = KERNEL_ARRAY(&c, type, rows, room);
    const struct plim_array *indices = places(rows, width, room, rows % 2 ? PLIM_I64 : PLIM_I32);
    struct plim_op op = {.kind = kind, .n_out = 1, .n_in = 2};
    op.out[0] = kind == PLIM_OP_GATHER ? own : named;
    op.in[0] = kind == PLIM_OP_GATHER ? named : own;
    op.in[1] = indices;
    kernel_case_check(&c, &op, 0, 0);
    kernel_case_finish(&c);
}

Test(kernels_indexed, elements_by_index_of_every_type)
{
    for (int t = 0; t < 4; t++) {
        check_by_index(PLIM_OP_GATHER, types[t], 33, 1, 50);
        check_by_index(PLIM_OP_GATHER, types[t], 8, 5, 7);
        check_by_index(PLIM_OP_SCATTER, types[t], 33, 1, 50);
        check_by_index(PLIM_OP_SCATTER, types[t], 8, 5, 7);
    }
    check_by_index(PLIM_OP_GATHER, PLIM_BF16, 5000, 2, 11);
}

Test(kernels_indexed, an_index_out_of_range_reads_zeros_and_writes_nothing)
{
    const struct plim_array *own = KERNEL_ARRAY(&c, PLIM_F32, 3, 1), *named = KERNEL_ARRAY(&c, PLIM_F32, 3, 8);
    const struct plim_array *indices = KERNEL_ARRAY(&c, PLIM_I64, 3, 1);
    struct plim_op op = {.kind = PLIM_OP_GATHER, .n_out = 1, .n_in = 2, .out = {own}, .in = {named, indices}};
    kernel_case_set(indices, 0, -1);
    kernel_case_set(indices, 1, 8);
    kernel_case_set(indices, 2, 1e15);
    kernel_case_run(&c, &op);
    for (int i = 0; i < 3; i++) cr_expect(eq(dbl, kernel_case_get(own, i), 0));
    double before[24];
    for (int i = 0; i < 24; i++) before[i] = kernel_case_get(named, i);
    op = (struct plim_op){.kind = PLIM_OP_SCATTER, .n_out = 1, .n_in = 2, .out = {named}, .in = {own, indices}};
    kernel_case_run(&c, &op);
    for (int i = 0; i < 24; i++) cr_expect(eq(dbl, kernel_case_get(named, i), before[i]));
}

/* The same indices for each of `rows` matrices; what is added may be transposed. */
static void check_repeated(enum plim_dtype type, int64_t rows, int64_t count, int64_t width, int64_t room, bool across)
{
    const int64_t shape[] = {rows, count, width}, stride[] = {0, width, 1};
    const struct plim_array *indices = kernel_case_strided(&c, PLIM_I64, 3, shape, stride, 0);
    for (int64_t i = 0; i < count * width; i++) kernel_case_set(indices, i, (double)((i * 5 + i / 7) % room));
    const struct plim_array *named = KERNEL_ARRAY(&c, type, rows, count, room);
    const struct plim_array *own = across ? kernel_case_permuted(&c, type, 3, shape, (int[]){0, 2, 1}, 1)
                                          : KERNEL_ARRAY(&c, type, rows, count, width);
    struct plim_op op = {.kind = PLIM_OP_ADD_BY_INDEX, .n_out = 1, .n_in = 2, .out = {named}, .in = {own, indices}};
    kernel_case_check(&c, &op, type == PLIM_F32 ? 8 : 2, 1);
    op = (struct plim_op){.kind = PLIM_OP_GATHER, .n_out = 1, .n_in = 2, .out = {own}, .in = {named, indices}};
    if (!across) kernel_case_check(&c, &op, 0, 0);
    kernel_case_finish(&c);
}

Test(kernels_indexed, indices_that_are_alike_and_those_of_all_rows)
{
    for (int t = 0; t < 3; t++) {
        check_repeated(types[t], 3, 5, 9, 4, false);
        check_repeated(types[t], 2, 7, 6, 50, true);
        check_repeated(types[t], 1, 1, 1, 3, false);
    }
    check_repeated(PLIM_F32, 9, 40, 70, 33, true);
}

/* --- masks ------------------------------------------------------------------------------------ */

static void check_masked(const struct plim_array *out, const struct plim_array *x, const struct plim_array *mask,
                         double value)
{
    struct plim_op op = {.kind = PLIM_OP_MASKED_FILL, .n_out = 1, .n_in = 2, .alpha = value};
    op.out[0] = out;
    op.in[0] = x;
    op.in[1] = mask;
    kernel_case_fill(&c, mask, 0, 2);
    kernel_case_check(&c, &op, 0, 0);
    kernel_case_finish(&c);
}

Test(kernels_indexed, what_a_mask_hides_becomes_a_number)
{
    for (int t = 0; t < 4; t++) {
        double value = t == 3 ? -100 : -INFINITY;
        check_masked(KERNEL_ARRAY(&c, types[t], 4, 64), KERNEL_ARRAY(&c, types[t], 4, 64),
                     KERNEL_ARRAY(&c, PLIM_BOOL, 4, 64), value);
        check_masked(KERNEL_ARRAY(&c, types[t], 3, 5, 7), KERNEL_ARRAY(&c, types[t], 3, 5, 7),
                     KERNEL_ARRAY(&c, PLIM_BOOL, 5, 1), 0);
        check_masked(KERNEL_ARRAY(&c, types[t], 700, 33), KERNEL_ARRAY(&c, types[t], 700, 1),
                     KERNEL_ARRAY(&c, PLIM_BOOL, 33), value);
    }
}

/* --- where a mask is not 0 -------------------------------------------------------------------- */

/* Of `elements`, about so many in a hundred; returns how many. */
static int64_t mark(const struct plim_array *mask, int hundredth)
{
    int64_t marked = 0;
    for (int64_t i = 0; i < plim_array_elements(mask); i++) {
        bool is_set = (i * 7919 + 13) % 100 < hundredth;
        kernel_case_set(mask, i, is_set);
        marked += is_set;
    }
    return marked;
}

/* `more` places than there are, or fewer. */
static void check_nonzero(const struct plim_array *mask, int hundredth, int64_t more)
{
    struct plim_op op = {.kind = PLIM_OP_NONZERO, .n_out = 1, .n_in = 1, .in = {mask}};
    int64_t found = mark(mask, hundredth) + more;
    if (found < 0) found = 0;
    op.out[0] = KERNEL_ARRAY(&c, PLIM_I64, found);
    kernel_case_check(&c, &op, 0, 0);
    const int64_t shape[] = {found, mask->ndim}, columns[] = {1, found + 3};
    op.out[0] = kernel_case_strided(&c, PLIM_I64, 2, shape, columns, 0);
    kernel_case_check(&c, &op, 0, 0);
    kernel_case_finish(&c);
}

Test(kernels_indexed, places_that_are_not_0)
{
    for (int hundredth = 0; hundredth <= 100; hundredth += 50) {
        check_nonzero(KERNEL_ARRAY(&c, PLIM_BOOL, 1), hundredth, 0);
        check_nonzero(KERNEL_ARRAY(&c, PLIM_I64, 300), hundredth, 2);
        check_nonzero(KERNEL_ARRAY(&c, PLIM_BOOL, 7, 13, 5), hundredth, -3);
        check_nonzero(KERNEL_ARRAY(&c, PLIM_F32, 4, 5003), hundredth, 0); /* of several blocks */
        check_nonzero(KERNEL_ARRAY(&c, PLIM_BOOL, 0, 4), hundredth, 1);
    }
    const int64_t shape[] = {9, 40}, apart[] = {1, 11};
    check_nonzero(kernel_case_strided(&c, PLIM_I64, 2, shape, apart, 1), 30, 0);
}

static void check_masked_scatter(enum plim_dtype type, int64_t rows, int64_t columns, int hundredth)
{
    const struct plim_array *mask = KERNEL_ARRAY(&c, PLIM_BOOL, rows, columns);
    int64_t marked = mark(mask, hundredth);
    struct plim_op op = {.kind = PLIM_OP_MASKED_SCATTER, .n_out = 1, .n_in = 3};
    op.out[0] = KERNEL_ARRAY(&c, type, rows, columns);
    op.in[0] = KERNEL_ARRAY(&c, type, rows, columns);
    op.in[1] = mask;
    op.in[2] = KERNEL_ARRAY(&c, type, marked);
    kernel_case_check(&c, &op, 0, 0);
    kernel_case_finish(&c);
}

Test(kernels_indexed, elements_that_go_where_a_mask_is)
{
    for (int t = 0; t < 4; t++)
        for (int hundredth = 0; hundredth <= 100; hundredth += 25) {
            check_masked_scatter(types[t], 1, 1, hundredth);
            check_masked_scatter(types[t], 33, 65, hundredth);
            check_masked_scatter(types[t], 2, 9001, hundredth);
        }
}

/* --- whole rows ------------------------------------------------------------------------------- */

/* `own` rows (n, ..) and `named` ones, of which so many are counted by leading dimensions. */
static void check_rows(enum plim_op_kind kind, const struct plim_array *own, const struct plim_array *named,
                       int64_t count)
{
    const struct plim_array *indices = KERNEL_ARRAY(&c, count % 2 ? PLIM_I64 : PLIM_I32, own->shape[0]);
    struct plim_op op = {.kind = kind, .n_out = 1, .n_in = 2, .in = {NULL, indices}};
    op.out[0] = kind == PLIM_OP_TAKE_ROWS ? own : named;
    op.in[0] = kind == PLIM_OP_TAKE_ROWS ? named : own;
    for (int64_t i = 0; i < own->shape[0]; i++) kernel_case_set(indices, i, (double)((i * 5 + 3) % count));
    kernel_case_check(&c, &op, 0, 0);
    kernel_case_finish(&c);
}

/* Counts are no multiples of 5, so that rows differ. */
Test(kernels_indexed, rows_by_index)
{
    static const enum plim_op_kind kinds[] = {PLIM_OP_TAKE_ROWS, PLIM_OP_PUT_ROWS};
    const int64_t turned_shape[] = {23, 4, 16}, turned[] = {16, 23 * 16, 1}; /* (heads, tokens, size) in memory */
    const int64_t odd[] = {17, 2 * 23 * 17, 2};
    for (int k = 0; k < 2; k++)
        for (int t = 0; t < 4; t++) {
            enum plim_dtype x = types[t];
            check_rows(kinds[k], KERNEL_ARRAY(&c, x, 9), KERNEL_ARRAY(&c, x, 11), 11);
            check_rows(kinds[k], KERNEL_ARRAY(&c, x, 9), KERNEL_ARRAY(&c, x, 3, 4), 12);
            check_rows(kinds[k], KERNEL_ARRAY(&c, x, 20, 64), KERNEL_ARRAY(&c, x, 21, 64), 21);
            check_rows(kinds[k], KERNEL_ARRAY(&c, x, 20, 65), KERNEL_ARRAY(&c, x, 3, 8, 65), 24);
            check_rows(kinds[k], KERNEL_ARRAY(&c, x, 20, 40), KERNEL_ARRAY(&c, x, 2, 2, 6, 40), 24);
            check_rows(kinds[k], KERNEL_ARRAY(&c, x, 17, 4, 16),
                       kernel_case_strided(&c, x, 3, turned_shape, turned, 0), 23);
            check_rows(kinds[k], KERNEL_ARRAY(&c, x, 17, 4, 16), kernel_case_strided(&c, x, 3, turned_shape, odd, 1),
                       23);
            check_rows(kinds[k], KERNEL_ARRAY(&c, x, 0, 16), KERNEL_ARRAY(&c, x, 4, 16), 4);
        }
}

Test(kernels_indexed, rows_that_fit_no_index_are_refused)
{
    const struct plim_array *own = KERNEL_ARRAY(&c, PLIM_F32, 3, 4), *named = KERNEL_ARRAY(&c, PLIM_F32, 8, 5);
    const struct plim_array *indices = KERNEL_ARRAY(&c, PLIM_I64, 3), *floats = KERNEL_ARRAY(&c, PLIM_F32, 3);
    struct plim_op op = {.kind = PLIM_OP_TAKE_ROWS, .n_out = 1, .n_in = 2, .out = {own}, .in = {named, indices}};
    cr_expect(eq(int, plim_cuda_plan(&c.info, &op, NULL, NULL), PLIM_INVALID));
    op.in[0] = own;
    op.in[1] = floats;
    cr_expect(eq(int, plim_cuda_plan(&c.info, &op, NULL, NULL), PLIM_UNSUPPORTED));
}
