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

/* A warp for each row; the results are contiguous, `taken` of each row. */
struct plim_top_k_args {
    struct plim_cuda_rows rows;
    struct plim_cuda_row_operand x;
    struct plim_cuda_flat_operand values;
    uint64_t places; /* int64 */
    int64_t taken;
};

/* A bitonic network whose comparisons all go the same way, so that what lies beyond `count` counts as the largest and
 * is never moved. Stretches of `merged` (a power of two) become sorted where their halves are. */
struct plim_sort_args {
    struct plim_cuda_flat_operand x, values; /* integers or fp32; x: sort_tile's, where it begins */
    uint64_t order;                          /* int64 */
    uint64_t count;
    uint64_t merged;   /* sort_step: by its first comparisons, of the i-th from the front and from the end; or 0: */
    uint64_t distance; /* by those of neighbours so far apart */
    bool begins;       /* sort_tile: sorts tiles of x; else what is left of a merge within tiles */
};

/* A block for each bin, which counts those that are its number. */
struct plim_histogram_args {
    struct plim_cuda_flat_operand out, x; /* integers, contiguous */
    uint64_t bins, elements;
};

/* The same of those whose index it is, which it adds up; contiguous. */
struct plim_scatter_add_args {
    struct plim_cuda_flat_operand out, x, indices;
    uint64_t bins, elements;
};

#endif
