/* The handles and constants of cuBLAS, for the files that implement cuBLAS and cuBLASLt on the virtual GPU. Sources:
 * cublas_api.h of CUDA 11.8 to 13.0, which agree. */
#ifndef PLIM_DEVICES_VIRTUAL_BLAS_BLAS_H
#define PLIM_DEVICES_VIRTUAL_BLAS_BLAS_H

#include "devices/cost.h"
#include "devices/virtual/process/unsupported.h"

/* cublasStatus_t */
enum blas_status {
    BLAS_OK = 0,
    BLAS_NOT_INITIALIZED = 1,
    BLAS_ALLOC_FAILED = 3,
    BLAS_INVALID_VALUE = 7,
    BLAS_ARCH_MISMATCH = 8,
    BLAS_MAPPING_ERROR = 11,
    BLAS_EXECUTION_FAILED = 13,
    BLAS_INTERNAL_ERROR = 14,
    BLAS_NOT_SUPPORTED = 15,
};

/* cublasPointerMode_t: where scalars and results are stored */
enum blas_pointer_mode { BLAS_POINTER_HOST = 0, BLAS_POINTER_DEVICE = 1 };

/* cublasMath_t, cublasComputeType_t and cudaDataType values that affect the speed of a product */
enum { BLAS_TF32_MATH = 3, BLAS_COMPUTE_TF32 = 77 };
enum blas_type { BLAS_FP32 = 0, BLAS_FP16 = 2, BLAS_BF16 = 14 };

struct blas_handle {
    struct plim_handle common;
    int math, pointer_mode, atomics, multiprocessors; /* multiprocessors: as requested; 0: all */
    int emulation, special_values, mantissa_control, mantissa_bits, mantissa_offset;
    int *mantissa_count;
};

const char *plim_blas_status_name(int status);
const char *plim_blas_status_text(int status);

/* A batch of matrix products as the program describes it: column-major, m rows and n columns. */
struct blas_product {
    int64_t m, n, k, batch, a_leading, b_leading; /* leading dimensions in elements */
    int type;                                     /* cudaDataType of the factors */
    bool tf32;                                    /* fp32 factors may use TF32 */
};
struct plim_cost plim_blas_cost(const struct blas_product *product);

/* Returns the blas_status for a CUDA error that occurred while a handle was created. */
int plim_blas_no_handle(int error);

/* plim_version_property() of a cuBLAS library ("libcublas.so"). Returns BLAS_OK or BLAS_INVALID_VALUE. */
int plim_blas_property(const char *library, const char *function, int property, int *value);

#endif
