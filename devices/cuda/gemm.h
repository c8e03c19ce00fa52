/* A matmul operation in cuBLASLt's terms, whose matrices are column-major with a leading dimension: D = alpha A B +
 * beta C, in batches with one stride. A row-major result is computed as its transpose, D^T = B^T A^T, so `a` and `b`
 * here may be the operation's b and a. In integer products A and B are signed bytes (stored as PLIM_U8), D is int32 and
 * there is no C.
 *
 * Pure arithmetic on shapes and strides: no CUDA, no memory is accessed. */
#ifndef PLIM_DEVICES_CUDA_GEMM_H
#define PLIM_DEVICES_CUDA_GEMM_H

#include "autotune/base/status.h"
#include "devices/op.h"

enum { PLIM_GEMM_A, PLIM_GEMM_B, PLIM_GEMM_C, PLIM_GEMM_D, PLIM_GEMM_OPERANDS };
enum { PLIM_GEMM_MAX_BATCH_DIMS = PLIM_MAX_DIMS - 2 };

/* A matrix in memory. With `transposed` the product uses its transpose (A and B only). */
struct plim_gemm_matrix {
    uint64_t data;
    int64_t rows, columns, ld; /* elements */
    int64_t batch_stride;      /* elements; 0: the same matrix for the whole batch */
    bool transposed;
};

enum plim_gemm_addend {
    PLIM_GEMM_NO_C,
    PLIM_GEMM_C_MATRIX,
    PLIM_GEMM_C_BIAS,  /* a row, added to every row of the result by the epilogue */
    PLIM_GEMM_C_COPIED /* cuBLASLt cannot read its layout: copy it to the result first, C = D */
};

struct plim_gemm {
    int64_t k;
    struct plim_gemm_matrix matrix[PLIM_GEMM_OPERANDS]; /* of the first run */
    int64_t batch;
    enum plim_gemm_addend addend;
    uint8_t in_dtype, out_dtype; /* enum plim_dtype: of A and B; of C and D */
    /* Batch dimensions that cannot be expressed by the single batch stride: one run for each index, offsets in
     * elements. */
    int runs_dims;
    int64_t runs_extent[PLIM_GEMM_MAX_BATCH_DIMS];
    int64_t runs_stride[PLIM_GEMM_OPERANDS][PLIM_GEMM_MAX_BATCH_DIMS];
};

/* PLIM_INVALID if the shapes do not match; PLIM_UNSUPPORTED if a matrix has no dimension of stride 1, or the types
 * cannot be combined; the reason is in `err`. Requires a result that is not empty, and k > 0. */
enum plim_status plim_gemm_describe(const struct plim_op *op, struct plim_gemm *out,
                                    struct plim_error *err) PLIM_MUST_CHECK;

int64_t plim_gemm_runs(const struct plim_gemm *gemm);

/* Returns the address of an operand in run number `run`. */
uint64_t plim_gemm_address(const struct plim_gemm *gemm, int operand, int64_t run);

#endif
