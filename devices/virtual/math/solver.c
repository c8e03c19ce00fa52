/* cuSOLVER: factorisations, eigenvalues and singular values of dense matrices. They always succeed, returning 0 in
 * `info`: learned matrices are assumed to be regular. Work areas of Cholesky, LU and QR factorisations, eigenvalues and
 * singular values follow what cuSOLVER 12.0 reported on an H200 for square matrices of 33 to 1500 rows
 * (tests/gpu/measured/h200-libraries.jsonl); others are estimated as the size of the matrix and 32 numbers per row and
 * column. */
#include "devices/virtual/memory/heap.h"
#include "devices/virtual/memory/shadow.h"
#include "math_library.h"
#include <stdlib.h>

/* Unused parameters keep their names so that signatures are readable. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

enum { BLOCK = 32, WIDEST = 16 }; /* columns processed at once; bytes of a complex double */

typedef const struct plim_handle *handle_type;

/* --- handles ---------------------------------------------------------------------------------- */

PLIM_MATH_HANDLE(cusolverDn, "cuSOLVER's work areas are estimates")
PLIM_MATH_PROPERTY(cusolver)
ANSWER int cusolverGetVersion(int *version) { return cusolver_version(version); }

/* Objects that hold options, which have no effect. */
#define OPTIONS(create, destroy)                                                                   \
    ANSWER int create(void **out)                                                                  \
    {                                                                                              \
        *out = calloc(1, sizeof(int64_t));                                                         \
        return *out ? MATH_OK : MATH_ALLOC_FAILED;                                                           \
    }                                                                                              \
    ANSWER int destroy(void *options)                                                              \
    {                                                                                              \
        free(options);                                                                             \
        return MATH_OK;                                                                                 \
    }

OPTIONS(cusolverDnCreateParams, cusolverDnDestroyParams)
OPTIONS(cusolverDnCreateSyevjInfo, cusolverDnDestroySyevjInfo)
OPTIONS(cusolverDnCreateGesvdjInfo, cusolverDnDestroyGesvdjInfo)

ANSWER int cusolverDnXgesvdjSetTolerance(void *options, double tolerance) { return MATH_OK; }
ANSWER int cusolverDnXgesvdjSetMaxSweeps(void *options, int most) { return MATH_OK; }
ANSWER int cusolverDnXgesvdjSetSortEig(void *options, int sorts) { return MATH_OK; }
ANSWER int cusolverDnXsyevjSetTolerance(void *options, double tolerance) { return MATH_OK; }
ANSWER int cusolverDnXsyevjSetMaxSweeps(void *options, int most) { return MATH_OK; }
ANSWER int cusolverDnXsyevjSetSortEig(void *options, int sorts) { return MATH_OK; }

/* --- estimated work areas ----------------------------------------------------------------------- */

/* Stores the estimated size in numbers. */
static int room(int64_t rows, int64_t columns, int64_t batch, int *numbers)
{
    int64_t count = (rows * columns + BLOCK * (rows + columns)) * batch;
    if (rows < 0 || columns < 0 || batch < 0 || !numbers) return MATH_INVALID_VALUE;
    *numbers = count < INT32_MAX ? (int)count : INT32_MAX;
    return MATH_OK;
}

/* Returns the size of a cudaDataType: R_32F, R_64F, R_16F, R_8I, C_32F, C_64F. */
static size_t width_of(int type)
{
    static const unsigned char widths[] = {4, 8, 2, 1, 8, WIDEST};
    return type >= 0 && (size_t)type < sizeof(widths) ? widths[type] : WIDEST;
}

/* Stores the estimated sizes in bytes, on the GPU and on the host. */
static int room_in_bytes(int64_t rows, int64_t columns, int64_t batch, int type, size_t *device, size_t *host)
{
    int numbers, failed = room(rows, columns, batch, &numbers);
    if (failed || !device || !host) return MATH_INVALID_VALUE;
    *device = (size_t)numbers * width_of(type);
    *host = 0;
    return MATH_OK;
}

/* --- measured work areas ------------------------------------------------------------------------ */

static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

