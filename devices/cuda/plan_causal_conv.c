/* causal-conv1d's convolution. */
#include "kernels/args_causal_conv.h"
#include "plan_rows.h"

enum { BATCH, CHANNELS, TOKENS, DIMS };

static struct plim_causal_rows rows_of(const struct plim_array *a)
{
    struct plim_causal_rows rows = {.data = a->data, .dtype = a->dtype};
    for (int d = 0; d < DIMS; d++) rows.step[d] = a->stride[d];
    return rows;
}

static enum plim_status check_document(const struct plim_array *document, const struct plim_array *x)
{
    if (!document) return PLIM_OK;
    if (document->ndim != 2 || document->shape[0] != x->shape[BATCH] || document->shape[1] != x->shape[TOKENS])
        return PLIM_INVALID;
    return document->dtype == PLIM_I32 && plim_cuda_plan_is_contiguous(document) ? PLIM_OK : PLIM_UNSUPPORTED;
}

/* `to` is described like x. */
static enum plim_status describe(const struct plim_array *to, const struct plim_array *x,
                                 const struct plim_array *weight, const struct plim_array *document,
                                 struct plim_causal_conv_args *args)
{
    if (x->ndim != DIMS || !plim_cuda_plan_same_shape(to, x) || weight->ndim != 2 ||
        weight->shape[0] != x->shape[CHANNELS])
        return PLIM_INVALID;
    enum plim_status st = check_document(document, x);
    if (st != PLIM_OK) return st;
    if (!plim_dtype_is_float(to->dtype) || !plim_dtype_is_float(x->dtype) || !plim_dtype_is_float(weight->dtype) ||
        !plim_cuda_plan_is_contiguous(weight) || weight->shape[1] > PLIM_CAUSAL_CONV_MOST)
        return PLIM_UNSUPPORTED;
    bool channels_inner = to->stride[CHANNELS] < to->stride[TOKENS];
    int64_t inner = to->shape[channels_inner ? CHANNELS : TOKENS],
            outer = to->shape[channels_inner ? TOKENS : CHANNELS];
    *args = (struct plim_causal_conv_args){.to = rows_of(to),
                                           .x = rows_of(x),
                                           .weight = plim_cuda_plan_flat(weight),
                                           .document = document ? document->data : 0,
                                           .elements = (uint64_t)plim_array_elements(to),
                                           .inner = plim_cuda_plan_divider(inner),
                                           .outer = plim_cuda_plan_divider(outer),
                                           .batch = x->shape[BATCH],
                                           .channels = x->shape[CHANNELS],
                                           .length = x->shape[TOKENS],
                                           .taps = (uint32_t)weight->shape[1],
                                           .channels_inner = channels_inner};
    return PLIM_OK;
}

static enum plim_status launch(const struct plim_cuda_plan *plan, const char *kernel,
                               const struct plim_causal_conv_args *args)
{
    if (!args->elements) return PLIM_OK;
    return plim_cuda_plan_launch(plan, kernel,
                                 plim_cuda_plan_all_blocks((int64_t)args->elements, PLIM_CAUSAL_CONV_THREADS),
                                 PLIM_CAUSAL_CONV_THREADS, args, sizeof *args);
}

enum plim_status plim_cuda_plan_causal_conv(const struct plim_cuda_plan *plan, const struct plim_op *op)
{
    struct plim_causal_conv_args args;
    enum plim_status st = describe(op->out[0], op->in[0], op->in[1], op->n_in > 2 ? op->in[2] : NULL, &args);
    return st ? st : launch(plan, "causal_conv", &args);
}

enum plim_status plim_cuda_plan_causal_conv_backward(const struct plim_cuda_plan *plan, const struct plim_op *op)
{
    const struct plim_array *dout = op->in[0], *x = op->in[1], *weight = op->in[2], *dweight = op->out[1];
    struct plim_causal_conv_args args;
    enum plim_status st = describe(op->out[0], x, weight, op->n_in > 3 ? op->in[3] : NULL, &args);
    if (st != PLIM_OK) return st;
    if (!plim_cuda_plan_same_shape(dout, x) || dweight->ndim != 2 || dweight->shape[0] != weight->shape[0] ||
        dweight->shape[1] != weight->shape[1])
        return PLIM_INVALID;
    if (!plim_dtype_is_float(dout->dtype) || !plim_dtype_is_float(dweight->dtype) ||
        !plim_cuda_plan_is_contiguous(dweight))
        return PLIM_UNSUPPORTED;
    args.dout = rows_of(dout);
    args.dweight = plim_cuda_plan_flat(dweight);
    st = launch(plan, "causal_conv_backward", &args);
    int64_t blocks = (args.channels + PLIM_CAUSAL_CONV_CHANNELS - 1) / PLIM_CAUSAL_CONV_CHANNELS;
    if (st != PLIM_OK || !blocks || !args.taps) return st;
    return plim_cuda_plan_launch(plan, "causal_conv_backward_weight", blocks, PLIM_CAUSAL_CONV_THREADS, &args,
                                 sizeof args);
}
