/* Arguments of ROW_STATISTICS and its gradient (statistics.cu): block (threads of a row, rows). */
#ifndef PLIM_DEVICES_CUDA_KERNELS_ARGS_STATISTICS_H
#define PLIM_DEVICES_CUDA_KERNELS_ARGS_STATISTICS_H

#include "args_rows.h"

/* One number per row, `step` elements apart. `data` 0: absent. */
struct plim_cuda_column_operand {
    uint64_t data;
    int64_t step;
    uint32_t dtype, unused;
};

/* row_statistics: the running statistics are fp32, targets have any integer type. */
struct plim_row_statistics_args {
    struct plim_cuda_rows rows;
    struct plim_cuda_row_operand tile;
    struct plim_cuda_column_operand targets, maximum, sum_exp, target_logit, z_sum_exp, z_sum, maximum_before;
    int64_t start; /* class of the first column */
    float scale, cap; /* cap 0: none */
};

/* row_statistics_backward: the statistics of rows have any floating-point type. */
struct plim_row_statistics_backward_args {
    struct plim_cuda_rows rows;
    struct plim_cuda_row_operand dtile, tile;
    struct plim_cuda_column_operand targets, log_sum, dlog_prob, dentropy, entropy;
    int64_t start;
    float scale, cap;
};

#endif
