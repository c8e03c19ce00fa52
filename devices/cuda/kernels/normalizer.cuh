/* What softmax and cross entropy know of a row: its maximum, and the sum of exponentials. */
#ifndef PLIM_DEVICES_CUDA_KERNELS_NORMALIZER_CUH
#define PLIM_DEVICES_CUDA_KERNELS_NORMALIZER_CUH

#include "rows.cuh"

/* A maximum and the sum of exp(x - maximum): folded in one pass (Milakov, Gimelshein: "Online
 * normalizer calculation for softmax", 2018). Nothing but minus infinities sums to 0; a NaN stays
 * in the sum. */
struct normalizer {
    float maximum, sum;

    /* Of exponents; where all are minus infinity, 0 stands for the maximum. */
    static __device__ float base(float maximum)
    {
        return maximum == -INFINITY ? 0 : maximum;
    }
    static __device__ normalizer merge(normalizer x, normalizer y)
    {
        float maximum = fmaxf(x.maximum, y.maximum);
        float to_x = x.maximum == maximum ? 1 : expf(x.maximum - maximum);
        float to_y = y.maximum == maximum ? 1 : expf(y.maximum - maximum);
        return {maximum, x.sum * to_x + y.sum * to_y};
    }
    __device__ normalizer from(int offset) const
    {
        return {lane_xor(maximum, offset), lane_xor(sum, offset)};
    }
};

template <int N> __device__ inline normalizer normalizer_of(const float (&v)[N])
{
    normalizer n = {v[0], 0};
    for (int k = 1; k < N; k++) n.maximum = fmaxf(n.maximum, v[k]);
    for (int k = 0; k < N; k++) n.sum += expf(v[k] - normalizer::base(n.maximum));
    return n;
}

#endif
