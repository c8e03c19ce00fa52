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

/* Different places of a row of `room`, in no order. */
static const struct plim_array *places(int64_t rows, int64_t width, int64_t room, enum plim_dtype type)
{
    const struct plim_array *a = KERNEL_ARRAY(&c, type, rows, width);
    for (int64_t i = 0; i < rows * width; i++)
        kernel_case_set(a, i, (double)((i / width * 7 + i % width * 3) % room));
    return a;
}

/* `room` is no multiple of 3. */
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
