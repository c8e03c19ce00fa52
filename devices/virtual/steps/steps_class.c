#include "steps_class.h"
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

struct name_rule {
    const char *parts[3]; /* the name contains all of them */
    enum plim_steps_class class;
};

/* The first matching rule applies. The parts are substrings of mangled names, as short as is safe: "adam" is part of
 * "hadamard", and "lamb" of "lambda". */
static const struct name_rule name_rules[] = {
    /* PyTorch's foreach and fused optimizers, apex, DeepSpeed, Transformer Engine */
    {{"multi_tensor_apply", "PointwiseOp"}, PLIM_STEPS_UPDATE},
    {{"multi_tensor_apply", "Fused"}, PLIM_STEPS_UPDATE},
    {{"multi_tensor_apply", "Adam"}, PLIM_STEPS_UPDATE},
    {{"multi_tensor_apply", "LAMB"}, PLIM_STEPS_UPDATE},
    {{"multi_tensor_apply", "Lamb"}, PLIM_STEPS_UPDATE},
    {{"multi_tensor_apply", "SGD"}, PLIM_STEPS_UPDATE},
    {{"multi_tensor_apply", "Adagrad"}, PLIM_STEPS_UPDATE},
    {{"multi_tensor_apply", "NovoGrad"}, PLIM_STEPS_UPDATE},
    {{"multi_tensor_apply", "Lion"}, PLIM_STEPS_UPDATE},
    {{"multi_tensor_apply", "BinaryOpListAlpha"}, PLIM_STEPS_LIST},
    {{"multi_tensor_apply", "Norm"}, PLIM_STEPS_GRADIENT},
    {{"multi_tensor_apply", "non_finite"}, PLIM_STEPS_GRADIENT},
    {{"multi_tensor_apply", "NonFinite"}, PLIM_STEPS_GRADIENT},
    {{"triton_for_fused"}, PLIM_STEPS_LIST}, /* torch.compile; may also be an optimizer */
    {{"lpnorm_cleanup"}, PLIM_STEPS_GRADIENT},
    {{"non_finite_check_and_unscale"}, PLIM_STEPS_GRADIENT},
    {{"multi_tensor_apply"}, PLIM_STEPS_PLAIN},
    /* bitsandbytes */
    {{"kOptimizer"}, PLIM_STEPS_UPDATE},
    {{"kPreconditionOptimizer"}, PLIM_STEPS_UPDATE},
    /* one parameter at a time: PyTorch with foreach=False, older kernels of apex and DeepSpeed */
    {{"addcdiv"}, PLIM_STEPS_ONE_UPDATE},
    {{"fused_adam"}, PLIM_STEPS_ONE_UPDATE},
    {{"FusedAdam"}, PLIM_STEPS_ONE_UPDATE},
    {{"adam_cuda_kernel"}, PLIM_STEPS_ONE_UPDATE},
    {{"lamb_cuda_kernel"}, PLIM_STEPS_ONE_UPDATE},
    {{"adagrad_cuda_kernel"}, PLIM_STEPS_ONE_UPDATE},
    {{"sgd_cuda_kernel"}, PLIM_STEPS_ONE_UPDATE},
    /* backward passes; Triton kernels of a forward pass may be named after what they save for it */
    {{"triton_", "dense_backward"}, PLIM_STEPS_BACKWARD},
    {{"triton_", "loss_backward"}, PLIM_STEPS_BACKWARD},
    {{"triton_", "dropout_backward"}, PLIM_STEPS_BACKWARD},
    {{"triton_", "gelu_backward"}, PLIM_STEPS_BACKWARD},
    {{"triton_", "norm_native_layer_norm_backward"}, PLIM_STEPS_PLAIN},
    {{"ackward"}, PLIM_STEPS_BACKWARD},
    {{"_bwd"}, PLIM_STEPS_BACKWARD},
    {{"bwd_"}, PLIM_STEPS_BACKWARD},
    {{"fmha_cutlassB"}, PLIM_STEPS_BACKWARD},
    {{"layer_norm_grad"}, PLIM_STEPS_BACKWARD},
    {{"GammaBeta"}, PLIM_STEPS_BACKWARD},
    /* matmuls and similar kernels that no library launched */
    {{"gemm"}, PLIM_STEPS_WORK},
    {{"cutlass"}, PLIM_STEPS_WORK},
    {{"flash_fwd"}, PLIM_STEPS_WORK},
    {{"attn_fwd"}, PLIM_STEPS_WORK},
    {{"triton_tem_"}, PLIM_STEPS_WORK},
    {{"conv_depthwise"}, PLIM_STEPS_WORK},
};

enum plim_steps_class plim_steps_classify(const char *name)
{
    for (size_t r = 0; name && r < sizeof(name_rules) / sizeof(name_rules[0]); r++) {
        const struct name_rule *rule = &name_rules[r];
        bool fits = true;
        for (int i = 0; i < 3 && rule->parts[i]; i++) fits = fits && strstr(name, rule->parts[i]);
        if (fits) return rule->class;
    }
    return PLIM_STEPS_PLAIN;
}

enum plim_steps_class plim_steps_join(enum plim_steps_class a, enum plim_steps_class b)
{
    enum plim_steps_class low = a < b ? a : b, high = a < b ? b : a;
    bool with_work = low == PLIM_STEPS_WORK || low == PLIM_STEPS_BACKWARD;
    if (high <= PLIM_STEPS_BACKWARD) return high;
    if (high == PLIM_STEPS_WHOLE) return high;
    if (high >= PLIM_STEPS_ONE_UPDATE) return with_work ? PLIM_STEPS_WHOLE : PLIM_STEPS_UPDATE;
    return with_work ? low : high; /* gradients and lists are too weak a sign */
}
