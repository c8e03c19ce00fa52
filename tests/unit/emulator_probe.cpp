#include "doubles/emulator_cuda.h"

#include "devices/cuda/kernels/kernel.cuh"
#include "unit/emulator_probe.h"

/* Every thread writes its place in the grid. */
PLIM_KERNEL(probe_place, struct probe_args, 1024)
{
    int64_t block = ((int64_t)blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    unsigned thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
    int64_t i = block * (blockDim.x * blockDim.y * blockDim.z) + thread;
    if (i < args.n) args.out[i] += i + args.parameter;
}

/* The block's values in reverse, `parameter` times, through shared memory. */
PLIM_KERNEL(probe_reverse, struct probe_args, 1024)
{
    PLIM_DYNAMIC_SHARED(int64_t, values);
    for (int64_t round = 0; round < args.parameter; round++) {
        values[threadIdx.x] = args.out[threadIdx.x];
        __syncthreads();
        args.out[threadIdx.x] = values[blockDim.x - 1 - threadIdx.x];
        __syncthreads();
    }
}

/* The same without a barrier. */
PLIM_KERNEL(probe_race, struct probe_args, 1024)
{
    __shared__ int64_t values[1024];
    values[threadIdx.x] = args.out[threadIdx.x];
    args.out[threadIdx.x] = values[blockDim.x - 1 - threadIdx.x];
}

/* One kind of exchange each: 32 lanes write what they got. */
PLIM_KERNEL(probe_exchange, struct probe_args, 1024)
{
    const unsigned all = 0xffffffffu;
    int64_t lane = threadIdx.x % 32, *out = args.out + threadIdx.x;
    switch (args.parameter) {
    case 0:
        *out = __shfl_sync(all, lane, 5);
        break;
    case 1:
        *out = __shfl_up_sync(all, lane, 3u);
        break;
    case 2:
        *out = __shfl_down_sync(all, lane, 3u);
        break;
    case 3:
        *out = __shfl_xor_sync(all, lane, 6);
        break;
    case 4:
        *out = __ballot_sync(all, lane % 3 == 0);
        break;
    case 5:
        *out = __shfl_down_sync(all, lane, 2u, 8);
        break;
    case 6: /* two halves, with masks of their own */
        *out =
            lane < 16 ? __shfl_xor_sync(0x0000ffffu, lane, 1) : __shfl_sync(0xffff0000u, lane, 31);
        break;
    case 7:
        *out = __any_sync(all, lane == 31) + 2 * __all_sync(all, lane < 31);
        break;
    case 8:
        *out = __syncthreads_count(lane % 4 == 0);
        break;
    case 9:
        *out = __syncthreads_or(lane == 7) + 2 * __syncthreads_and(lane != 7);
        break;
    default:
        *out = (int64_t)block_sum((float)threadIdx.x);
        break;
    }
}

/* Kernels with a mistake, by number. */
PLIM_KERNEL(probe_mistake, struct probe_args, 256)
{
    PLIM_DYNAMIC_SHARED(char, bytes);
    switch (args.parameter) {
    case 0: /* divergent barrier */
        if (threadIdx.x < 7) __syncthreads();
        break;
    case 1: /* a lane that never comes */
        if (threadIdx.x != 3) __syncwarp();
        break;
    case 2: /* from a lane outside of the mask */
        if (threadIdx.x < 16) args.out[0] = __shfl_sync(0xffffu, (int)threadIdx.x, 20);
        break;
    case 3: /* not in its own mask */
        args.out[0] = __shfl_sync(0xffffu, (int)threadIdx.x, 0);
        break;
    case 4: /* beyond the launch's shared memory */
        bytes[args.n] = 1;
        break;
    default: /* lanes meet in different exchanges */
        if (threadIdx.x < 16)
            __syncwarp();
        else
            __shfl_xor_sync(0xffffffffu, 1, 1);
    }
}

/* Two counters, by every thread. */
PLIM_KERNEL(probe_atomics, struct probe_args, 1024)
{
    unsigned long long *sum = reinterpret_cast<unsigned long long *>(args.out);
    unsigned *counter = reinterpret_cast<unsigned *>(args.out + 1);
    int *largest = reinterpret_cast<int *>(args.out + 2);
    atomicAdd(sum, (unsigned long long)threadIdx.x);
    atomicAdd(counter, 1u);
    atomicMax(largest, (int)threadIdx.x);
    if (atomicCAS(largest + 1, 0, (int)threadIdx.x + 1) == 0) atomicAdd(counter + 1, 1u);
}
