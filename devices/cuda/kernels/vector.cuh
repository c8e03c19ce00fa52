/* Elements of the floating types as fp32, one at a time or eight in accesses of 16 bytes. Eight
 * ask for a place that is a multiple of 16 bytes. */
#ifndef PLIM_DEVICES_CUDA_KERNELS_VECTOR_CUH
#define PLIM_DEVICES_CUDA_KERNELS_VECTOR_CUH

#include "kernel.cuh"

enum { VECTOR = 8 };

/* A number of elements that generic code can ask for: lanes<N>::count. */
template <int N> struct lanes {
    static constexpr int count = N;
};

/* v <- elements [i, i + N) of the array at `data`; N is 1 or VECTOR */
template <int N>
__device__ inline void load_floats(uint64_t data, uint32_t dtype, int64_t i, float (&v)[N])
{
    switch (dtype) {
    case PLIM_F32:
        return load_as<float>(v, data + (uint64_t)i * 4);
    case PLIM_BF16:
        return load_as<bf16>(v, data + (uint64_t)i * 2);
    default:
        return load_as<fp16>(v, data + (uint64_t)i * 2);
    }
}

template <int N>
__device__ inline void store_floats(uint64_t data, uint32_t dtype, int64_t i, const float (&v)[N])
{
    switch (dtype) {
    case PLIM_F32:
        return store_as<float>(data + (uint64_t)i * 4, v);
    case PLIM_BF16:
        return store_as<bf16>(data + (uint64_t)i * 2, v);
    default:
        return store_as<fp16>(data + (uint64_t)i * 2, v);
    }
}

__device__ inline float load_float(uint64_t data, uint32_t dtype, int64_t i)
{
    float v[1];
    load_floats(data, dtype, i, v);
    return v[0];
}

__device__ inline void store_float(uint64_t data, uint32_t dtype, int64_t i, float x)
{
    const float v[1] = {x};
    store_floats(data, dtype, i, v);
}

__device__ inline float lane_xor(float x, int offset)
{
    return __shfl_xor_sync(0xffffffffu, x, offset);
}

#endif
