/* Loops over the elements of a walk: V neighbours at a time where the planner found that every
 * operand is contiguous, aligned or one element that repeats; else one by one.
 *
 * What is done with them is a struct:
 *     struct body {
 *         template <int V> __device__ static void run(const args_type &args, uint64_t first);
 *     };
 * called with the number of the first of V elements. */
#ifndef PLIM_CUDA_KERNELS_WALK_CUH
#define PLIM_CUDA_KERNELS_WALK_CUH

#include "args_elementwise.h"
#include "kernel.cuh"

/* Addresses of element `i` of the first N operands. */
template <int N>
__device__ inline void walk_to(const struct plim_walk &w, uint64_t i, uint64_t (&address)[N])
{
    int outermost = w.ndim - 1;
    PLIM_UNROLL
    for (int k = 0; k < N; k++) address[k] = w.data[k];
    for (int d = 0; d < outermost; d++) {
        uint64_t next = plim_divide(i, &w.extent[d]), at = i - next * w.extent[d].divisor;
        PLIM_UNROLL
        for (int k = 0; k < N; k++) address[k] += at * (uint64_t)w.stride[k][d];
        i = next;
    }
    PLIM_UNROLL
    for (int k = 0; k < N; k++) address[k] += i * (uint64_t)w.stride[k][outermost];
}

/* Addresses of the first element of row `row`: dimension 0 is the row's. */
template <int N>
__device__ inline void walk_to_row(const struct plim_walk &w, uint64_t row, uint64_t (&address)[N])
{
    PLIM_UNROLL
    for (int k = 0; k < N; k++) address[k] = w.data[k];
    for (int d = 1; d < w.ndim; d++) {
        uint64_t next = plim_divide(row, &w.extent[d]), at = row - next * w.extent[d].divisor;
        PLIM_UNROLL
        for (int k = 0; k < N; k++) address[k] += at * (uint64_t)w.stride[k][d];
        row = next;
    }
}

/* V neighbours of an operand, or one that repeats. */
template <class A, int V>
__device__ inline void walk_load(A (&v)[V], const struct plim_walk &w, int operand,
                                 uint64_t address)
{
    if (V > 1 && w.stride[operand][0] == 0) {
        A one[1];
        load(one, w.dtype[operand], address);
        PLIM_UNROLL
        for (int i = 0; i < V; i++) v[i] = one[0];
    } else {
        load(v, w.dtype[operand], address);
    }
}

template <class Body, int V, class Args> __device__ inline void for_elements(const Args &args)
{
    uint64_t n = args.walk.elements, packs = n / V;
    for (uint64_t i = grid_thread(); i < packs; i += grid_threads())
        Body::template run<V>(args, i * V);
    if (V > 1) {
        uint64_t rest = packs * V + grid_thread();
        if (rest < n) Body::template run<1>(args, rest);
    }
}

#endif
