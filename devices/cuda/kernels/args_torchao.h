/* Arguments of torchao's AdamW (torchao.cu). All arrays are contiguous; there is one set of them per moment. */
#ifndef PLIM_DEVICES_CUDA_KERNELS_ARGS_TORCHAO_H
#define PLIM_DEVICES_CUDA_KERNELS_ARGS_TORCHAO_H

#include "args_optimizer.h"
#include "divider.h"

enum { PLIM_TORCHAO_THREADS = 256, PLIM_TORCHAO_CODES_MOST = 256, PLIM_TORCHAO_NIBBLES = 16 };

/* A moment. `new_scales`: one per `part` elements; written by torchao_scales, read by torchao_step_4bit. */
struct plim_torchao_moment {
    uint64_t codes, scales, book; /* uint8, fp32, fp32 of 16 or 256 */
    uint64_t new_scales, scaled;  /* fp32; 0: not needed */
    uint64_t places;              /* int64 */
};

/* torchao_scales_8bit, _4bit: a warp processes one part at a time. torchao_step_8bit, _4bit: one thread per element.
 * torchao_codes: one thread per two elements of moment 0. */
struct plim_torchao_args {
    struct plim_cuda_flat_operand parameter, gradient;
    struct plim_torchao_moment moment[2];
    int64_t elements;
    struct plim_divider block; /* elements that share a scale */
    int64_t part;
    uint32_t book_size, unused;
    struct plim_cuda_adam adam;
};

#endif
