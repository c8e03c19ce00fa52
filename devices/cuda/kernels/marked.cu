/* Where elements are not 0, and elements that go there. */
#include "args_marked.h"
#include "scan.cuh"
#include "walk.cuh"

/* Is element i of an operand not 0? */
template <int OPERAND> __device__ inline bool is_marked(const struct plim_walk &w, uint64_t i)
{
    uint64_t at[OPERAND + 1];
    float x[1];
    walk_to(w, i, at);
    load(x, w.dtype[OPERAND], at[OPERAND]);
    return x[0] != 0;
}

/* body(i, marked, number) for each of the block's elements, with how many marked ones there are before it; returns how
 * many there are up to the block's last. All threads together. */
template <int OPERAND, class Body> __device__ inline int64_t for_marked(const struct plim_walk &w, Body body)
{
    uint64_t begin = w.elements * blockIdx.x / gridDim.x, end = w.elements * (blockIdx.x + 1) / gridDim.x;
    int64_t before = 0, all;
    for (uint64_t i = threadIdx.x; i < begin; i += blockDim.x) before += is_marked<OPERAND>(w, i);
    sum_before(before, all);
    before = all;
    for (uint64_t first = begin; first < end; first += blockDim.x) {
        uint64_t i = first + threadIdx.x;
        bool marked = i < end && is_marked<OPERAND>(w, i);
        int64_t number = before + sum_before((int64_t)marked, all);
        if (i < end) body(i, marked, number);
        before += all;
    }
    return before;
}

__device__ inline void set_place(const struct plim_nonzero_args &args, int64_t number, int64_t i)
{
    uint64_t at = args.places + (uint64_t)(number * args.step), rest = (uint64_t)i;
    if (args.columns == 0) *(int64_t *)at = i;
    for (uint32_t d = 0; d < args.columns; d++) {
        uint64_t next = plim_divide(rest, &args.extent[d]);
        int64_t coordinate = i < 0 ? i : (int64_t)(rest - next * args.extent[d].divisor);
        *(int64_t *)(at + (uint64_t)((args.columns - 1 - d) * args.column_step)) = coordinate;
        rest = next;
    }
}

PLIM_KERNEL(nonzero, struct plim_nonzero_args, PLIM_MARKED_THREADS)
{
    int64_t found = for_marked<0>(args.walk, [&](uint64_t i, bool marked, int64_t number) {
        if (marked && (uint64_t)number < args.room) set_place(args, number, (int64_t)i);
    });
    if (blockIdx.x + 1 < gridDim.x) return;
    for (uint64_t n = (uint64_t)found + threadIdx.x; n < args.room; n += blockDim.x) set_place(args, (int64_t)n, -1);
}

template <class A> __device__ inline void scatter_marked(const struct plim_masked_scatter_args &args)
{
    const struct plim_walk &w = args.walk;
    for_marked<2>(w, [&](uint64_t i, bool marked, int64_t number) {
        uint64_t at[2];
        A x[1] = {0};
        walk_to(w, i, at);
        if (!marked)
            load(x, w.dtype[1], at[1]);
        else if ((uint64_t)number < args.count)
            load(x, w.dtype[1], args.source + (uint64_t)number * bytes_of(w.dtype[1]));
        store(w.dtype[0], at[0], x);
    });
}

PLIM_KERNEL(masked_scatter_float, struct plim_masked_scatter_args, PLIM_MARKED_THREADS)
{
    scatter_marked<float>(args);
}

PLIM_KERNEL(masked_scatter_integer, struct plim_masked_scatter_args, PLIM_MARKED_THREADS)
{
    scatter_marked<int64_t>(args);
}
