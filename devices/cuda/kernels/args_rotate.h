/* Arguments of rotary embeddings (rotate.cu): one thread per PLIM_ROTATE_VECTOR pairs of a head, or per pair. */
#ifndef PLIM_DEVICES_CUDA_KERNELS_ARGS_ROTATE_H
#define PLIM_DEVICES_CUDA_KERNELS_ARGS_ROTATE_H

#include "args_rows.h"
#include "divider.h"

enum { PLIM_ROTATE_THREADS = 256, PLIM_ROTATE_VECTOR = 8 };

struct plim_rotate_args {
    struct plim_cuda_flat_operand x[2];     /* queries and keys, (batch, length, heads, size) */
    struct plim_cuda_flat_operand cos, sin; /* (1 or batch, length, width) */
    struct plim_divider units, heads, rows; /* units (the pairs of one thread) of a head; heads of both; rows of cos */
    int64_t of_x[2];                        /* the heads of queries and of keys */
    int64_t work;                           /* units of all heads of all rows */
    int64_t size, pairs, width;
    float direction; /* the sign of sin */
    uint32_t vectors; /* a unit is PLIM_ROTATE_VECTOR pairs, aligned in all operands; otherwise one pair */
};

#endif
