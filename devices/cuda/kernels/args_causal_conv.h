/* Arguments of CAUSAL_CONV and its gradients (causal_conv.cu). Strides in elements. */
#ifndef PLIM_DEVICES_CUDA_KERNELS_ARGS_CAUSAL_CONV_H
#define PLIM_DEVICES_CUDA_KERNELS_ARGS_CAUSAL_CONV_H

#include "args_rows.h"
#include "divider.h"

enum {
    PLIM_CAUSAL_CONV_THREADS = 256,
    PLIM_CAUSAL_CONV_MOST = 4,       /* taps, as the package has it */
    PLIM_CAUSAL_CONV_CHANNELS = 32,  /* of a block that adds up the gradient of the weight, */
    PLIM_CAUSAL_CONV_SHARES = 8      /* and in how many parts it takes the tokens */
};

/* (b, channels, s) */
struct plim_causal_rows {
    uint64_t data;
    int64_t step[3];
    uint32_t dtype, unused;
};

/* causal_conv, causal_conv_backward: a thread for each element of `to`, those that lie behind one another in
 * neighbours. causal_conv_backward_weight: blockIdx.x counts PLIM_CAUSAL_CONV_CHANNELS channels. */
struct plim_causal_conv_args {
    struct plim_causal_rows to, x, dout; /* to: the results, or dx */
    struct plim_cuda_flat_operand weight, dweight; /* (channels, taps) */
    uint64_t document;                             /* int32 (b, s), without strides; 0: not there */
    uint64_t elements;
    struct plim_divider inner, outer; /* channels and s, the one that is denser in `to` inner */
    int64_t batch, channels, length;
    uint32_t taps, channels_inner;
};

#endif
