/* Running sums over the threads of a block. */
#ifndef PLIM_DEVICES_CUDA_KERNELS_SCAN_CUH
#define PLIM_DEVICES_CUDA_KERNELS_SCAN_CUH

#include "args_reduce.h"
#include "functions.cuh"

/* The sums of all threads before this one; `all` becomes the sum of the block. */
template <class A> __device__ inline A sum_before(A value, A &all)
{
    __shared__ A of_warp[PLIM_SCAN_THREADS / 32];
    unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    A upto = value;
    for (unsigned step = 1; step < 32; step *= 2) {
        A before = __shfl_up_sync(0xffffffffu, upto, step);
        if (lane >= step) upto = add(upto, before);
    }
    __syncthreads(); /* the last stretch's sums have been read */
    if (lane == 31) of_warp[warp] = upto;
    __syncthreads();
    A warps_before = 0;
    all = 0;
    for (unsigned w = 0; w < PLIM_SCAN_THREADS / 32; w++) {
        if (w == warp) warps_before = all;
        all = add(all, of_warp[w]);
    }
    A before = __shfl_up_sync(0xffffffffu, upto, 1u);
    return lane == 0 ? warps_before : add(warps_before, before);
}

#endif
