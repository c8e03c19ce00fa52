/* Triangular systems of small matrices, whose diagonals count as ones: a thread for each column of the right side,
 * which substitutes row after row. */
#include "args_solve.h"
#include "kernel.cuh"

__device__ inline float *matrix_at(const plim_cuda_matrices &m, const plim_solve_args &args, uint64_t index)
{
    int64_t offset = 0;
    for (int d = 0; d < PLIM_SOLVE_BATCH_DIMS; d++) {
        uint64_t next = plim_divide(index, &args.extent[d]);
        offset += (int64_t)(index - next * args.extent[d].divisor) * m.step[d];
        index = next;
    }
    return (float *)m.data + offset;
}

PLIM_KERNEL(solve_triangular, plim_solve_args, PLIM_SOLVE_THREADS)
{
    __shared__ float a[PLIM_SOLVE_MOST][PLIM_SOLVE_MOST], x[PLIM_SOLVE_MOST][PLIM_SOLVE_THREADS];
    const float *matrix = matrix_at(args.a, args, blockIdx.x), *right = matrix_at(args.b, args, blockIdx.x);
    float *result = matrix_at(args.x, args, blockIdx.x);
    int64_t column = (int64_t)blockIdx.y * PLIM_SOLVE_THREADS + threadIdx.x;
    int n = args.rows, thread = (int)threadIdx.x;
    for (int i = thread; i < n * n; i += PLIM_SOLVE_THREADS)
        a[i / n][i % n] = matrix[i / n * args.a.row_step + i % n * args.a.column_step];
    __syncthreads();
    if (column >= args.columns) return;
    for (int done = 0; done < n; done++) {
        int i = args.upper ? n - 1 - done : done;
        float sum = right[i * args.b.row_step + column * args.b.column_step];
        for (int before = 0; before < done; before++) {
            int k = args.upper ? n - 1 - before : before;
            sum -= a[i][k] * x[k][thread];
        }
        x[i][thread] = sum;
        result[i * args.x.row_step + column * args.x.column_step] = sum;
    }
}
