/* Arguments of the kernels of layer norm and RMSNorm (norm.cu). Statistics and sums are fp32. */
#ifndef PLIM_DEVICES_CUDA_KERNELS_ARGS_NORM_H
#define PLIM_DEVICES_CUDA_KERNELS_ARGS_NORM_H

#include "args_rows.h"

/* layer_norm: block (threads of a row, rows) */
struct plim_layer_norm_args {
    struct plim_cuda_rows rows;
    struct plim_cuda_row_operand out, x;
    struct plim_cuda_flat_operand mean, rstd, weight, bias; /* the last two may be absent */
    float epsilon;
};

/* layer_norm_backward: the same block */
struct plim_layer_norm_backward_args {
    struct plim_cuda_rows rows;
    struct plim_cuda_row_operand dx, dout, x;
    struct plim_cuda_flat_operand mean, rstd, weight;
};

/* layer_norm_backward_params: grid (columns / PLIM_PARAMS_COLUMNS, parts), block
 * (PLIM_PARAMS_COLUMNS, up to PLIM_PARAMS_ROW_THREADS, which share the rows of a part) */
enum { PLIM_PARAMS_COLUMNS = 8, PLIM_PARAMS_ROW_THREADS = 128 };
struct plim_layer_norm_params_args {
    struct plim_cuda_rows rows;
    struct plim_cuda_row_operand dout, x;
    struct plim_cuda_flat_operand mean, rstd, dweight, dbias; /* dbias may be absent */
    int64_t parts; /* part p begins at row p * count / parts */
};

/* rms_norm: block (threads of a row, rows) */
struct plim_rms_norm_args {
    struct plim_cuda_rows rows;
    struct plim_cuda_row_operand out, x;
    struct plim_cuda_flat_operand rstd, weight;
    float epsilon, offset; /* offset: added to the weight */
};

/* l2_norm, l2_norm_backward: the same block */
struct plim_l2_norm_args {
    struct plim_cuda_rows rows;
    struct plim_cuda_row_operand out, x; /* l2_norm_backward: dx and the norm's result */
    struct plim_cuda_row_operand dout;   /* l2_norm_backward */
    struct plim_cuda_flat_operand rstd;
    float epsilon;
    uint32_t unused;
};

/* rms_norm_backward: the same block. rms_norm_backward_parts: grid (parts), block (threads of a row, rows), of at most
 * PLIM_RMS_PARTS_THREADS, with dynamic shared memory if sums_in_shared is not 0: fp32, sums_step for each of the
 * block's rows. */
enum { PLIM_RMS_PARTS_THREADS = 512 };
struct plim_rms_norm_backward_args {
    struct plim_cuda_rows rows;
    struct plim_cuda_row_operand dx, dout, x;
    struct plim_cuda_flat_operand rstd, weight;
    uint64_t dweight; /* fp32 (parts, columns); part p begins at row p * count / parts */
    int64_t parts, sums_step;
    float offset;
    uint32_t sums_in_shared; /* otherwise a block processes one row at a time and adds to dweight */
};

#endif
