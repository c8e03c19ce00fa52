/* Describes operands for the row kernels (kernels/args_rows.h), and plans their launches. */
#ifndef PLIM_DEVICES_CUDA_PLAN_ROWS_H
#define PLIM_DEVICES_CUDA_PLAN_ROWS_H

#include "kernels/args_rows.h"
#include "planner.h"

/* Describes a contiguous array of any type; all zero for NULL. */
struct plim_cuda_flat_operand plim_cuda_plan_flat(const struct plim_array *a);

/* An operand to describe: an array, and the description. */
struct plim_row_operand_of {
    const struct plim_array *array;
    struct plim_cuda_row_operand *to;
};

/* Describes `count` operands of one shape; dimensions are merged if all strides allow it. PLIM_UNSUPPORTED: not a
 * floating-point type. PLIM_INVALID: shapes differ. */
enum plim_status plim_cuda_plan_rows(struct plim_cuda_rows *rows, int count,
                                     const struct plim_row_operand_of *operands) PLIM_MUST_CHECK;

/* The columns also index the flat array `a` (NULL: absent): vectors must then start at column 0. */
void plim_cuda_plan_rows_beside(struct plim_cuda_rows *rows,
                                const struct plim_cuda_row_operand *operand,
                                const struct plim_array *a);

/* Launches a team of threads for each row. No launch if there are no elements. */
enum plim_status plim_cuda_plan_rows_launch(const struct plim_cuda_plan *plan, const char *kernel,
                                            const struct plim_cuda_rows *rows, const void *args,
                                            size_t args_bytes) PLIM_MUST_CHECK;

/* Returns the number of tiles of `tile` rows over all heads of an attention operand (batch, heads, length, size); no
 * tile has rows of two heads. */
int64_t plim_cuda_plan_tiles(const struct plim_array *rows, int tile);

#endif
