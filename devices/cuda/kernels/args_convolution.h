/* Arguments of PATCHES and DEPTHWISE and their gradients (convolution.cu). Strides in elements. */
#ifndef PLIM_DEVICES_CUDA_KERNELS_ARGS_CONVOLUTION_H
#define PLIM_DEVICES_CUDA_KERNELS_ARGS_CONVOLUTION_H

#include "args_rows.h"
#include "divider.h"

enum { PLIM_PATCHES_TILE = 64, PLIM_CONVOLUTION_THREADS = 256 };

/* (b, channels, height, width) */
struct plim_cuda_images {
    uint64_t data;
    int64_t step[4];
    uint32_t dtype, unused;
};

/* A matrix product: blockIdx.x counts tiles of rows, blockIdx.y tiles of columns. patches: one row per patch, one
 * column per kernel; patches_backward: one row per kernel, one column per element of a kernel. */
struct plim_patches_args {
    struct plim_cuda_images images, results;  /* results: the gradient in backward */
    struct plim_cuda_flat_operand weight, bias; /* (kernels, channels, height, width); bias may be absent */
    int64_t patches, kernels, elements;         /* of a kernel */
    struct plim_divider down, across;           /* patches of an image, vertically and horizontally */
    struct plim_divider height, width;          /* of a patch */
};

/* One thread per element of `to`: the bias, which may be absent, plus the sum over k of from[i + k - padding]
 * weight[k]; `back`: of from[i - k + padding] weight[k]. All contiguous. */
struct plim_depthwise_args {
    struct plim_cuda_flat_operand to, from, weight, bias;
    uint64_t elements;
    struct plim_divider to_length, channels;
    int64_t from_length, kernel, padding;
    uint32_t back, unused;
};

/* One block per element of dweight, over all rows of its channel. */
struct plim_depthwise_weight_args {
    struct plim_cuda_flat_operand dweight, dout, x;
    struct plim_divider results; /* of a row of dout */
    int64_t batch, channels, length, kernel, padding;
};

#endif
