/* Arguments of NONZERO and MASKED_SCATTER (marked.cu). Each block has a share of the elements in row-major order,
 * and counts the marked elements before its share. */
#ifndef PLIM_DEVICES_CUDA_KERNELS_ARGS_MARKED_H
#define PLIM_DEVICES_CUDA_KERNELS_ARGS_MARKED_H

#include "args_elementwise.h"
#include "args_reduce.h"

enum { PLIM_MARKED_THREADS = PLIM_SCAN_THREADS };

/* The walk: a. */
struct plim_nonzero_args {
    struct plim_walk walk;
    uint64_t places;                           /* int64 */
    int64_t step, column_step;                 /* bytes from place to place, and from coordinate to coordinate */
    uint64_t room;                             /* the number of places that are written */
    struct plim_divider extent[PLIM_MAX_DIMS]; /* of a, the last dimension first */
    uint32_t columns;                          /* coordinates of a place; 0: a place is one number */
};

/* The walk: out, a, mask. */
struct plim_masked_scatter_args {
    struct plim_walk walk;
    uint64_t source; /* contiguous, in the type of a */
    uint64_t count;  /* of its elements */
};

#endif
