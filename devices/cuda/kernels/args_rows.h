/* Arguments of kernels that process rows: norms and softmax. The operands have one shape; a row is its last dimension,
 * with `columns` elements, and the dimensions before it count the rows. */
#ifndef PLIM_DEVICES_CUDA_KERNELS_ARGS_ROWS_H
#define PLIM_DEVICES_CUDA_KERNELS_ARGS_ROWS_H

#include <stdint.h>

enum { PLIM_ROWS_MAX_OUTER = 5 }; /* PLIM_MAX_DIMS - 1 */

/* The rows of one operand start `step` elements apart along every outer dimension. */
struct plim_cuda_row_operand {
    uint64_t data;
    int64_t step[PLIM_ROWS_MAX_OUTER], column_step;
    uint32_t dtype, unused;
};

/* A contiguous array, such as a weight or a mean. `data` 0: absent. */
struct plim_cuda_flat_operand {
    uint64_t data;
    uint32_t dtype, unused;
};

struct plim_cuda_rows {
    int64_t count, columns;
    int64_t size[PLIM_ROWS_MAX_OUTER]; /* extents of the outer dimensions, row-major */
    uint32_t outer;                    /* their number, at least 1 */
    uint32_t vectors; /* columns are adjacent, and in all operands the same columns (those whose offset is a multiple of
                       * 8 elements) start at a multiple of 16 bytes */
};

#endif
