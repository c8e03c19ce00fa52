/* Adam's arithmetic, for the kernels of optimizers that keep its moments in different ways. */
#ifndef PLIM_DEVICES_CUDA_KERNELS_ADAM_CUH
#define PLIM_DEVICES_CUDA_KERNELS_ADAM_CUH

#include "args_optimizer.h"
#include "kernel.cuh"

/* Of one step: rate / (1 - beta1^t), 1 / sqrt(1 - beta2^t). */
struct adam_step {
    float rate, root;
};

__device__ inline adam_step adam_at(const plim_cuda_adam &adam, float step)
{
    return {adam.rate / -expm1f(step * adam.log1), rsqrtf(-expm1f(step * adam.log2))};
}

__device__ inline void adam_update(const plim_cuda_adam &adam, adam_step step, float &p, float &m,
                                   float &v, float g)
{
    m = adam.beta1 * m + adam.rest1 * g;
    v = adam.beta2 * v + adam.rest2 * g * g;
    float change = step.rate * m / (sqrtf(v) * step.root + adam.epsilon);
    if (!adam.decays_last) p -= adam.decay * p;
    p -= change;
    if (adam.decays_last) p -= adam.decay * p;
}

#endif
