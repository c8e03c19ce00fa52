/* Comparison functions for qsort(), in ascending order. */
#ifndef PLIM_BASE_COMPARE_H
#define PLIM_BASE_COMPARE_H

#include <stdint.h>

static inline int plim_compare_int64(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Not for NaN. */
static inline int plim_compare_double(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

#endif
