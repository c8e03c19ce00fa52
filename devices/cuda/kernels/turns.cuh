/* Blocks that add to the same place, one after the other in an order of their own: sums come out the same in every run.
 * A number in memory, which begins as 0, counts those that are done. A block may wait for blocks of smaller blockIdx.x
 * alone: the GPU starts these before it, and none of them waits for a later one. From compute capability 7.0 on. */
#ifndef PLIM_DEVICES_CUDA_KERNELS_TURNS_CUH
#define PLIM_DEVICES_CUDA_KERNELS_TURNS_CUH

#include "kernel.cuh"

#ifdef __CUDACC__
#if __CUDA_ARCH__ >= 700
__device__ inline int32_t load_turn(uint64_t turns)
{
    int32_t now;
    asm volatile("ld.acquire.gpu.global.s32 %0, [%1];"
                 : "=r"(now)
                 : "l"(__cvta_generic_to_global((const void *)turns))
                 : "memory");
    return now;
}

__device__ inline void store_turn(uint64_t turns, int32_t done)
{
    asm volatile("st.release.gpu.global.s32 [%0], %1;" ::"l"(__cvta_generic_to_global((const void *)turns)), "r"(done)
                 : "memory");
}
#else
__device__ inline int32_t load_turn(uint64_t turns)
{
    return *(volatile int32_t *)turns;
}

__device__ inline void store_turn(uint64_t turns, int32_t done)
{
    *(volatile int32_t *)turns = done;
}
#endif

/* What another block may have written: from the cache of all multiprocessors. */
template <class T> __device__ inline T load_shared_by_blocks(uint64_t address)
{
    return __ldcg((const T *)address);
}
#else
static inline int32_t load_turn(uint64_t turns)
{
    return *reinterpret_cast<const int32_t *>(turns);
}

static inline void store_turn(uint64_t turns, int32_t done)
{
    *reinterpret_cast<int32_t *>(turns) = done;
}

template <class T> static inline T load_shared_by_blocks(uint64_t address)
{
    return *reinterpret_cast<const T *>(address);
}
#endif

/* The whole block waits until `before` blocks are done. */
__device__ inline void wait_for_turn(uint64_t turns, int32_t before)
{
    if (threadIdx.x == 0)
        while (load_turn(turns) != before) {
#ifndef __CUDACC__
            emulated_fail("a turn that never comes");
#endif
        }
    __syncthreads();
}

/* What the block wrote is there for the next. */
__device__ inline void end_turn(uint64_t turns, int32_t before)
{
    __syncthreads();
    if (threadIdx.x == 0) store_turn(turns, before + 1);
}

#endif
