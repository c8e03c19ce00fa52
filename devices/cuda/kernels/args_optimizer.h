/* Arguments of the optimizer kernels (optimizer.cu). */
#ifndef PLIM_DEVICES_CUDA_KERNELS_ARGS_OPTIMIZER_H
#define PLIM_DEVICES_CUDA_KERNELS_ARGS_OPTIMIZER_H

#include "args_foreach.h"

/* AdamW's parameters in the form of the kernels: differences that would lose digits in fp32 are computed on the
 * host. */
struct plim_cuda_adam {
    float decay; /* rate * weight_decay */
    float rate, epsilon;
    float beta1, beta2;
    float rest1, rest2;   /* 1 - beta */
    float log1, log2;     /* ln beta: 1 - beta^t = -expm1(t ln beta) */
    float step;           /* the step number, if no tensor counts it */
    uint32_t decays_last; /* after the update, as bitsandbytes does */
};

/* adamw: the lists are parameters, moments, second moments, gradients and, if tensors count the steps, these counters
 * of one element each. adamw_count adds 1 to the counters beforehand. Nothing is changed if found_inf is 1; gradients
 * are divided by grad_scale. Both may be absent. */
struct plim_adamw_args {
    struct plim_cuda_tensor_lists lists;
    struct plim_cuda_flat_operand found_inf, grad_scale;
    struct plim_cuda_adam adam;
};
enum {
    PLIM_ADAMW_PARAMETERS,
    PLIM_ADAMW_MOMENTS,
    PLIM_ADAMW_SECOND_MOMENTS,
    PLIM_ADAMW_GRADIENTS,
    PLIM_ADAMW_STEPS
};

/* adamw_8bit: states are 8-bit codes, with one maximum per 256 codes. A warp processes 256 elements at a time. Elements
 * whose gradient is not finite keep their value, and their states become 0. `vectors`: every array starts at a multiple
 * of 16 bytes. */
enum { PLIM_CODE_BLOCK = 256, PLIM_CODES = 256 };
struct plim_adamw_8bit_args {
    struct plim_cuda_flat_operand parameter, gradient;
    uint64_t state[2], book[2], maximum[2]; /* uint8, fp32, fp32 */
    int64_t elements;
    struct plim_cuda_adam adam;
    uint32_t vectors;
};

/* amp_update_scale: one thread. `growth` is fp32 or int32. */
struct plim_amp_update_scale_args {
    struct plim_cuda_flat_operand scale, growth, found_inf;
};

#endif
