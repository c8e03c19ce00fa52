/* A long step in a few moments. */
#include "workloads/engine/timeline.h"
#include <criterion/criterion.h>
#include <criterion/new/assert.h>

static void note(struct plim_timeline *timeline, double seconds, int64_t bytes)
{
    const struct plim_moment moment = {
        .seconds = seconds, .allocated_bytes = bytes, .class_bytes = {bytes}};
    plim_timeline_add(timeline, &moment);
}

Test(timeline, a_short_step_is_kept_as_it_was)
{
    static struct plim_timeline t;
    plim_timeline_begin(&t, 10);
    t.phase = "forward";
    for (int i = 0; i < PLIM_TIMELINE_MOMENTS; i++) note(&t, 10 + i, 100 + i % 7);
    cr_assert(eq(sz, t.count, PLIM_TIMELINE_MOMENTS));
    for (int i = 0; i < PLIM_TIMELINE_MOMENTS; i++) {
        cr_expect(eq(dbl, t.moments[i].seconds, i));
        cr_expect(eq(i64, t.moments[i].allocated_bytes, 100 + i % 7));
    }
    cr_expect(eq(str, (char *)t.moments[3].phase, (char *)"forward"));
}

/* Whatever the length: no more moments than there is room for, in order, half full at least, and each
 * the largest of those that it stands for. */
Test(timeline, a_long_step_keeps_its_upper_edge)
{
    static struct plim_timeline t;
    static const int lengths[] = {257, 511, 512, 513, 1000, 4095, 100000};
    for (size_t l = 0; l < sizeof(lengths) / sizeof(lengths[0]); l++) {
        int64_t stride = 1;
        while (lengths[l] > stride * PLIM_TIMELINE_MOMENTS) stride *= 2;
        plim_timeline_begin(&t, 0);
        for (int i = 0; i < lengths[l]; i++) note(&t, i, (int64_t)i * 7919 % 10007);
        size_t expected = (size_t)((lengths[l] + stride - 1) / stride);
        cr_assert(eq(sz, t.count, expected), "%d", lengths[l]);
        for (size_t m = 0; m < t.count; m++) {
            int64_t most = -1;
            for (int64_t i = (int64_t)m * stride; i < (int64_t)(m + 1) * stride && i < lengths[l]; i++)
                if (i * 7919 % 10007 > most) most = i * 7919 % 10007;
            cr_expect(eq(i64, t.moments[m].allocated_bytes, most), "%d, %zu", lengths[l], m);
            cr_expect(eq(i64, t.moments[m].class_bytes[0], most));
            if (m) cr_expect(lt(dbl, t.moments[m - 1].seconds, t.moments[m].seconds));
        }
    }
}
