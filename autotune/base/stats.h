/* Statistics of repeated measurements.
 *
 * Times on a GPU are skewed (now and then one is slow, none is fast by luck), so the median
 * is reported, with an interval that assumes nothing about the distribution.
 */
#ifndef PLIM_BASE_STATS_H
#define PLIM_BASE_STATS_H

#include <stdbool.h>
#include <stddef.h>

struct plim_stats {
    double median;
    /* The 95 % confidence interval of the median, from order statistics: [x(k), x(n+1-k)] with the
     * largest k for which P(Binomial(n, 1/2) < k) <= 2.5 %. It needs 6 values. */
    bool has_interval;
    double median_low, median_high;
};

/* Sorts `values` in place and summarises them. All are finite; count 0 gives a zeroed result. */
void plim_stats_compute(double *values, size_t count, struct plim_stats *out);

/* How far the median of the last third of a series lies above that of its first third, as a share of
 * the latter: 0.02 is 2 % slower at the end. 0 for fewer than 6 values. `values` are positive, in the
 * order in which they were measured; `scratch` has room for as many. */
double plim_stats_drift(const double *values, size_t count, double *scratch);

/* The value below which the share `q` (0 to 1) of the sorted `values` lies, interpolated linearly
 * between neighbours. `count` is at least 1. */
double plim_stats_quantile(const double *sorted, size_t count, double q);

#endif
