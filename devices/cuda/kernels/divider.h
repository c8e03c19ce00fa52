/* Division by a number known to the planner, as multiplication and shifts (Granlund, Montgomery, "Division by invariant
 * integers using multiplication", PLDI 1994, figure 4.1). Exact for every dividend. On a GPU a 64-bit division is a
 * call of a hundred instructions, and calls make kernels spill. Compiles as C, C++ and CUDA. */
#ifndef PLIM_DEVICES_CUDA_KERNELS_DIVIDER_H
#define PLIM_DEVICES_CUDA_KERNELS_DIVIDER_H

#include "devices/random.h" /* PLIM_HOST_DEVICE */

struct plim_divider {
    uint64_t divisor, multiplier;
    uint32_t shift[2];
};

#ifndef __CUDACC__
__extension__ typedef unsigned __int128 plim_uint128;
#endif

/* Returns the upper half of a product. */
PLIM_HOST_DEVICE static inline uint64_t plim_multiply_high(uint64_t a, uint64_t b)
{
#ifdef __CUDA_ARCH__
    return __umul64hi(a, b);
#elif defined __CUDACC__
    return (uint64_t)((unsigned __int128)a * b >> 64);
#else
    return (uint64_t)((plim_uint128)a * b >> 64);
#endif
}

PLIM_HOST_DEVICE static inline uint64_t plim_divide(uint64_t n, const struct plim_divider *d)
{
    uint64_t high = plim_multiply_high(n, d->multiplier);
    return (high + ((n - high) >> d->shift[0])) >> d->shift[1];
}

#ifndef __CUDACC__
/* `divisor` from 1 to 2^63. */
static inline struct plim_divider plim_divider_of(uint64_t divisor)
{
    uint32_t bits = 0; /* 2^bits: the smallest power of two that is at least the divisor */
    while ((uint64_t)1 << bits < divisor) bits++;
    plim_uint128 above = (((plim_uint128)1 << bits) - divisor) << 64;
    struct plim_divider d = {divisor, (uint64_t)(above / divisor) + 1, {bits > 0, 0}};
    d.shift[1] = bits > 0 ? bits - 1 : 0;
    return d;
}
#endif

#endif
