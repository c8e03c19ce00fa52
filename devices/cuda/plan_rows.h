/* Describes operands for the row kernels (kernels/args_rows.h), and plans their launches. */
#ifndef PLIM_DEVICES_CUDA_PLAN_ROWS_H
#define PLIM_DEVICES_CUDA_PLAN_ROWS_H

#include "kernels/args_rows.h"
#include "planner.h"

/* A contiguous array of any type; all zero for NULL. */
struct plim_cuda_flat_operand plim_cuda_plan_flat(const struct plim_array *a);

/* One operand to describe: an array, and where to. */
struct plim_row_operand_of {
    const struct plim_array *array;
    struct plim_cuda_row_operand *to;
};

/* Describes `count` operands of one shape; dimensions are merged where all strides allow it.
 * PLIM_UNSUPPORTED: not of a floating type. PLIM_INVALID: shapes differ. */
enum plim_status plim_cuda_plan_rows(struct plim_cuda_rows *rows, int count,
                                     const struct plim_row_operand_of *operands) PLIM_MUST_CHECK;

/* The columns also index the flat array `a` (NULL: absent): vectors must then begin at column 0. */
void plim_cuda_plan_rows_beside(struct plim_cuda_rows *rows,
                                const struct plim_cuda_row_operand *operand,
                                const struct plim_array *a);

/* A team of threads for each row. No launch where there are no elements. */
enum plim_status plim_cuda_plan_rows_launch(const struct plim_cuda_plan *plan, const char *kernel,
                                            const struct plim_cuda_rows *rows, const void *args,
                                            size_t args_bytes) PLIM_MUST_CHECK;

/* The number of tiles of `tile` rows over all heads of an attention operand (batch, heads, length, size); no
 * tile has rows of two heads. */
int64_t plim_cuda_plan_tiles(const struct plim_array *rows, int tile);

#endif
