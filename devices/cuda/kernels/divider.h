/* Division by a number that the planner knows, as multiplication and shift (Granlund, Montgomery,
 * "Division by invariant integers using multiplication", PLDI 1994). Exact for every dividend; fast
 * where both are below 2^32. Compiles as C, C++ and CUDA. */
#ifndef PLIM_DEVICES_CUDA_KERNELS_DIVIDER_H
#define PLIM_DEVICES_CUDA_KERNELS_DIVIDER_H

#include "devices/random.h" /* PLIM_HOST_DEVICE */

struct plim_divider {
    uint64_t divisor;
    uint32_t multiplier, shift;
};

/* `divisor` from 1 on. */
static inline struct plim_divider plim_divider_of(uint64_t divisor)
{
    struct plim_divider d = {divisor, 0, 0};
    if (divisor >> 32 != 0) return d;
    while ((uint64_t)1 << d.shift < divisor) d.shift++;
    d.multiplier =
        (uint32_t)((((((uint64_t)1 << d.shift) - divisor) << 32) / divisor) + 1); /* < 2^32 */
    return d;
}

PLIM_HOST_DEVICE static inline uint64_t plim_divide(uint64_t n, const struct plim_divider *d)
{
    if ((n | d->divisor) >> 32 != 0) return n / d->divisor;
    uint64_t high = (n * d->multiplier) >> 32;
    return (high + n) >> d->shift;
}

#endif
