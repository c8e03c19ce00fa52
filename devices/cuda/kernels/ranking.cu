/* Where the largest stand, and the order of numbers. */
#include "args_ranking.h"
#include "rows.cuh"

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
            float value[1]; /* whole numbers, too */
            load(value, x.dtype, x.data + (uint64_t)(i * x.step) * bytes_of(x.dtype));
            leader one = {value[0], i};
            if (leads(one, mine)) mine = one;
        }
        mine = team_leads(mine);
        if (there && threadIdx.x == 0) ((int64_t *)args.places)[row] = mine.place;
    }
}

/* --- the largest of a row --------------------------------------------------------------------- */

PLIM_KERNEL(top_k, plim_top_k_args, PLIM_RANKING_THREADS)
{
    int64_t lane = threadIdx.x % 32, step = (int64_t)(grid_threads() / 32);
    for (int64_t row = (int64_t)(grid_thread() / 32); row < args.rows.count; row += step) {
        row_view x = row_at(args.x, row_offset(args.rows, args.x, row));
        leader last = {INFINITY, -1}; /* leads all */
        for (int64_t j = 0; j < args.taken; j++) {
            leader next = {-INFINITY, INT64_MAX};
            for (int64_t i = lane; i < args.rows.columns; i += 32) {
                leader one = {load_float(x.data, x.dtype, i * x.step), i};
                if (leads(last, one) && leads(one, next)) next = one;
            }
            last = lanes_lead(next, 32);
            if (lane) continue;
            store_float(args.values.data, args.values.dtype, row * args.taken + j, last.value);
            ((int64_t *)args.places)[row * args.taken + j] = last.place;
        }
    }
}

/* --- order ------------------------------------------------------------------------------------ */

struct ranked {
    int64_t value, place;
};

__device__ inline bool comes_before(ranked a, ranked b)
{
    return a.value < b.value || (a.value == b.value && a.place < b.place);
}

__device__ inline int64_t integer_at(const plim_cuda_flat_operand &a, uint64_t i)
{
    int64_t x[1];
    load(x, a.dtype, a.data + i * bytes_of(a.dtype));
    return x[0];
}

__device__ inline void set_integer(const plim_cuda_flat_operand &a, uint64_t i, int64_t value)
{
    const int64_t x[1] = {value};
    store(a.dtype, a.data + i * bytes_of(a.dtype), x);
}

/* A number in the order of what it stands for: of fp32 its bits, those below the sign turned where it is negative. A
 * zero has no sign; NaN (positive) is the largest. */
__device__ inline int64_t rank_at(const plim_cuda_flat_operand &a, uint64_t i)
{
    if (a.dtype != PLIM_F32) return integer_at(a, i);
    int32_t bits = (int32_t)__float_as_uint(((const float *)a.data)[i] + 0.0f);
    return bits < 0 ? bits ^ INT32_MAX : bits;
}

__device__ inline void set_ranked(const plim_cuda_flat_operand &a, uint64_t i, int64_t rank)
{
    if (a.dtype != PLIM_F32) return set_integer(a, i, rank);
    int32_t bits = (int32_t)rank;
    ((float *)a.data)[i] = __uint_as_float((uint32_t)(bits < 0 ? bits ^ INT32_MAX : bits));
}

/* The two places of comparison `pair`. */
__device__ inline void places_of(uint64_t pair, uint64_t merged, uint64_t distance, uint64_t &i, uint64_t &j)
{
    uint64_t half = merged ? merged / 2 : distance;
    i = (pair & ~(half - 1)) * 2 + (pair & (half - 1));
    j = merged ? i ^ (merged - 1) : i + distance;
}

PLIM_KERNEL(sort_step, plim_sort_args, PLIM_RANKING_THREADS)
{
    int64_t *order = (int64_t *)args.order;
    for (uint64_t pair = grid_thread();; pair += grid_threads()) {
        uint64_t i, j;
        places_of(pair, args.merged, args.distance, i, j);
        if (i >= args.count) return;
        if (j >= args.count) continue;
        ranked a = {rank_at(args.values, i), order[i]}, b = {rank_at(args.values, j), order[j]};
        if (!comes_before(b, a)) continue;
        set_ranked(args.values, i, b.value), order[i] = b.place;
        set_ranked(args.values, j, a.value), order[j] = a.place;
    }
}

__device__ inline void compare_tile(int64_t *value, int64_t *place, uint64_t merged, uint64_t distance)
{
    __syncthreads();
    for (uint64_t pair = threadIdx.x; pair < PLIM_SORT_TILE / 2; pair += blockDim.x) {
        uint64_t i, j;
        places_of(pair, merged, distance, i, j);
        ranked a = {value[i], place[i]}, b = {value[j], place[j]};
        if (!comes_before(b, a)) continue;
        value[i] = b.value, place[i] = b.place;
        value[j] = a.value, place[j] = a.place;
    }
}

PLIM_KERNEL(sort_tile, plim_sort_args, PLIM_RANKING_THREADS)
{
    __shared__ int64_t value[PLIM_SORT_TILE], place[PLIM_SORT_TILE];
    int64_t *order = (int64_t *)args.order;
    for (uint64_t first = (uint64_t)blockIdx.x * PLIM_SORT_TILE; first < args.count;
         first += (uint64_t)gridDim.x * PLIM_SORT_TILE) {
        __syncthreads(); /* the last tile has been written */
        for (uint64_t i = threadIdx.x; i < PLIM_SORT_TILE; i += blockDim.x) {
            bool there = first + i < args.count;
            value[i] = there ? rank_at(args.begins ? args.x : args.values, first + i) : INT64_MAX;
            place[i] = !there ? INT64_MAX : args.begins ? (int64_t)(first + i) : order[first + i];
        }
        for (uint64_t merged = args.begins ? 2 : PLIM_SORT_TILE; merged <= PLIM_SORT_TILE; merged *= 2) {
            if (args.begins) compare_tile(value, place, merged, 0);
            for (uint64_t distance = args.begins ? merged / 4 : merged / 2; distance; distance /= 2)
                compare_tile(value, place, 0, distance);
        }
        __syncthreads();
        for (uint64_t i = threadIdx.x; i < PLIM_SORT_TILE && first + i < args.count; i += blockDim.x) {
            set_ranked(args.values, first + i, value[i]);
            order[first + i] = place[i];
        }
    }
}

PLIM_KERNEL(histogram, plim_histogram_args, PLIM_RANKING_THREADS)
{
    for (uint64_t bin = blockIdx.x; bin < args.bins; bin += gridDim.x) {
        int64_t count = 0;
        for (uint64_t i = threadIdx.x; i < args.elements; i += blockDim.x)
            count += integer_at(args.x, i) == (int64_t)bin;
        count = block_fold(count, (int64_t)0, adding<int64_t>());
        if (threadIdx.x == 0) set_integer(args.out, bin, count);
    }
}

PLIM_KERNEL(scatter_add, plim_scatter_add_args, PLIM_RANKING_THREADS)
{
    for (uint64_t bin = blockIdx.x; bin < args.bins; bin += gridDim.x) {
        float sum = 0;
        for (uint64_t i = threadIdx.x; i < args.elements; i += blockDim.x)
            if (integer_at(args.indices, i) == (int64_t)bin) sum += load_float(args.x.data, args.x.dtype, (int64_t)i);
        sum = block_fold(sum, 0.0f, adding<float>());
        if (threadIdx.x > 0) continue;
        sum += load_float(args.out.data, args.out.dtype, (int64_t)bin);
        store_float(args.out.data, args.out.dtype, (int64_t)bin, sum);
    }
}
