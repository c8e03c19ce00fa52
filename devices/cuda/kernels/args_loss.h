/* Arguments of the loss kernels (loss.cu). */
#ifndef PLIM_DEVICES_CUDA_KERNELS_ARGS_LOSS_H
#define PLIM_DEVICES_CUDA_KERNELS_ARGS_LOSS_H

#include "args_rows.h"

/* nll_loss: one block. log_probs[i, c] is i * row_step + c * class_step elements after `data`. */
struct plim_nll_loss_args {
    struct plim_cuda_flat_operand loss, number, log_probs;
    uint64_t target; /* int64, target_step apart */
    int64_t rows, classes, row_step, class_step, target_step;
};

/* nll_loss_backward: one thread per row */
struct plim_nll_loss_backward_args {
    struct plim_cuda_flat_operand dlog_probs, dloss, number;
    uint64_t target;
    int64_t rows, classes, row_step, class_step, target_step;
};

/* cross_entropy: block (threads of a row, rows) */
struct plim_cross_entropy_args {
    struct plim_cuda_rows rows;
    struct plim_cuda_row_operand logits, dlogits; /* dlogits.data 0: not wanted */
    struct plim_cuda_flat_operand loss;           /* loss_step apart */
    uint64_t target;
    int64_t loss_step, target_step;
    float scale, cap; /* cap 0: none */
};

#endif
