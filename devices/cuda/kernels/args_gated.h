/* Arguments of the kernels of gated MLPs (gated.cu): one thread per PLIM_GATED_VECTOR elements, or per element. */
#ifndef PLIM_DEVICES_CUDA_KERNELS_ARGS_GATED_H
#define PLIM_DEVICES_CUDA_KERNELS_ARGS_GATED_H

#include "args_rows.h"

enum { PLIM_GATED_THREADS = 256, PLIM_GATED_VECTOR = 8 };

/* gated, gated_backward */
struct plim_gated_args {
    struct plim_cuda_flat_operand out;       /* backward: may be absent */
    struct plim_cuda_flat_operand gate, up;
    struct plim_cuda_flat_operand dout, dgate, dup; /* backward */
    int64_t elements;
    uint32_t function; /* enum plim_unary */
    uint32_t vectors;  /* all operands start at multiples of 16 bytes */
};

#endif
