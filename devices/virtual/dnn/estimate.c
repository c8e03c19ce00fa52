#include "dnn.h"

/* The workspaces observed with cuDNN 9.19, within some percent for most shapes: space to convert operands to and from
 * the layout of its tensor-core kernels, channels last; and, for the gradient of a filter that is not large, whose sums
 * are split, some MiB of partial results. Half-precision operands that are already channels-last need only the latter.
 * TF32 kernels for GPUs before 9.0 read copies of their inputs in either layout; they write results in place, except
 * for the gradient of a channels-first tensor. Without tensor cores the direct kernels are assumed, which need no
 * workspace.
 *
 * Peaks of whole training steps (ResNet-50, ConvNeXt, MobileNetV3, EfficientNet) are within 2.5 % of those with the
 * workspaces of cuDNN itself. */
enum { PARTIAL_BYTES = 4 << 20, LARGE_BYTES = 2 << 20 };
enum { TENSOR_CORES = 70, TF32 = 80, TF32_IN_PLACE = 90 }; /* compute capabilities */

int64_t plim_dnn_copied_bytes(enum plim_dnn_pass pass, const struct plim_dnn_tensor *x,
                              const struct plim_dnn_tensor *w, const struct plim_dnn_tensor *y)
{
    const struct plim_machine_gpu *gpu = plim_self_gpu(plim_self_device());
    int64_t x_bytes = plim_dnn_tensor_bytes(x), w_bytes = plim_dnn_tensor_bytes(w);
    int64_t y_bytes = plim_dnn_tensor_bytes(y);
    bool is_half = x->type == DNN_HALF || x->type == DNN_BFLOAT16;
    bool is_last = plim_dnn_channels_last(x);
    if (!gpu || gpu->compute_capability < (is_half ? TENSOR_CORES : TF32)) return 0;
    if (is_half) return is_last ? 0 : x_bytes + w_bytes + y_bytes;
    if (x->type != DNN_FLOAT) return 0;
    if (is_last && gpu->compute_capability >= TF32_IN_PLACE) return 0;
    if (pass == PLIM_DNN_FORWARD) return x_bytes + w_bytes;
    if (pass == PLIM_DNN_BACKWARD_DATA) return y_bytes + w_bytes + (is_last ? 0 : x_bytes);
    return x_bytes + y_bytes;
}

int64_t plim_dnn_convolution_bytes(enum plim_dnn_pass pass, const struct plim_dnn_tensor *x,
                                   const struct plim_dnn_tensor *w,
                                   const struct plim_dnn_tensor *y)
{
    const struct plim_machine_gpu *gpu = plim_self_gpu(plim_self_device());
    bool is_half = x->type == DNN_HALF || x->type == DNN_BFLOAT16;
    bool is_split = pass == PLIM_DNN_BACKWARD_FILTER && plim_dnn_tensor_bytes(w) < LARGE_BYTES;
    if (!gpu || gpu->compute_capability < (is_half ? TENSOR_CORES : TF32)) return 0;
    int64_t partial_bytes = is_split && (is_half || x->type == DNN_FLOAT) ? PARTIAL_BYTES : 0;
    return plim_dnn_copied_bytes(pass, x, w, y) + partial_bytes;
}
