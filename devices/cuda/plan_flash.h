/* Attention on tensor cores. Calls that these kernels do not support run on fp32 units (plan_attention.c). */
#ifndef PLIM_DEVICES_CUDA_PLAN_FLASH_H
#define PLIM_DEVICES_CUDA_PLAN_FLASH_H

#include "kernels/args_attention.h"
#include "planner.h"

/* Returns the tensor-core kernels for a call; NULL if there are none, because the GPU's compute capability is below 8.0
 * (for fp16 below 7.5), types differ, rows are not multiples of 16 bytes, heads are too large, or a backward pass has
 * no scratch for the sums of its rows. */
struct plim_flash;
const struct plim_flash *plim_cuda_flash_find(const struct plim_device_info *info,
                                              const struct plim_op *op,
                                              const struct plim_attention_args *args);

enum plim_status plim_cuda_plan_flash(const struct plim_cuda_plan *plan,
                                      const struct plim_flash *flash, const struct plim_op *op,
                                      const struct plim_attention_args *args) PLIM_MUST_CHECK;
enum plim_status plim_cuda_plan_flash_backward(const struct plim_cuda_plan *plan,
                                               const struct plim_flash *flash,
                                               const struct plim_op *op,
                                               const struct plim_attention_args *args)
    PLIM_MUST_CHECK;

#endif
