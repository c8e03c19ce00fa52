/* Arguments of GATHER and SCATTER (indexed.cu). */
#ifndef PLIM_DEVICES_CUDA_KERNELS_ARGS_INDEXED_H
#define PLIM_DEVICES_CUDA_KERNELS_ARGS_INDEXED_H

#include "args_rows.h"
#include "divider.h"

enum { PLIM_INDEXED_THREADS = 256 };

/* Contiguous: `rows` have the shape of the indices, those of `named` are `room` long. */
struct plim_by_index_args {
    struct plim_cuda_flat_operand rows, named, indices;
    uint64_t elements, room;
    struct plim_divider width; /* of a row of `rows` */
};

#endif
