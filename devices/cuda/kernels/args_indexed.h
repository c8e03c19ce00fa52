/* Arguments of GATHER, SCATTER, TAKE_ROWS and PUT_ROWS (indexed.cu). */
#ifndef PLIM_DEVICES_CUDA_KERNELS_ARGS_INDEXED_H
#define PLIM_DEVICES_CUDA_KERNELS_ARGS_INDEXED_H

#include "args_elementwise.h"
#include "args_rows.h"

enum { PLIM_INDEXED_THREADS = 256 };

/* Contiguous: `rows` have the shape of the indices, those of `named` are `room` long. */
struct plim_by_index_args {
    struct plim_cuda_flat_operand rows, named, indices;
    uint64_t elements, room;
    struct plim_divider width; /* of a row of `rows` */
};

/* The walk: rows (n, ..), the first row of `named` for each of them, indices. Strides in bytes. */
struct plim_rows_by_index_args {
    struct plim_walk walk;
    uint64_t count; /* rows of `named` */
    struct plim_divider extent[PLIM_MAX_DIMS]; /* of the dimensions that count them, the last first */
    int64_t step[PLIM_MAX_DIMS];
    uint32_t leading; /* such dimensions */
};

#endif
