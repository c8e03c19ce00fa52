#include "autotune/base/round.h"
#include "support/fake_device.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

Test(device, memory_is_counted)
{
    struct fake_device d;
    uint64_t segment, range;
    fake_device_init(&d, (int64_t)1 << 30);
    cr_expect(eq(int, plim_device_segment_get(&d.base, 3 << 20, &segment), PLIM_OK));
    cr_expect(eq(int, plim_device_range_reserve(&d.base, 64 << 20, &range), PLIM_OK));
    cr_expect(eq(int, plim_device_range_map(&d.base, range, 20 << 20, 2 << 20), PLIM_OK));
    cr_expect(eq(i64, d.base.segment_bytes, 23 << 20));
    plim_device_segment_return(&d.base, segment, 3 << 20);
    cr_expect(eq(i64, d.base.segment_bytes, 20 << 20));
    cr_expect(eq(i64, d.base.segment_bytes_peak, 23 << 20));
    cr_expect(eq(i64, plim_device_free_bytes(&d.base), ((int64_t)1 << 30) - (20 << 20)));
    plim_device_range_unmap(&d.base, range, 20 << 20);
    plim_device_range_release(&d.base, range, 64 << 20);
    cr_expect(fake_device_is_clean(&d));
    fake_device_finish(&d);
}

Test(device, out_of_memory_changes_nothing)
{
    struct fake_device d;
    uint64_t address = 1;
    fake_device_init(&d, 8 << 20);
    cr_expect(eq(int, plim_device_segment_get(&d.base, 10 << 20, &address), PLIM_OOM));
    cr_expect(eq(u64, address, 0));
    cr_expect(eq(i64, d.base.segment_bytes, 0));
    cr_expect(eq(int, plim_device_segment_get(&d.base, 8 << 20, &address), PLIM_OK));
    fake_device_finish(&d);
}

Test(device, sizes_must_be_positive)
{
    struct fake_device d;
    uint64_t address;
    fake_device_init(&d, 8 << 20);
    cr_expect(eq(int, plim_device_segment_get(&d.base, 0, &address), PLIM_INVALID));
    cr_expect(eq(int, plim_device_range_reserve(&d.base, -1, &address), PLIM_INVALID));
    cr_expect(eq(int, plim_device_range_map(&d.base, 0, 0, 2 << 20), PLIM_INVALID));
    cr_expect(eq(int, plim_device_range_map(&d.base, 0, 3 << 20, 2 << 20), PLIM_INVALID));
    fake_device_finish(&d);
}

Test(device, what_a_device_lacks_is_unsupported)
{
    struct fake_device d;
    double seconds = 1;
    struct plim_op op = {.kind = PLIM_OP_FILL};
    fake_device_init(&d, 8 << 20);
    cr_expect(eq(int, plim_device_launch(&d.base, &op), PLIM_UNSUPPORTED));
    cr_expect(eq(int, plim_device_now(&d.base, &seconds), PLIM_UNSUPPORTED));
    cr_expect(eq(dbl, seconds, 0));
    fake_device_finish(&d);
}

static enum plim_status accept_op(struct plim_device *device, const struct plim_op *op)
{
    (void)device;
    (void)op;
    return PLIM_OK;
}

Test(device, launches_are_checked_and_counted)
{
    static const struct plim_device_ops ops = {.launch = accept_op};
    struct plim_device device = {.ops = &ops};
    struct plim_op good = {.kind = PLIM_OP_COPY, .n_out = 1, .n_in = 1}, bad = good;
    bad.n_in = PLIM_OP_MAX_IN + 1;
    cr_expect(eq(int, plim_device_launch(&device, &good), PLIM_OK));
    cr_expect(eq(int, plim_device_launch(&device, &bad), PLIM_INVALID));
    cr_expect(eq(int, plim_device_launch(&device, NULL), PLIM_INVALID));
    cr_expect(eq(i64, device.launches, 1));
}

Test(device, lost_once_is_lost_for_good)
{
    struct fake_device d;
    uint64_t address;
    fake_device_init(&d, 64 << 20);
    d.lose_after = 0;
    cr_expect(eq(int, plim_device_segment_get(&d.base, 2 << 20, &address), PLIM_LOST));
    d.lose_after = -1;
    cr_expect(eq(int, plim_device_segment_get(&d.base, 2 << 20, &address), PLIM_LOST));
    cr_expect(eq(int, plim_device_reset(&d.base), PLIM_LOST));
    cr_expect(eq(i64, plim_device_free_bytes(&d.base), 0));
    cr_expect(eq(int, d.segments.count, 0));
    fake_device_finish(&d);
}

Test(device, reset_starts_the_counts_anew)
{
    struct fake_device d;
    uint64_t address;
    fake_device_init(&d, 64 << 20);
    cr_expect(eq(int, plim_device_segment_get(&d.base, 2 << 20, &address), PLIM_OK));
    cr_expect(eq(int, plim_device_reset(&d.base), PLIM_OK));
    cr_expect(eq(i64, d.base.segment_bytes, 0));
    cr_expect(eq(i64, d.base.segment_bytes_peak, 0));
    fake_device_finish(&d);
}

Test(device, close_takes_null_and_clears_the_pointer)
{
    struct fake_device d;
    struct plim_device *device = &d.base, *none = NULL;
    fake_device_init(&d, 64 << 20);
    plim_device_close(NULL);
    plim_device_close(&none);
    plim_device_close(&device);
    cr_expect(device == NULL);
}

Test(device, rounding_up_stops_at_the_largest_number)
{
    cr_expect(eq(i64, plim_round_up(0, PLIM_PAGE_BYTES), 0));
    cr_expect(eq(i64, plim_round_up(1, PLIM_PAGE_BYTES), 2 << 20));
    cr_expect(eq(i64, plim_round_up(2 << 20, PLIM_PAGE_BYTES), 2 << 20));
    cr_expect(eq(i64, plim_round_up(INT64_MAX - 1, PLIM_PAGE_BYTES), INT64_MAX));
}

static const char *failed(const struct plim_device *device)
{
    (void)device;
    return "it failed";
}

static bool yes(const struct plim_device *device)
{
    (void)device;
    return true;
}

Test(device, what_a_device_knows_of_failures_is_asked_where_it_is_told)
{
    struct fake_device d;
    fake_device_init(&d, 8 << 20);
    cr_expect(eq(str, (char *)plim_device_message(&d.base), (char *)""));
    cr_expect(not(plim_device_is_suspect(&d.base)));
    cr_expect(not(plim_device_has_refused(&d.base)));

    struct plim_device_ops ops = *d.base.ops;
    ops.message = failed;
    ops.is_suspect = yes;
    d.base.ops = &ops;
    cr_expect(eq(str, (char *)plim_device_message(&d.base), (char *)"it failed"));
    cr_expect(plim_device_is_suspect(&d.base));
    cr_expect(not(plim_device_has_refused(&d.base)));
    ops.has_refused = yes;
    cr_expect(plim_device_has_refused(&d.base));
    fake_device_finish(&d);
}
