/* Shared by the planners of OPTIMIZER: plan_optimizer.c, and plan_torchao.c for torchao's kinds. */
#ifndef PLIM_DEVICES_CUDA_PLAN_ADAM_H
#define PLIM_DEVICES_CUDA_PLAN_ADAM_H

#include "kernels/args_optimizer.h"
#include "planner.h"

/* Adam's parameters in the form of the kernels; decays_last is 0. */
struct plim_cuda_adam plim_cuda_plan_adam(const struct plim_adam *adam);

plim_cuda_plan_function plim_cuda_plan_torchao_scales, plim_cuda_plan_torchao_step, plim_cuda_plan_torchao_codes;

#endif
