/* Arguments of the softmax kernels (softmax.cu): block (threads of a row, rows). */
#ifndef PLIM_DEVICES_CUDA_KERNELS_ARGS_SOFTMAX_H
#define PLIM_DEVICES_CUDA_KERNELS_ARGS_SOFTMAX_H

#include "args_rows.h"

/* softmax, log_softmax */
struct plim_softmax_args {
    struct plim_cuda_rows rows;
    struct plim_cuda_row_operand out, x;
};

/* softmax_backward (`dout` is gradient times result), log_softmax_backward */
struct plim_softmax_backward_args {
    struct plim_cuda_rows rows;
    struct plim_cuda_row_operand dx, dout, out;
};

#endif