/* Returns the size of an element, by the letter after "cusolverDn". */
static size_t width_of_name(const char *name)
{
    switch (name[sizeof("cusolverDn") - 1]) {
    case 'S': return 4;
    case 'Z': return WIDEST;
    default: return 8;
    }
}

/* In bytes, equal for all types. */
static size_t cholesky_bytes(int64_t n)
{
    int64_t blocks = (n + BLOCK - 1) / BLOCK;
    return (size_t)(128 + (blocks * blocks * 4 + 31) / 32 * 32);
}

static int64_t lu_bytes(int64_t n) { return n <= 64 ? 1280 : 2096 + n * 12704 / 1000; }

/* In numbers, plus 128 bytes. */
static int64_t qr_numbers(int64_t n) { return 3 * 256 * 1024 + larger(0, 2 * n - 512) * 512; }

static int64_t q_numbers(int64_t n) { return n < 128 ? 30976 + 96 * n : 16640 + 384 * n; }

static int64_t times_q_numbers(int64_t n) { return 2 * n * n + 800 * n + 55000; }

static int64_t eigen_numbers(int64_t n) { return 4 * n * n + (n < 200 ? 68000 + 670 * n : 215000); }

/* Jacobi's method, which PyTorch uses for fp32 matrices of up to 512 rows. */
static int64_t jacobi_numbers(int64_t n) { return n * n + 36 * n + 1900; }

static int64_t singular_numbers(int64_t n) { return 2 * n * n + 72 * n; }

static int return_number(int64_t numbers, int *out)
{
    if (numbers < 0 || !out) return MATH_INVALID_VALUE;
    *out = numbers < INT32_MAX ? (int)numbers : INT32_MAX;
    return MATH_OK;
}

static int return_bytes(int64_t n, size_t bytes, size_t *device, size_t *host)
{
    if (n < 0 || !device || !host) return MATH_INVALID_VALUE;
    *device = bytes;
    *host = 0;
    return MATH_OK;
}

/* Launches a function. `changed`: the operands that it writes, NULL for none. Sets `count` elements of `info` to 0. */
static int work(const char *name, handle_type handle, const void *read, const void *const changed[4], int *info,
                int64_t count)
{
    const void *operands[5] = {read};
    size_t written = 0;
    const int zero = 0;
    if (!handle) return MATH_NOT_INITIALIZED;
    for (int i = 0; i < 4; i++)
        if (changed[i]) operands[1 + written++] = changed[i];
    if (plim_math_launch(handle->stream, name, operands, 1 + written, written)) return MATH_EXECUTION_FAILED;
    if (info && plim_heap_is_device((uintptr_t)info) && count > 0)
        plim_shadow_fill((uintptr_t)info, &zero, sizeof(zero), PLIM_KNOWN | PLIM_ASSUMPTION_FINITE,
                         (size_t)count * sizeof(zero));
    return MATH_OK;
}

