/* Arguments of ARGMAX, TOP_K, SORT, HISTOGRAM and SCATTER_ADD (ranking.cu). */
#ifndef PLIM_DEVICES_CUDA_KERNELS_ARGS_RANKING_H
#define PLIM_DEVICES_CUDA_KERNELS_ARGS_RANKING_H

#include "args_rows.h"
#include <stdbool.h>

enum { PLIM_RANKING_THREADS = 256, PLIM_SORT_TILE = 1024 };

/* block (threads of a row, rows) */
struct plim_argmax_args {
    struct plim_cuda_rows rows;
    struct plim_cuda_row_operand x;
    uint64_t places; /* int64, contiguous */
};

/* One warp per row; the results are contiguous, `taken` per row. */
struct plim_top_k_args {
    struct plim_cuda_rows rows;
    struct plim_cuda_row_operand x;
    struct plim_cuda_flat_operand values;
    uint64_t places; /* int64 */
    int64_t taken;
};

/* A bitonic network whose comparisons all have the same direction, so that positions beyond `count` behave like the
 * largest values and never move. Each run of `merged` elements (a power of two) whose halves are sorted becomes
 * sorted. */
struct plim_sort_args {
    struct plim_cuda_flat_operand x, values; /* integers or fp32; x: sort_tile's, where it begins */
    uint64_t order;                          /* int64 */
    uint64_t count;
    uint64_t merged;   /* sort_step: a merge's first step, which compares the i-th with the i-th from the end; or 0: */
    uint64_t distance; /* a later step, which compares elements this far apart */
    bool begins;       /* sort_tile: sorts tiles of x; otherwise performs the steps of a merge that stay within tiles */
};

/* One block per bin, which counts the elements equal to the bin's number. */
struct plim_histogram_args {
    struct plim_cuda_flat_operand out, x; /* integers, contiguous */
    uint64_t bins, elements;
};

/* One block per bin, which sums the elements whose index is the bin's number. All contiguous. */
struct plim_scatter_add_args {
    struct plim_cuda_flat_operand out, x, indices;
    uint64_t bins, elements;
};

#endif
