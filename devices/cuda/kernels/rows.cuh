/* How a team of threads walks over a row, and folds what each of its threads found.
 *
 * Blocks are (team, rows): the team, a power of two of up to 32 threads or several whole warps, is
 * threadIdx.x; every thread of the block calls the folds. Element types are known at run time:
 * they are uniform over a launch, so the branch costs nothing beside the memory access. */
#ifndef PLIM_DEVICES_CUDA_KERNELS_ROWS_CUH
#define PLIM_DEVICES_CUDA_KERNELS_ROWS_CUH

#include "args_rows.h"
#include "kernel.cuh"
#include "vector.cuh"

/* A row of one operand. */
struct row_view {
    uint64_t data; /* of column 0 */
    int64_t step;
    uint32_t dtype;
};

/* Elements before the row that `count` in row-major order names. */
__device__ inline int64_t row_offset(const plim_cuda_rows &rows, const plim_cuda_row_operand &a,
                                     int64_t row)
{
    int64_t offset = 0;
    for (int d = (int)rows.outer - 1; d > 0; d--) {
        int64_t above = row / rows.size[d];
        offset += (row - above * rows.size[d]) * a.step[d];
        row = above;
    }
    return offset + row * a.step[0];
}

__device__ inline row_view row_at(const plim_cuda_row_operand &a, int64_t offset)
{
    return {a.data + (uint64_t)offset * bytes_of(a.dtype), a.column_step, a.dtype};
}

template <int N> __device__ inline void row_load(const row_view &row, int64_t column, float (&v)[N])
{
    load_floats(row.data, row.dtype, N == 1 ? column * row.step : column, v);
}

template <int N>
__device__ inline void row_store(const row_view &row, int64_t column, const float (&v)[N])
{
    store_floats(row.data, row.dtype, N == 1 ? column * row.step : column, v);
}

/* Leading columns of a row that have to be taken one by one before vectors are aligned. */
__device__ inline int64_t row_head(const plim_cuda_rows &rows, int64_t offset)
{
    int64_t head = rows.vectors ? -offset & (VECTOR - 1) : rows.columns;
    return head < rows.columns ? head : rows.columns;
}

/* visit(column, lanes<N>): the team takes columns [0, n), N at a time. */
template <class Visit> __device__ inline void row_visit(int64_t head, int64_t n, Visit visit)
{
    int64_t tail = head + (n - head) / VECTOR * VECTOR;
    for (int64_t i = threadIdx.x; i < head; i += blockDim.x) visit(i, lanes<1>());
    for (int64_t i = head + (int64_t)threadIdx.x * VECTOR; i < tail; i += blockDim.x * VECTOR)
        visit(i, lanes<VECTOR>());
    for (int64_t i = tail + threadIdx.x; i < n; i += blockDim.x) visit(i, lanes<1>());
}

/* A row as its team has it: `columns` is 0 where there is none, and the team only helps the others of
 * its warp to fold. */
struct team_row {
    int64_t index, columns, head; /* head: as row_visit wants it */
    bool live;
};

__device__ inline row_view row_of(const plim_cuda_rows &rows, const plim_cuda_row_operand &a,
                                  const team_row &row)
{
    return row_at(a, row.live ? row_offset(rows, a, row.index) : 0);
}

/* body(team_row, row_view of `a`): the teams of the grid take all rows; every thread of a block runs
 * the body equally often, as the folds want it. Vectors are aligned for `a`. */
template <class Body>
__device__ inline void for_rows(const plim_cuda_rows &rows, const plim_cuda_row_operand &a,
                                Body body)
{
    int64_t stride = (int64_t)gridDim.x * blockDim.y;
    for (int64_t first = (int64_t)blockIdx.x * blockDim.y; first < rows.count; first += stride) {
        int64_t index = first + threadIdx.y;
        bool live = index < rows.count;
        int64_t offset = live ? row_offset(rows, a, index) : 0;
        team_row row = {index, live ? rows.columns : 0, live ? row_head(rows, offset) : 0, live};
        body(row, row_at(a, offset));
    }
}

/* The fold of one T of each thread of the team, the same for all of it. T is trivial, has
 * `static T merge(T, T)`, commutative to the bit, and `T from(offset)`: another lane's by shuffle;
 * blocks with teams of several warps have one row. */
template <class T> __device__ inline T team_fold(T mine)
{
    int team = (int)blockDim.x;
    for (int offset = (team < 32 ? team : 32) / 2; offset > 0; offset /= 2)
        mine = T::merge(mine, mine.from(offset));
    if (team <= 32) return mine;

    __shared__ T part[32];
    int warp = (int)threadIdx.x / 32, warps = team / 32;
    __syncthreads(); /* the results of the fold before are read */
    if (threadIdx.x % 32 == 0) part[warp] = mine;
    __syncthreads();
    mine = part[0];
    for (int i = 1; i < warps; i++) mine = T::merge(mine, part[i]);
    return mine;
}

/* Two sums. */
struct sums {
    float a, b;
    static __device__ sums merge(sums x, sums y)
    {
        return {x.a + y.a, x.b + y.b};
    }
    __device__ sums from(int offset) const
    {
        return {lane_xor(a, offset), lane_xor(b, offset)};
    }
};

#endif