#define WORK(name, read, info, count, ...)                                                         \
    {                                                                                              \
        return work(#name, handle, read, (const void *const[4]){__VA_ARGS__}, info, count);        \
    }
#define ROOM(rows, columns, batch)                                                                 \
    {                                                                                              \
        return room(rows, columns, batch, numbers);                                                \
    }
/* Instantiate a form for float, double and the complex types. */
#define REAL(form, name) form(cusolverDnS##name) form(cusolverDnD##name)
#define COMPLEX(form, name) form(cusolverDnC##name) form(cusolverDnZ##name)
#define ALL(form, name) REAL(form, name) COMPLEX(form, name)

/* --- linear equations --------------------------------------------------------------------------- */

#define POTRF(name)                                                                                \
    ANSWER int name##_bufferSize(handle_type handle, int half, int n, void *a, int leading,        \
                                 int *numbers)                                                     \
    {                                                                                              \
        return return_number(n < 0 ? n : (int64_t)(cholesky_bytes(n) / width_of_name(#name)), numbers);     \
    }                                                                                              \
    ANSWER int name(handle_type handle, int half, int n, void *a, int leading, void *area,         \
                    int numbers, int *info) WORK(name, a, info, 1, a)                              \
    ANSWER int name##Batched(handle_type handle, int half, int n, void **a, int leading,           \
                             int *info, int batch) WORK(name##Batched, a, info, batch, NULL)
ALL(POTRF, potrf)

#define POTRS(name)                                                                                \
    ANSWER int name(handle_type handle, int half, int n, int columns, const void *a, int leading,  \
                    void *b, int b_leading, int *info) WORK(name, a, info, 1, b)                   \
    ANSWER int name##Batched(handle_type handle, int half, int n, int columns, void **a,           \
                             int leading, void **b, int b_leading, int *info, int batch)           \
        WORK(name##Batched, a, info, 1, NULL)
ALL(POTRS, potrs)

#define GETRF(name)                                                                                \
    ANSWER int name##_bufferSize(handle_type handle, int m, int n, void *a, int leading,           \
                                 int *numbers)                                                     \
    {                                                                                              \
        return return_number(n < 0 ? n : lu_bytes(n) / (int64_t)width_of_name(#name), numbers);             \
    }                                                                                              \
    ANSWER int name(handle_type handle, int m, int n, void *a, int leading, void *area,            \
                    int *pivots, int *info) WORK(name, a, info, 1, a, pivots)
ALL(GETRF, getrf)

#define GETRS(name)                                                                                \
    ANSWER int name(handle_type handle, int form, int n, int columns, const void *a, int leading,  \
                    const int *pivots, void *b, int b_leading, int *info) WORK(name, a, info, 1, b)
ALL(GETRS, getrs)

#define SYTRF(name)                                                                                \
    ANSWER int name##_bufferSize(handle_type handle, int n, void *a, int leading, int *numbers)    \
        ROOM(n, n, 1)                                                                              \
    ANSWER int name(handle_type handle, int half, int n, void *a, int leading, int *pivots,        \
                    void *area, int numbers, int *info) WORK(name, a, info, 1, a, pivots)
ALL(SYTRF, sytrf)

/* --- QR ------------------------------------------------------------------------------------------- */

#define GEQRF(name)                                                                                \
    ANSWER int name##_bufferSize(handle_type handle, int m, int n, void *a, int leading,           \
                                 int *numbers)                                                     \
    {                                                                                              \
        return return_number(n < 0 ? n : qr_numbers(n) + BLOCK, numbers);                                   \
    }                                                                                              \
    ANSWER int name(handle_type handle, int m, int n, void *a, int leading, void *factors,         \
                    void *area, int numbers, int *info) WORK(name, a, info, 1, a, factors)
ALL(GEQRF, geqrf)

#define ORGQR(name)                                                                                \
    ANSWER int name##_bufferSize(handle_type handle, int m, int n, int k, const void *a,           \
                                 int leading, const void *factors, int *numbers)                   \
    {                                                                                              \
        return return_number(n < 0 ? n : q_numbers(n), numbers);                                            \
    }                                                                                              \
    ANSWER int name(handle_type handle, int m, int n, int k, void *a, int leading,                 \
                    const void *factors, void *area, int numbers, int *info)                       \
        WORK(name, a, info, 1, a)
REAL(ORGQR, orgqr)
COMPLEX(ORGQR, ungqr)

#define ORMQR(name)                                                                                \
    ANSWER int name##_bufferSize(handle_type handle, int side, int form, int m, int n, int k,      \
                                 const void *a, int leading, const void *factors, const void *c,   \
                                 int c_leading, int *numbers)                                      \
    {                                                                                              \
        return return_number(m < 0 || n < 0 ? -1 : times_q_numbers(larger(m, n)), numbers);                 \
    }                                                                                              \
    ANSWER int name(handle_type handle, int side, int form, int m, int n, int k, const void *a,    \
                    int leading, const void *factors, void *c, int c_leading, void *area,          \
                    int numbers, int *info) WORK(name, a, info, 1, c)
REAL(ORMQR, ormqr)
COMPLEX(ORMQR, unmqr)

/* --- singular values ------------------------------------------------------------------------------ */

#define GESVD(name)                                                                                \
    ANSWER int name##_bufferSize(handle_type handle, int m, int n, int *numbers) ROOM(m, n, 1)     \
    ANSWER int name(handle_type handle, signed char wants_u, signed char wants_v, int m, int n,    \
                    void *a, int leading, void *s, void *u, int u_leading, void *v, int v_leading, \
                    void *area, int numbers, void *more, int *info)                                \
        WORK(name, a, info, 1, a, s, u, v)
ALL(GESVD, gesvd)

#define GESVDJ(name)                                                                               \
    ANSWER int name##_bufferSize(handle_type handle, int wants, int is_thin, int m, int n,         \
                                 const void *a, int leading, const void *s, const void *u,         \
                                 int u_leading, const void *v, int v_leading, int *numbers,        \
                                 void *options)                                                    \
    {                                                                                              \
        return return_number(n < 0 ? n : singular_numbers(n), numbers);                                     \
    }                                                                                              \
    ANSWER int name(handle_type handle, int wants, int is_thin, int m, int n, void *a,             \
                    int leading, void *s, void *u, int u_leading, void *v, int v_leading,          \
                    void *area, int numbers, int *info, void *options)                             \
        WORK(name, a, info, 1, a, s, u, v)                                                         \
    ANSWER int name##Batched_bufferSize(handle_type handle, int wants, int m, int n,               \
                                        const void *a, int leading, const void *s, const void *u,  \
                                        int u_leading, const void *v, int v_leading, int *numbers, \
                                        void *options, int batch) ROOM(m, n, batch)                \
    ANSWER int name##Batched(handle_type handle, int wants, int m, int n, void *a, int leading,    \
                             void *s, void *u, int u_leading, void *v, int v_leading, void *area,  \
                             int numbers, int *info, void *options, int batch)                     \
        WORK(name##Batched, a, info, batch, a, s, u, v)
ALL(GESVDJ, gesvdj)

#define GESVDA(name)                                                                               \
    ANSWER int name##_bufferSize(handle_type handle, int wants, int rank, int m, int n,            \
                                 const void *a, int leading, long long a_stride, const void *s,    \
                                 long long s_stride, const void *u, int u_leading,                 \
                                 long long u_stride, const void *v, int v_leading,                 \
                                 long long v_stride, int *numbers, int batch) ROOM(m, n, batch)    \
    ANSWER int name(handle_type handle, int wants, int rank, int m, int n, const void *a,          \
                    int leading, long long a_stride, void *s, long long s_stride, void *u,         \
                    int u_leading, long long u_stride, void *v, int v_leading, long long v_stride, \
                    void *area, int numbers, int *info, double *errors, int batch)                 \
        WORK(name, a, info, batch, s, u, v)
