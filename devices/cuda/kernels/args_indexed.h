/* Arguments of GATHER, SCATTER, ADD_BY_INDEX, TAKE_ROWS and PUT_ROWS (indexed.cu). */
#ifndef PLIM_DEVICES_CUDA_KERNELS_ARGS_INDEXED_H
#define PLIM_DEVICES_CUDA_KERNELS_ARGS_INDEXED_H

#include "args_elementwise.h"
#include "args_rows.h"

enum { PLIM_INDEXED_THREADS = 256, PLIM_INDEXED_WARP = 32, PLIM_INDEXED_DIMS = 3 };

/* All contiguous: `rows` has the shape of the indices, a row of `named` has `room` elements. The indices repeat
 * after `period` of them. */
struct plim_by_index_args {
    struct plim_cuda_flat_operand rows, named, indices;
    uint64_t elements, room;
    struct plim_divider width, period; /* of a row of `rows` */
};

/* The same, but `rows` may have strides (`step`, in elements); `count` rows share the first index. */
struct plim_add_by_index_args {
    struct plim_by_index_args by;
    struct plim_divider count;
    int64_t step[PLIM_INDEXED_DIMS];
};

/* The walk: rows (n, ..), the first row of `named` repeated for each of them, indices. Strides in bytes. */
struct plim_rows_by_index_args {
    struct plim_walk walk;
    uint64_t count; /* rows of `named` */
    struct plim_divider extent[PLIM_MAX_DIMS]; /* of the dimensions that count these rows, the last first */
    int64_t step[PLIM_MAX_DIMS];
    uint32_t leading; /* the number of these dimensions */
};

#endif
