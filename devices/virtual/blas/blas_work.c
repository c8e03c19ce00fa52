/* cuBLAS: products with their operands, and routines that return a value to the host. All others are listed in
 * names/cublas.txt. */
#include "blas.h"
#include "devices/virtual/steps/token.h"
#include "devices/virtual/work/launches.h"
#include <string.h>

/* Unused parameters keep their names so that signatures are readable. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

/* --- matrix products: C = A B ----------------------------------------------------------------- */

static int product(const char *name, const struct blas_handle *handle, int forms,
                   const struct blas_product *p, const void *a, const void *b, const void *c)
{
    if (!handle) return BLAS_NOT_INITIALIZED;
    if (p->m < 0 || p->n < 0 || p->k < 0) return BLAS_INVALID_VALUE;
    if (!p->m || !p->n) return BLAS_OK;
    const void *operands[] = {a, b, c};
    uint64_t sizes = plim_token_more(plim_token_more((uint64_t)p->m, (uint64_t)p->n),
                                           (uint64_t)p->k);
    const struct plim_cost cost = plim_blas_cost(p);
    struct plim_work work = {.stream = handle->common.stream, .what = name, .form = (uint64_t)forms,
                             .sizes = sizes, .operands = operands, .read = 2, .written = 1,
                             .cost = &cost};
    return plim_library_launch(&work) ? BLAS_EXECUTION_FAILED : BLAS_OK;
}

/* The parameters that all products start with, up to A. */
#define HEAD(integer)                                                                              \
    const struct blas_handle *handle, int a_form, int b_form, integer m, integer n, integer k,     \
        const void *alpha, const void *a

#define PRODUCT(name, type, compute, batch)                                                        \
    {                                                                                              \
        bool tf32 = compute == BLAS_COMPUTE_TF32 || (handle && handle->math == BLAS_TF32_MATH);    \
        const struct blas_product p = {m, n, k, batch, a_leading, b_leading, type, tf32};          \
        return product(name, handle, a_form * 4 + b_form, &p, a, b, c);                            \
    }

/* The cudaDataType of a routine without type arguments: by the letter after "cublas". */
#define LETTER(name) (#name[6] == 'H' ? BLAS_FP16 : BLAS_FP32)

