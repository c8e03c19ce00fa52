/* Arguments of SOLVE_TRIANGULAR (solve.cu). Strides in elements. */
#ifndef PLIM_DEVICES_CUDA_KERNELS_ARGS_SOLVE_H
#define PLIM_DEVICES_CUDA_KERNELS_ARGS_SOLVE_H

#include "divider.h"

enum { PLIM_SOLVE_MOST = 64 /* maximum of rows of a matrix */, PLIM_SOLVE_THREADS = 64, PLIM_SOLVE_BATCH_DIMS = 4 };

/* (.., rows, columns) */
struct plim_cuda_matrices {
    uint64_t data;
    int64_t step[PLIM_SOLVE_BATCH_DIMS], row_step, column_step; /* the last leading dimension first */
};

/* blockIdx.x: the matrix; blockIdx.y: the group of columns of its right-hand side, one column for each thread. */
struct plim_solve_args {
    struct plim_cuda_matrices x, a, b; /* fp32 */
    struct plim_divider extent[PLIM_SOLVE_BATCH_DIMS];
    int64_t columns;
    int32_t rows;
    uint32_t upper;
};

#endif
