/* How operands become walks, and division by what a planner knows. */
#include "devices/cuda/walk.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

/* --- division --------------------------------------------------------------------------------- */

Test(divider, is_exact_around_every_power_of_two)
{
    for (int a = 0; a < 63; a++)
        for (uint64_t divisor = (1ull << a) - (a > 1); divisor <= (1ull << a) + (a > 0);
             divisor++) {
            struct plim_divider d = plim_divider_of(divisor);
            for (int b = 0; b < 64; b++)
                for (int step = -1; step <= 1; step++) {
                    uint64_t n = (1ull << b) + (uint64_t)(int64_t)step;
                    cr_assert(eq(u64, plim_divide(n, &d), n / divisor));
                }
            cr_assert(eq(u64, plim_divide(UINT64_MAX, &d), UINT64_MAX / divisor));
            cr_assert(eq(u64, plim_divide(0, &d), 0));
        }
}

Test(divider, is_exact_at_multiples_and_just_below)
{
    for (uint64_t divisor = 1; divisor < 3000; divisor += 7) {
        struct plim_divider d = plim_divider_of(divisor);
        for (uint64_t quotient = 1; quotient < UINT64_MAX / 3000; quotient = quotient * 11 + 3) {
            cr_assert(eq(u64, plim_divide(quotient * divisor, &d), quotient));
            cr_assert(eq(u64, plim_divide(quotient * divisor - 1, &d), quotient - 1));
        }
    }
}

/* --- walks ------------------------------------------------------------------------------------ */

static struct plim_array array3(enum plim_dtype dtype, int64_t a, int64_t b, int64_t c)
{
    return (struct plim_array){.data = 4096,
                               .shape = {a, b, c},
                               .stride = {b * c, c, 1},
                               .ndim = 3,
                               .dtype = (uint8_t)dtype};
}

static struct plim_walk walk_of(const struct plim_array *out, const struct plim_array *in,
                                unsigned flags)
{
    struct plim_walk w;
    const struct plim_array *operands[] = {out, in};
    cr_assert(eq(int, plim_walk_init(&w, operands, 2, flags), PLIM_OK));
    return w;
}

Test(walk, contiguous_operands_are_one_dimension)
{
    struct plim_array a = array3(PLIM_BF16, 3, 5, 7), b = array3(PLIM_F32, 3, 5, 7);
    struct plim_walk w = walk_of(&a, &b, 0);
    cr_expect(eq(int, w.ndim, 1));
    cr_expect(eq(u64, w.extent[0].divisor, 105));
    cr_expect(eq(i64, w.stride[0][0], 2));
    cr_expect(eq(i64, w.stride[1][0], 4));
    cr_expect(plim_walk_is_vector(&w));
}

Test(walk, a_repeated_row_keeps_two_dimensions)
{
    struct plim_array a = array3(PLIM_F32, 3, 5, 8),
                      b = {.data = 4096, .shape = {8}, .stride = {1}};
    b.ndim = 1;
    struct plim_walk w = walk_of(&a, &b, 0);
    cr_expect(eq(int, w.ndim, 2));
    cr_expect(eq(u64, w.extent[1].divisor, 15));
    cr_expect(eq(i64, w.stride[1][1], 0));
    cr_expect(plim_walk_is_vector(&w));
}

Test(walk, permuted_alike_is_one_dimension_unless_order_matters)
{
    struct plim_array a = array3(PLIM_F32, 4, 5, 6);
    a.stride[0] = 1, a.stride[1] = 4, a.stride[2] = 20;
    struct plim_walk w = walk_of(&a, &a, 0);
    cr_expect(eq(int, w.ndim, 1));
    w = walk_of(&a, &a, PLIM_WALK_ORDERED);
    cr_expect(eq(int, w.ndim, 3));
    cr_expect(eq(u64, w.extent[0].divisor, 6));
}

Test(walk, the_inner_dimension_is_kept_on_request)
{
    struct plim_array a = array3(PLIM_F32, 4, 5, 1);
    struct plim_walk w = walk_of(&a, &a, PLIM_WALK_KEEP_INNER);
    cr_expect(eq(int, w.ndim, 2));
    cr_expect(eq(u64, w.extent[0].divisor, 1));
    cr_expect(eq(u64, w.extent[1].divisor, 20));
}

Test(walk, packs_need_alignment_and_whole_rows)
{
    struct plim_array a = array3(PLIM_BF16, 2, 3, 16), b = a;
    b.stride[0] = 96, b.stride[1] = 32;
    struct plim_walk w = walk_of(&a, &b, 0);
    cr_expect(plim_walk_is_vector(&w));
    b.data += 2;
    w = walk_of(&a, &b, 0);
    cr_expect(not(plim_walk_is_vector(&w)));
    b.data -= 2, b.stride[1] = 20;
    w = walk_of(&a, &b, 0);
    cr_expect(not(plim_walk_is_vector(&w)));
    b.stride[1] = 32, a.shape[2] = b.shape[2] = 12;
    w = walk_of(&a, &b, 0);
    cr_expect(not(plim_walk_is_vector(&w)));
}

Test(walk, shapes_that_do_not_broadcast_are_refused)
{
    struct plim_walk w;
    struct plim_array a = array3(PLIM_F32, 4, 5, 6), b = array3(PLIM_F32, 4, 2, 6);
    const struct plim_array *operands[] = {&a, &b};
    cr_expect(eq(int, plim_walk_init(&w, operands, 2, 0), PLIM_INVALID));
}
