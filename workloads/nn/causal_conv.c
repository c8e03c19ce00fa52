/* causal_conv1d_fn as implemented by transformers for use without the package causal-conv1d. */
#include "nn.h"

struct tensor *nn_causal_conv1d(struct engine *e, struct tensor *weight, struct tensor *bias, struct tensor *x,
                                bool silu)
{
    if (e->halted) return e->poison;
    int64_t channels = weight->a.shape[0], tokens = weight->a.shape[2], seq = x->a.shape[2];
    enum plim_dtype dtype = (enum plim_dtype)x->a.dtype;
    struct tensor *cast = tensor_hold(op_to(e, x, (enum plim_dtype)weight->a.dtype));
    struct tensor *squeezed = tensor_keep(op_view(e, weight, SHAPE(channels, tokens)));
    struct tensor *y = tensor_keep(op_depthwise(e, cast, op_unsqueeze(e, squeezed, 1), bias, tokens - 1));
    tensor_drop(e, cast);
    tensor_set(e, &y, op_slice(e, y, 2, 0, seq));
    if (silu) {
        nn_begin(e);
        tensor_set(e, &y, nn_end(e, op_silu(e, y)));
    }
    tensor_set(e, &y, op_to(e, y, dtype));
    tensor_drop(e, squeezed);
    return tensor_yield(y);
}
