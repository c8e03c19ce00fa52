/* Arguments of the layer norm kernels (norm.cu). Statistics and sums are fp32. */
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
    int64_t parts; /* part p: rows from p count / parts on */
};

#endif
