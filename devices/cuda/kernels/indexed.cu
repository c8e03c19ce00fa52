/* What stands where an index says, and where the largest stands. */
#include "args_indexed.h"
#include "rows.cuh"

/* Where element i of `rows` stands in `named`; false: its index is out of range. */
__device__ inline bool named_place(const plim_by_index_args &args, uint64_t i, uint64_t &place)
{
    int64_t index[1];
    load(index, args.indices.dtype, args.indices.data + i * bytes_of(args.indices.dtype));
    place = plim_divide(i, &args.width) * args.room + (uint64_t)index[0];
    return index[0] >= 0 && (uint64_t)index[0] < args.room;
}

template <class A> __device__ inline void gather(const plim_by_index_args &args)
{
    for (uint64_t i = grid_thread(); i < args.elements; i += grid_threads()) {
        uint64_t place;
        A x[1] = {0};
        if (named_place(args, i, place))
            load(x, args.named.dtype, args.named.data + place * bytes_of(args.named.dtype));
        store(args.rows.dtype, args.rows.data + i * bytes_of(args.rows.dtype), x);
    }
}

/* The indices of a row differ. */
template <class A> __device__ inline void scatter(const plim_by_index_args &args)
{
    for (uint64_t i = grid_thread(); i < args.elements; i += grid_threads()) {
        uint64_t place;
        A x[1];
        if (!named_place(args, i, place)) continue;
        load(x, args.rows.dtype, args.rows.data + i * bytes_of(args.rows.dtype));
        store(args.named.dtype, args.named.data + place * bytes_of(args.named.dtype), x);
    }
}

PLIM_KERNEL(take_float, plim_by_index_args, PLIM_INDEXED_THREADS)
{
    gather<float>(args);
}

PLIM_KERNEL(take_integer, plim_by_index_args, PLIM_INDEXED_THREADS)
{
    gather<int64_t>(args);
}

PLIM_KERNEL(put_float, plim_by_index_args, PLIM_INDEXED_THREADS)
{
    scatter<float>(args);
}

PLIM_KERNEL(put_integer, plim_by_index_args, PLIM_INDEXED_THREADS)
{
    scatter<int64_t>(args);
}

/* --- the largest ------------------------------------------------------------------------------ */

struct leader {
    float value;
    int64_t place;
};

/* NaN is the largest; of equal ones the first. */
__device__ inline bool leads(leader a, leader b)
{
    bool a_is_nan = a.value != a.value, b_is_nan = b.value != b.value;
    if (a_is_nan != b_is_nan) return a_is_nan;
    if (a_is_nan || a.value == b.value) return a.place < b.place;
    return a.value > b.value;
}

__device__ inline leader other_lane(leader x, int offset)
{
    return {__shfl_xor_sync(0xffffffffu, x.value, offset), __shfl_xor_sync(0xffffffffu, x.place, offset)};
}

__device__ inline leader lanes_lead(leader x, int lanes)
{
    for (int step = lanes / 2; step > 0; step /= 2) {
        leader other = other_lane(x, step);
        if (leads(other, x)) x = other;
    }
    return x;
}

/* Of a team, as of rows.cuh. */
__device__ inline leader team_leads(leader x)
{
    __shared__ float values[32];
    __shared__ int64_t places[32];
    if (blockDim.x <= 32) return lanes_lead(x, (int)blockDim.x);
    unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
    x = lanes_lead(x, 32);
    __syncthreads(); /* the last row's have been read */
    if (lane == 0) values[warp] = x.value, places[warp] = x.place;
    __syncthreads();
    unsigned from = lane < warps ? lane : 0;
    return lanes_lead({values[from], places[from]}, 32);
}

PLIM_KERNEL(argmax, plim_argmax_args, 1024)
{
    int64_t step = (int64_t)gridDim.x * blockDim.y;
    for (int64_t first = (int64_t)blockIdx.x * blockDim.y; first < args.rows.count; first += step) {
        int64_t row = first + threadIdx.y;
        bool there = row < args.rows.count;
        leader mine = {-INFINITY, INT64_MAX};
        row_view x = row_at(args.x, row_offset(args.rows, args.x, there ? row : 0));
        for (int64_t i = threadIdx.x; there && i < args.rows.columns; i += blockDim.x) {
            leader one = {load_float(x.data, x.dtype, i * x.step), i};
            if (leads(one, mine)) mine = one;
        }
        mine = team_leads(mine);
        if (there && threadIdx.x == 0) ((int64_t *)args.places)[row] = mine.place;
    }
}
