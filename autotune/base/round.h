/* Rounding to multiples. */
#ifndef PLIM_BASE_ROUND_H
#define PLIM_BASE_ROUND_H

#include <stdint.h>

/* Returns `n`, at least 0, rounded up to a multiple of `step`; INT64_MAX if that would overflow. */
static inline int64_t plim_round_up(int64_t n, int64_t step)
{
    return n > INT64_MAX - step ? INT64_MAX : (n + step - 1) / step * step;
}

#endif
