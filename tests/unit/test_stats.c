#include "autotune/base/clock.h"
#include "autotune/base/stats.h"
#include <criterion/criterion.h>
#include <criterion/new/assert.h>

Test(stats, no_values_give_zeroes)
{
    struct plim_stats stats;
    plim_stats_compute(NULL, 0, &stats);
    cr_expect(eq(dbl, stats.median, 0));
    cr_expect(not(stats.has_interval));
}

Test(stats, one_value_is_all_of_them)
{
    double values[] = {3.5};
    struct plim_stats stats;
    plim_stats_compute(values, 1, &stats);
    cr_expect(eq(dbl, stats.median, 3.5));
    cr_expect(not(stats.has_interval));
}

Test(stats, the_median_of_an_even_number_lies_between_two)
{
    double values[] = {9, 2, 4, 4, 5, 4, 7, 5};
    struct plim_stats stats;
    plim_stats_compute(values, 8, &stats);
    cr_expect(eq(dbl, stats.median, 4.5));
}

/* Ranks as in the usual tables of the sign test at 5 %. */
Test(stats, the_interval_has_the_ranks_of_the_sign_test)
{
    static const struct {
        size_t count, rank;
    } cases[] = {
        {5, 0}, {6, 1}, {8, 1}, {9, 2}, {12, 3}, {20, 6}, {25, 8}, {50, 18}, {100, 40}, {2000, 956},
    };
    static double values[2000];
    for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
        size_t n = cases[c].count;
        for (size_t i = 0; i < n; i++) values[i] = (double)(n - i); /* n..1: sorts to rank */
        struct plim_stats stats;
        plim_stats_compute(values, n, &stats);
        cr_expect(eq(int, stats.has_interval, cases[c].rank > 0), "%zu values", n);
        if (!stats.has_interval) continue;
        cr_expect(eq(dbl, stats.median_low, (double)cases[c].rank), "%zu values", n);
        cr_expect(eq(dbl, stats.median_high, (double)(n + 1 - cases[c].rank)), "%zu values", n);
    }
}

Test(stats, quantiles_interpolate)
{
    const double values[] = {10, 20, 30, 40, 50};
    cr_expect(eq(dbl, plim_stats_quantile(values, 5, 0.0), 10));
    cr_expect(eq(dbl, plim_stats_quantile(values, 5, 0.25), 20));
    cr_expect(ieee_ulp_eq(dbl, plim_stats_quantile(values, 5, 0.9), 46.0, 4));
    cr_expect(eq(dbl, plim_stats_quantile(values, 5, 1.0), 50));
    cr_expect(eq(dbl, plim_stats_quantile(values, 1, 0.7), 10));
}

Test(stats, drift_compares_the_last_third_with_the_first)
{
    const double rising[] = {10, 10, 11, 90, 1, 50, 12, 11, 10.5};
    double scratch[9];
    cr_expect(ieee_ulp_eq(dbl, plim_stats_drift(rising, 9, scratch), 0.1, 8));
    cr_expect(eq(dbl, rising[0], 10)); /* the order stays */
    const double steady[] = {2, 2, 9, 9, 2, 2};
    cr_expect(eq(dbl, plim_stats_drift(steady, 6, scratch), 0));
}

Test(stats, a_short_series_has_no_drift)
{
    const double values[] = {1, 2, 3, 4, 5};
    double scratch[5];
    cr_expect(eq(dbl, plim_stats_drift(values, 5, scratch), 0));
}

Test(clock, never_goes_back)
{
    double last = plim_clock_seconds();
    for (int i = 0; i < 1000; i++) {
        double now = plim_clock_seconds();
        cr_assert(ge(dbl, now, last));
        last = now;
    }
}
