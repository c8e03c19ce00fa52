/* Arguments of REDUCE and CUMSUM. */
#ifndef PLIM_DEVICES_CUDA_KERNELS_ARGS_REDUCE_H
#define PLIM_DEVICES_CUDA_KERNELS_ARGS_REDUCE_H

#include "args_elementwise.h"
#include <stdbool.h>

enum { PLIM_REDUCE_THREADS = 256 };

/* Dimensions from fastest to slowest in the input, strides in bytes. Output element i is the reduction of the
 * `folded_elements` elements at position i of the kept dimensions. If `chunks` is above 1, each output is reduced in
 * that many chunks, and the kernel writes partial results. */
struct plim_reduce_args {
    uint64_t in, out;
    struct plim_divider kept[PLIM_MAX_DIMS], folded[PLIM_MAX_DIMS];
    int64_t kept_stride[PLIM_MAX_DIMS], folded_stride[PLIM_MAX_DIMS], out_stride[PLIM_MAX_DIMS];
    uint64_t outputs, folded_elements;
    struct plim_divider chunks; /* rows kernel: chunks of an output */
    struct plim_divider tiles;  /* columns kernel: tiles of `width` threads each, side by side */
    uint64_t chunk_elements;    /* rows, vector: a multiple of PLIM_WALK_VECTOR */
    double alpha;               /* multiplies the final result only */
    uint32_t lanes;             /* rows: threads per output: up to 32, or the whole block */
    uint32_t width;             /* columns: threads side by side, a power of two */
    uint8_t kept_dims, folded_dims;
    uint8_t in_dtype, out_dtype;
    uint8_t fold;  /* enum plim_binary: ADD, MUL, MAX, MIN, AND, OR */
    bool square;   /* elements are squared first */
    bool is_final; /* otherwise `out` receives partial results: fp32 or int64; (outputs, chunks) of rows, (chunks,
                    * outputs) of columns */
    bool root;     /* take the square root of the final result */
};

/* Running sums along the walk's dimension 0. */
enum { PLIM_SCAN_THREADS = 256, PLIM_SCAN_ELEMENTS = 4 /* per thread */ };

struct plim_scan_args {
    struct plim_walk walk;
    uint64_t rows;
};

#endif
