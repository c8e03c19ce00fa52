/* Running sums: a block for a row, a stretch of it after the other. */
#include "scan.cuh"
#include "walk.cuh"

template <class A> __device__ inline void scan_row(const struct plim_walk &w, uint64_t to,
                                                   uint64_t from)
{
    const uint64_t stretch = PLIM_SCAN_THREADS * PLIM_SCAN_ELEMENTS, n = w.extent[0].divisor;
    A carried = 0;
    for (uint64_t start = 0; start < n; start += stretch) {
        uint64_t first = start + threadIdx.x * PLIM_SCAN_ELEMENTS;
        A x[PLIM_SCAN_ELEMENTS], own = 0, all;
        PLIM_UNROLL
        for (int i = 0; i < PLIM_SCAN_ELEMENTS; i++) {
            A one[1] = {0};
            if (first + i < n) load(one, w.dtype[1], from + (first + i) * (uint64_t)w.stride[1][0]);
            x[i] = own = add(own, one[0]);
        }
        A before = add(carried, sum_before(own, all));
        PLIM_UNROLL
        for (int i = 0; i < PLIM_SCAN_ELEMENTS; i++) {
            A one[1] = {add(before, x[i])};
            if (first + i < n) store(w.dtype[0], to + (first + i) * (uint64_t)w.stride[0][0], one);
        }
        carried = add(carried, all);
    }
}

template <class A> __device__ inline void scan(const struct plim_scan_args &args)
{
    for (uint64_t row = blockIdx.x; row < args.rows; row += gridDim.x) {
        uint64_t at[2];
        walk_to_row(args.walk, row, at);
        scan_row<A>(args.walk, at[0], at[1]);
    }
}

PLIM_KERNEL(scan_float, struct plim_scan_args, PLIM_SCAN_THREADS)
{
    scan<float>(args);
}

PLIM_KERNEL(scan_integer, struct plim_scan_args, PLIM_SCAN_THREADS)
{
    scan<int64_t>(args);
}
