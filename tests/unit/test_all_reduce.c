/* Bandwidth and latency from what two sizes of an all-reduce took. */
#include "devices/all_reduce.h"
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <math.h>

static const double SMALL = PLIM_ALL_REDUCE_SMALL_BYTES, LARGE = PLIM_ALL_REDUCE_LARGE_BYTES;

/* What an all-reduce takes by the two numbers. */
static double seconds_of(int gpus, double bytes, double bandwidth, double latency)
{
    return latency + 2.0 * (gpus - 1) / gpus * bytes / bandwidth;
}

Test(all_reduce, two_sizes_tell_latency_from_bandwidth)
{
    for (int gpus = 2; gpus <= 8; gpus *= 2) {
        struct plim_all_reduce out = {0};
        cr_assert(eq(int, plim_all_reduce_fit(gpus, seconds_of(gpus, SMALL, 2e11, 2e-5),
                                              seconds_of(gpus, LARGE, 2e11, 2e-5), &out),
                     PLIM_OK));
        cr_expect(eq(int, out.gpus, gpus));
        cr_expect(epsilon_eq(dbl, out.bytes_per_second, 2e11, 1e3));
        cr_expect(epsilon_eq(dbl, out.latency_seconds, 2e-5, 1e-9));
    }
}

/* The large one's alone, as nccl-tests count it. */
Test(all_reduce, sizes_that_take_about_the_same_are_all_bandwidth)
{
    struct plim_all_reduce out = {0};
    cr_assert(eq(int, plim_all_reduce_fit(4, 0.9e-3, 1e-3, &out), PLIM_OK));
    cr_expect(epsilon_eq(dbl, out.bytes_per_second, 1.5 * LARGE / 1e-3, 1));
    cr_expect(eq(dbl, out.latency_seconds, 0));
    cr_assert(eq(int, plim_all_reduce_fit(4, 2e-3, 1e-3, &out), PLIM_OK)); /* noise */
    cr_expect(epsilon_eq(dbl, out.bytes_per_second, 1.5 * LARGE / 1e-3, 1));
}

/* Slower a byte the larger it is: no negative latency. */
Test(all_reduce, latency_is_never_negative)
{
    struct plim_all_reduce out = {0};
    cr_assert(eq(int, plim_all_reduce_fit(2, 1e-5, 1e-3, &out), PLIM_OK));
    cr_expect(eq(dbl, out.latency_seconds, 0));
    cr_expect(epsilon_eq(dbl, out.bytes_per_second, LARGE / 1e-3, 1));
}

Test(all_reduce, what_are_no_times_is_refused)
{
    struct plim_all_reduce out = {0};
    cr_expect(eq(int, plim_all_reduce_fit(1, 1e-4, 1e-3, &out), PLIM_INVALID));
    cr_expect(eq(int, plim_all_reduce_fit(2, 0, 1e-3, &out), PLIM_INVALID));
    cr_expect(eq(int, plim_all_reduce_fit(2, 1e-4, NAN, &out), PLIM_INVALID));
    cr_expect(eq(int, plim_all_reduce_fit(2, INFINITY, INFINITY, &out), PLIM_INVALID));
    cr_expect(eq(int, out.gpus, 0));
}
