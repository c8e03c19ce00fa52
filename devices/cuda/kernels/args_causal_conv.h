/* Arguments of CAUSAL_CONV and its gradients (causal_conv.cu). Strides in elements. */
#ifndef PLIM_DEVICES_CUDA_KERNELS_ARGS_CAUSAL_CONV_H
#define PLIM_DEVICES_CUDA_KERNELS_ARGS_CAUSAL_CONV_H

#include "args_rows.h"
#include "divider.h"

enum {
    PLIM_CAUSAL_CONV_THREADS = 256,
    PLIM_CAUSAL_CONV_MOST = 4,       /* maximum number of taps, as in the package causal-conv1d */
    PLIM_CAUSAL_CONV_CHANNELS = 32,  /* channels for which one block sums the weight's gradient */
    PLIM_CAUSAL_CONV_SHARES = 8      /* number of parts into which it divides the tokens */
};

/* (b, channels, s) */
struct plim_causal_rows {
    uint64_t data;
    int64_t step[3];
    uint32_t dtype, unused;
};

/* causal_conv, causal_conv_backward: one thread per element of `to`; adjacent elements are computed by adjacent
 * threads. causal_conv_backward_weight: one block (blockIdx.x) per PLIM_CAUSAL_CONV_CHANNELS channels. */
struct plim_causal_conv_args {
    struct plim_causal_rows to, x, dout; /* to: the results, or dx */
    struct plim_cuda_flat_operand weight, dweight; /* (channels, taps) */
    uint64_t document;                             /* int32 (b, s), contiguous; 0: absent */
    uint64_t elements;
    struct plim_divider inner, outer; /* channels and s; inner is the one with the smaller stride in `to` */
    int64_t batch, channels, length;
    uint32_t taps, channels_inner;
};

#endif
