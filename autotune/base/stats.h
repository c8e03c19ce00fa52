/* Statistics of repeated measurements.
 *
 * Times on a GPU have a skewed distribution (a few are slow, none is fast by chance), so the median is used, with an
 * interval that makes no assumption about the distribution. */
#ifndef PLIM_BASE_STATS_H
#define PLIM_BASE_STATS_H

#include <stdbool.h>
#include <stddef.h>

struct plim_stats {
    double median;
    /* The 95 % confidence interval of the median from order statistics: [x(k), x(n+1-k)] with the largest k for which
     * P(Binomial(n, 1/2) < k) <= 2.5 %. It needs 6 values. */
    bool has_interval;
    double median_low, median_high;
};

/* Sorts `values`, which must be finite, in place and summarises them; count 0 gives a zeroed result. */
void plim_stats_compute(double *values, size_t count, struct plim_stats *out);

/* Returns by what fraction the median of the last third of a series exceeds that of its first third: 0.02 is 2 % slower
 * at the end. 0 for fewer than 6 values. `values` are positive, in the order of measurement; `scratch` has room for as
 * many. */
double plim_stats_drift(const double *values, size_t count, double *scratch);

/* Returns the quantile `q` (0 to 1) of the sorted `values`, interpolated linearly. `count` is at least 1. */
double plim_stats_quantile(const double *sorted, size_t count, double q);

#endif
