#include "stats.h"
#include "compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

double plim_stats_quantile(const double *sorted, size_t count, double q)
{
    double place = q * (double)(count - 1);
    size_t below = (size_t)place;
    if (below + 1 >= count) return sorted[count - 1];
    double share = place - (double)below;
    return sorted[below] + share * (sorted[below + 1] - sorted[below]);
}

/* Returns k of the confidence interval (stats.h), 0 if there is none. Sums binomial probabilities as exp(log p), since
 * 2^-n underflows for long series. */
static size_t interval_rank(size_t count)
{
    const double tail = 0.025;
    double n = (double)count;
    double log_p = -n * log(2.0);
    double below = 0.0;
    for (size_t k = 0; k < count; k++) {
        below += exp(log_p);
        if (below > tail) return k;
        log_p += log((n - (double)k) / (double)(k + 1));
    }
    return 0;
}

void plim_stats_compute(double *values, size_t count, struct plim_stats *out)
{
    *out = (struct plim_stats){0};
    if (count == 0) return;
    qsort(values, count, sizeof(*values), plim_compare_double);
    out->median = plim_stats_quantile(values, count, 0.5);
    size_t rank = interval_rank(count);
    if (rank == 0) return;
    out->has_interval = true;
    out->median_low = values[rank - 1];
    out->median_high = values[count - rank];
}

static double median_of(const double *values, size_t count, double *scratch)
{
    memcpy(scratch, values, count * sizeof(*values));
    qsort(scratch, count, sizeof(*scratch), plim_compare_double);
    return plim_stats_quantile(scratch, count, 0.5);
}

double plim_stats_drift(const double *values, size_t count, double *scratch)
{
    size_t third = count / 3;
    if (third < 2) return 0;
    double first = median_of(values, third, scratch);
    return median_of(values + count - third, third, scratch) / first - 1;
}