ALL(GESVDA, gesvdaStridedBatched)

/* --- eigenvalues ---------------------------------------------------------------------------------- */

#define SYEVD(name)                                                                                \
    ANSWER int name##_bufferSize(handle_type handle, int wants, int half, int n, const void *a,    \
                                 int leading, const void *w, int *numbers) ROOM(n, n, 2)           \
    ANSWER int name(handle_type handle, int wants, int half, int n, void *a, int leading, void *w, \
                    void *area, int numbers, int *info) WORK(name, a, info, 1, a, w)
REAL(SYEVD, syevd)
COMPLEX(SYEVD, heevd)

#define SYEVJ(name)                                                                                \
    ANSWER int name##_bufferSize(handle_type handle, int wants, int half, int n, const void *a,    \
                                 int leading, const void *w, int *numbers, void *options)          \
    {                                                                                              \
        return return_number(n < 0 ? n : jacobi_numbers(n), numbers);                                       \
    }                                                                                              \
    ANSWER int name(handle_type handle, int wants, int half, int n, void *a, int leading, void *w, \
                    void *area, int numbers, int *info, void *options)                             \
        WORK(name, a, info, 1, a, w)                                                               \
    ANSWER int name##Batched_bufferSize(handle_type handle, int wants, int half, int n,            \
                                        const void *a, int leading, const void *w, int *numbers,   \
                                        void *options, int batch) ROOM(n, n, batch)                \
    ANSWER int name##Batched(handle_type handle, int wants, int half, int n, void *a, int leading, \
                             void *w, void *area, int numbers, int *info, void *options,           \
                             int batch) WORK(name##Batched, a, info, batch, a, w)
REAL(SYEVJ, syevj)
COMPLEX(SYEVJ, heevj)

/* --- functions for any type ----------------------------------------------------------------------- */

ANSWER int cusolverDnXpotrf_bufferSize(handle_type handle, void *options, int half, int64_t n, int type, const void *a,
                                       int64_t leading, int compute, size_t *device, size_t *host)
{
    return return_bytes(n, n < 0 ? 0 : cholesky_bytes(n), device, host);
}

ANSWER int cusolverDnXpotrf(handle_type handle, void *options, int half, int64_t n, int type, void *a, int64_t leading,
                            int compute, void *area, size_t bytes, void *host, size_t host_bytes, int *info)
WORK(cusolverDnXpotrf, a, info, 1, a)

ANSWER int cusolverDnXpotrs(handle_type handle, void *options, int half, int64_t n, int64_t columns, int type,
                            const void *a, int64_t leading, int b_type, void *b, int64_t b_leading, int *info)
WORK(cusolverDnXpotrs, a, info, 1, b)

ANSWER int cusolverDnXgeqrf_bufferSize(handle_type handle, void *options, int64_t m, int64_t n, int type, const void *a,
                                       int64_t leading, int factor_type, const void *factors, int compute,
                                       size_t *device, size_t *host)
{
    return return_bytes(n, n < 0 ? 0 : (size_t)qr_numbers(n) * width_of(type) + 128, device, host);
}

ANSWER int cusolverDnXgeqrf(handle_type handle, void *options, int64_t m, int64_t n, int type, void *a, int64_t leading,
                            int factor_type, void *factors, int compute, void *area, size_t bytes, void *host,
                            size_t host_bytes, int *info)
WORK(cusolverDnXgeqrf, a, info, 1, a, factors)

ANSWER int cusolverDnXsyevd_bufferSize(handle_type handle, void *options, int wants, int half, int64_t n, int type,
                                       const void *a, int64_t leading, int w_type, const void *w, int compute,
                                       size_t *device, size_t *host)
{
    return return_bytes(n, n < 0 ? 0 : (size_t)eigen_numbers(n) * width_of(type), device, host);
}

ANSWER int cusolverDnXsyevd(handle_type handle, void *options, int wants, int half, int64_t n, int type, void *a,
                            int64_t leading, int w_type, void *w, int compute, void *area, size_t bytes, void *host,
                            size_t host_bytes, int *info)
WORK(cusolverDnXsyevd, a, info, 1, a, w)

ANSWER int cusolverDnXsyevBatched_bufferSize(handle_type handle, void *options, int wants, int half, int64_t n,
                                             int type, const void *a, int64_t leading, int w_type, const void *w,
                                             int compute, size_t *device, size_t *host, int64_t batch)
{
    enum { OF_MATRIX = 71800 }; /* numbers per matrix, measured with 100 matrices of 8 rows */
    return return_bytes(n, (size_t)batch * (OF_MATRIX + (size_t)(n * n)) * width_of(type), device, host);
}

ANSWER int cusolverDnXsyevBatched(handle_type handle, void *options, int wants, int half, int64_t n, int type, void *a,
                                  int64_t leading, int w_type, void *w, int compute, void *area, size_t bytes,
                                  void *host, size_t host_bytes, int *info, int64_t batch)
WORK(cusolverDnXsyevBatched, a, info, batch, a, w)

ANSWER int cusolverDnXgeev_bufferSize(handle_type handle, void *options, int wants_left, int wants_right, int64_t n,
                                      int type, const void *a, int64_t leading, int w_type, const void *w, int vl_type,
                                      const void *vl, int64_t vl_leading, int vr_type, const void *vr,
                                      int64_t vr_leading, int compute, size_t *device, size_t *host)
{
    return room_in_bytes(n, n, 2, type, device, host);
}

ANSWER int cusolverDnXgeev(handle_type handle, void *options, int wants_left, int wants_right, int64_t n, int type,
                           void *a, int64_t leading, int w_type, void *w, int vl_type, void *vl, int64_t vl_leading,
                           int vr_type, void *vr, int64_t vr_leading, int compute, void *area, size_t bytes,
                           void *host, size_t host_bytes, int *info)
WORK(cusolverDnXgeev, a, info, 1, a, w, vl, vr)