#define PLAIN(name, suffix, integer)                                                               \
    ANSWER int name##suffix(HEAD(integer), integer a_leading, const void *b, integer b_leading,    \
                            const void *beta, void *c, integer c_leading)                          \
    PRODUCT(#name, LETTER(name), 0, 1)

#define STRIDED(name, suffix, integer)                                                             \
    ANSWER int name##suffix(HEAD(integer), integer a_leading, long long a_stride, const void *b,   \
                            integer b_leading, long long b_stride, const void *beta, void *c,      \
                            integer c_leading, long long c_stride, integer batch)                  \
    PRODUCT(#name, LETTER(name), 0, batch)

#define BATCHED(name, suffix, integer)                                                             \
    ANSWER int name##suffix(HEAD(integer), integer a_leading, const void *b, integer b_leading,    \
                            const void *beta, void *c, integer c_leading, integer batch)           \
    PRODUCT(#name, LETTER(name), 0, batch)

/* SgemmEx and CgemmEx; GemmEx has two additional arguments. */
#define TYPED(name, suffix, integer)                                                               \
    ANSWER int name##suffix(HEAD(integer), int a_type, integer a_leading, const void *b,           \
                            int b_type, integer b_leading, const void *beta, void *c, int c_type,  \
                            integer c_leading)                                                     \
    PRODUCT(#name, a_type, 0, 1)

#define TYPED_STRIDED(name, suffix, integer)                                                       \
    ANSWER int name##suffix(HEAD(integer), int a_type, integer a_leading, long long a_stride,      \
                            const void *b, int b_type, integer b_leading, long long b_stride,      \
                            const void *beta, void *c, int c_type, integer c_leading,              \
                            long long c_stride, integer batch, int compute, int algorithm)         \
    PRODUCT(#name, a_type, compute, batch)

#define BOTH(form, name) form(name, , int) form(name, _64, int64_t)

BOTH(PLAIN, cublasSgemm_v2)
BOTH(PLAIN, cublasDgemm_v2)
BOTH(PLAIN, cublasCgemm_v2)
BOTH(PLAIN, cublasZgemm_v2)
BOTH(PLAIN, cublasHgemm)
BOTH(PLAIN, cublasCgemm3m)
BOTH(PLAIN, cublasZgemm3m)
BOTH(STRIDED, cublasSgemmStridedBatched)
BOTH(STRIDED, cublasDgemmStridedBatched)
BOTH(STRIDED, cublasCgemmStridedBatched)
BOTH(STRIDED, cublasZgemmStridedBatched)
BOTH(STRIDED, cublasHgemmStridedBatched)
BOTH(STRIDED, cublasCgemm3mStridedBatched)
BOTH(BATCHED, cublasSgemmBatched)
BOTH(BATCHED, cublasDgemmBatched)
BOTH(BATCHED, cublasCgemmBatched)
BOTH(BATCHED, cublasZgemmBatched)
BOTH(BATCHED, cublasHgemmBatched)
BOTH(TYPED, cublasSgemmEx)
BOTH(TYPED, cublasCgemmEx)
BOTH(TYPED, cublasGemmEx)
BOTH(TYPED_STRIDED, cublasGemmStridedBatchedEx)

/* As TYPED, followed by a batch size, a type and an algorithm. */
BOTH(TYPED, cublasGemmBatchedEx)

/* --- routines that return a value to the host ------------------------------------------------- */

/* Returns the value that operands full of zeros give. */
static int value(const char *name, const struct blas_handle *handle, void *result,
                 const void *given, size_t bytes)
{
    int status = plim_compute(PLIM_CUBLAS, name, handle);
    if (status || handle->pointer_mode == BLAS_POINTER_DEVICE) return status;
    if (!result) return BLAS_INVALID_VALUE;
    memcpy(result, given, bytes);
    return BLAS_OK;
}

static const unsigned char zeros[16];

#define DOT(name, suffix, integer, bytes)                                                          \
    ANSWER int name##suffix(const struct blas_handle *handle, integer n, const void *x,            \
                            integer x_step, const void *y, integer y_step, void *result)           \
    {                                                                                              \
        return value(#name, handle, result, zeros, bytes);                                         \
    }

#define NORM(name, suffix, integer, bytes)                                                         \
    ANSWER int name##suffix(const struct blas_handle *handle, integer n, const void *x,            \
                            integer x_step, void *result)                                          \
    {                                                                                              \
        return value(#name, handle, result, zeros, bytes);                                         \
    }

/* The index of the first of equal elements, counted from 1; 0 if there are none. */
#define EXTREME(name, suffix, integer, bytes)                                                      \
    ANSWER int name##suffix(const struct blas_handle *handle, integer n, const void *x,            \
                            integer x_step, integer *result)                                       \
    {                                                                                              \
        integer first = n > 0 && x_step > 0;                                                       \
        return value(#name, handle, result, &first, sizeof(first));                                \
    }

#define SIZED(form, name, bytes) form(name, , int, bytes) form(name, _64, int64_t, bytes)

SIZED(DOT, cublasSdot_v2, 4)
SIZED(DOT, cublasDdot_v2, 8)
SIZED(DOT, cublasCdotu_v2, 8)
SIZED(DOT, cublasCdotc_v2, 8)
SIZED(DOT, cublasZdotu_v2, 16)
SIZED(DOT, cublasZdotc_v2, 16)
SIZED(NORM, cublasSnrm2_v2, 4)
SIZED(NORM, cublasDnrm2_v2, 8)
SIZED(NORM, cublasScnrm2_v2, 4)
SIZED(NORM, cublasDznrm2_v2, 8)
SIZED(NORM, cublasSasum_v2, 4)
SIZED(NORM, cublasDasum_v2, 8)
SIZED(NORM, cublasScasum_v2, 4)
SIZED(NORM, cublasDzasum_v2, 8)
SIZED(EXTREME, cublasIsamax_v2, 0)
SIZED(EXTREME, cublasIdamax_v2, 0)
SIZED(EXTREME, cublasIcamax_v2, 0)
SIZED(EXTREME, cublasIzamax_v2, 0)
SIZED(EXTREME, cublasIsamin_v2, 0)
SIZED(EXTREME, cublasIdamin_v2, 0)
SIZED(EXTREME, cublasIcamin_v2, 0)
SIZED(EXTREME, cublasIzamin_v2, 0)

/* cudaDataType: 0 to 7 are R and C of 32F, 64F, 16F and 8I; 14 and 15 are 16BF. */
static size_t type_bytes(int type)
{
    static const unsigned char bytes[] = {4, 8, 2, 1, 8, 16, 4, 2, 1, 2, 4, 8, 4, 8, 2, 4};
    return type >= 0 && type < (int)sizeof(bytes) ? bytes[type] : 0;
}

static int typed_value(const char *name, const struct blas_handle *handle, void *result, int type)
{
    size_t bytes = type_bytes(type);
    return bytes ? value(name, handle, result, zeros, bytes) : BLAS_NOT_SUPPORTED;
}

#define DOT_EX(name, suffix, integer)                                                              \
    ANSWER int name##suffix(const struct blas_handle *handle, integer n, const void *x,            \
                            int x_type, integer x_step, const void *y, int y_type,                 \
                            integer y_step, void *result, int type, int compute)                   \
    {                                                                                              \
        return typed_value(#name, handle, result, type);                                           \
    }

#define NORM_EX(name, suffix, integer)                                                             \
    ANSWER int name##suffix(const struct blas_handle *handle, integer n, const void *x,            \
                            int x_type, integer x_step, void *result, int type, int compute)       \
    {                                                                                              \
        return typed_value(#name, handle, result, type);                                           \
    }

#define EXTREME_EX(name, suffix, integer)                                                          \
    ANSWER int name##suffix(const struct blas_handle *handle, integer n, const void *x,            \
                            int x_type, integer x_step, integer *result)                           \
    {                                                                                              \
        integer first = n > 0 && x_step > 0;                                                       \
        return value(#name, handle, result, &first, sizeof(first));                                \
    }

BOTH(DOT_EX, cublasDotEx)
BOTH(DOT_EX, cublasDotcEx)
BOTH(NORM_EX, cublasNrm2Ex)
BOTH(NORM_EX, cublasAsumEx)
BOTH(EXTREME_EX, cublasIamaxEx)
BOTH(EXTREME_EX, cublasIaminEx)

/* Rotations are computed from scalars; if these are on the host, the result would have to be correct. */
#define ROTATION(name)                                                                             \
    ANSWER int name(const struct blas_handle *handle)                                              \
    {                                                                                              \
        if (handle && handle->pointer_mode == BLAS_POINTER_HOST)                                   \
            return plim_unsupported(PLIM_CUBLAS, #name " with host pointers");                     \
        return plim_compute(PLIM_CUBLAS, #name, handle);                                           \
    }

ROTATION(cublasSrotg_v2)
ROTATION(cublasDrotg_v2)
ROTATION(cublasCrotg_v2)
ROTATION(cublasZrotg_v2)
ROTATION(cublasSrotmg_v2)
ROTATION(cublasDrotmg_v2)
ROTATION(cublasRotgEx)
ROTATION(cublasRotmgEx)

/* --- batched factorisations: `info` is on the host ---------------------- */

static int factored(const char *name, const struct blas_handle *handle, int *info)
{
    int status = plim_compute(PLIM_CUBLAS, name, handle);
    if (!status && info) *info = 0;
    return status;
}

#define FACTORED(letter)                                                                           \
    ANSWER int cublas##letter##geqrfBatched(const struct blas_handle *handle, int m, int n,        \
                                            void *a, int a_leading, void *tau, int *info,          \
                                            int batch)                                             \
    {                                                                                              \
        return factored("cublas" #letter "geqrfBatched", handle, info);                            \
    }                                                                                              \
    ANSWER int cublas##letter##getrsBatched(const struct blas_handle *handle, int form, int n,     \
                                            int columns, const void *a, int a_leading,             \
                                            const int *pivots, void *b, int b_leading, int *info,  \
                                            int batch)                                             \
    {                                                                                              \
        return factored("cublas" #letter "getrsBatched", handle, info);                            \
    }                                                                                              \
    ANSWER int cublas##letter##gelsBatched(const struct blas_handle *handle, int form, int m,      \
                                           int n, int columns, void *a, int a_leading, void *c,    \
                                           int c_leading, int *info, int *infos, int batch)        \
    {                                                                                              \
        return factored("cublas" #letter "gelsBatched", handle, info);                             \
    }

FACTORED(S)
FACTORED(D)
FACTORED(C)
FACTORED(Z)
