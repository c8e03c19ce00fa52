/* cuBLAS: handles, their modes, versions, and copies between host and GPU.
 *
 * The workspace that cuBLAS would allocate for a handle (4 MiB; 32 MiB from Hopper on) is not counted: whether it is
 * allocated at creation or at first use is not known, and PyTorch always passes its own to cublasSetWorkspace(). A
 * program that calls cuBLAS itself and passes none therefore appears to need that much less. */
#include "blas.h"
#include "devices/virtual/work/transfer.h"
#include "devices/virtual/machine/version.h"
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    int status;
    const char *name, *text;
} statuses[] = {
    {BLAS_OK, "CUBLAS_STATUS_SUCCESS", "success"},
    {BLAS_NOT_INITIALIZED, "CUBLAS_STATUS_NOT_INITIALIZED", "not initialized"},
    {BLAS_ALLOC_FAILED, "CUBLAS_STATUS_ALLOC_FAILED", "out of memory"},
    {BLAS_INVALID_VALUE, "CUBLAS_STATUS_INVALID_VALUE", "invalid argument"},
    {BLAS_ARCH_MISMATCH, "CUBLAS_STATUS_ARCH_MISMATCH", "not possible on this GPU"},
    {BLAS_MAPPING_ERROR, "CUBLAS_STATUS_MAPPING_ERROR", "device memory cannot be used"},
    {BLAS_EXECUTION_FAILED, "CUBLAS_STATUS_EXECUTION_FAILED", "launch failed"},
    {BLAS_INTERNAL_ERROR, "CUBLAS_STATUS_INTERNAL_ERROR", "internal error"},
    {BLAS_NOT_SUPPORTED, "CUBLAS_STATUS_NOT_SUPPORTED", "not supported"},
    {16, "CUBLAS_STATUS_LICENSE_ERROR", "license error"},
};

static size_t find_status(int status)
{
    size_t i = sizeof(statuses) / sizeof(statuses[0]) - 1;
    while (i > 0 && statuses[i].status != status) i--;
    return statuses[i].status == status ? i : SIZE_MAX;
}

const char *plim_blas_status_name(int status)
{
    size_t i = find_status(status);
    return i == SIZE_MAX ? "unknown cuBLAS status" : statuses[i].name;
}

const char *plim_blas_status_text(int status)
{
    size_t i = find_status(status);
    return i == SIZE_MAX ? "unknown cuBLAS status" : statuses[i].text;
}

int plim_blas_no_handle(int error)
{
    return error == GPU_OUT_OF_MEMORY ? BLAS_ALLOC_FAILED : BLAS_NOT_INITIALIZED;
}

int plim_blas_property(const char *library, const char *function, int property, int *value)
{
    static const int newest[] = {13, 1, 0};
    bool is_known = plim_version_property(library, function, newest, property, value);
    return is_known ? BLAS_OK : BLAS_INVALID_VALUE;
}

ANSWER const char *cublasGetStatusName(int status) { return plim_blas_status_name(status); }
ANSWER const char *cublasGetStatusString(int status) { return plim_blas_status_text(status); }

ANSWER int cublasGetProperty(int property, int *value)
{
    return plim_blas_property("libcublas.so", "cublasGetProperty", property, value);
}

ANSWER int cublasGetVersion_v2(const struct blas_handle *handle, int *version)
{
    int major, minor, patch;
    (void)handle; /* JAX passes none */
    if (!version) return BLAS_INVALID_VALUE;
    if (cublasGetProperty(0, &major) || cublasGetProperty(1, &minor) ||
        cublasGetProperty(2, &patch))
        return BLAS_INTERNAL_ERROR;
    *version = major * 10000 + minor * 100 + patch;
    return BLAS_OK;
}

ANSWER size_t cublasGetCudartVersion(void) { return (size_t)plim_version_runtime(); }

/* --- handles ---------------------------------------------------------------------------------- */

ANSWER int cublasCreate_v2(struct blas_handle **out)
{
    if (!out) return BLAS_INVALID_VALUE;
    *out = NULL;
    int failed = plim_self_use_current();
    if (failed) return plim_blas_no_handle(failed);
    struct blas_handle *handle = calloc(1, sizeof(*handle));
    if (!handle) return BLAS_ALLOC_FAILED;
    handle->common.device = plim_self_device();
    handle->special_values = 0xffff; /* the default of cudaEmulationSpecialValuesSupport */
    *out = handle;
    return BLAS_OK;
}

ANSWER int cublasDestroy_v2(struct blas_handle *handle)
{
    if (!handle) return BLAS_NOT_INITIALIZED;
    free(handle);
    return BLAS_OK;
}

ANSWER int cublasSetWorkspace_v2(const struct blas_handle *handle, void *workspace, size_t bytes)
{
    (void)bytes;
    if (!handle) return BLAS_NOT_INITIALIZED;
    return (uintptr_t)workspace % 256 ? BLAS_INVALID_VALUE : BLAS_OK;
}

/* Defines a pair of functions that set and get a member of the handle. */
#define SETTING(set, get, type, member)                                                            \
    ANSWER int set(struct blas_handle *handle, type value)                                         \
    {                                                                                              \
        if (!handle) return BLAS_NOT_INITIALIZED;                                                  \
        handle->member = value;                                                                    \
        return BLAS_OK;                                                                            \
    }                                                                                              \
    ANSWER int get(const struct blas_handle *handle, type *value)                                  \
    {                                                                                              \
        if (!handle) return BLAS_NOT_INITIALIZED;                                                  \
        if (!value) return BLAS_INVALID_VALUE;                                                     \
        *value = handle->member;                                                                   \
        return BLAS_OK;                                                                            \
    }

SETTING(cublasSetStream_v2, cublasGetStream_v2, void *, common.stream)
SETTING(cublasSetPointerMode_v2, cublasGetPointerMode_v2, int, pointer_mode)
SETTING(cublasSetAtomicsMode, cublasGetAtomicsMode, int, atomics)
SETTING(cublasSetMathMode, cublasGetMathMode, int, math)
SETTING(cublasSetSmCountTarget, cublasGetSmCountTarget, int, multiprocessors)
SETTING(cublasSetEmulationStrategy, cublasGetEmulationStrategy, int, emulation)
SETTING(cublasSetEmulationSpecialValuesSupport, cublasGetEmulationSpecialValuesSupport, int,
        special_values)
SETTING(cublasSetFixedPointEmulationMantissaControl, cublasGetFixedPointEmulationMantissaControl,
        int, mantissa_control)
SETTING(cublasSetFixedPointEmulationMaxMantissaBitCount,
        cublasGetFixedPointEmulationMaxMantissaBitCount, int, mantissa_bits)
SETTING(cublasSetFixedPointEmulationMantissaBitOffset,
        cublasGetFixedPointEmulationMantissaBitOffset, int, mantissa_offset)
SETTING(cublasSetFixedPointEmulationMantissaBitCountPointer,
        cublasGetFixedPointEmulationMantissaBitCountPointer, int *, mantissa_count)

/* --- logging: nothing is ever logged ---------------------------------------------------------- */

typedef void log_callback(const char *text);
static log_callback *logger;

ANSWER int cublasLoggerConfigure(int on, int to_stdout, int to_stderr, const char *file)
{
    (void)on;
    (void)to_stdout;
    (void)to_stderr;
    (void)file;
    return BLAS_OK;
}

ANSWER int cublasSetLoggerCallback(log_callback *callback)
{
    logger = callback;
    return BLAS_OK;
}

ANSWER int cublasGetLoggerCallback(log_callback **callback)
{
    if (!callback) return BLAS_INVALID_VALUE;
    *callback = logger;
    return BLAS_OK;
}

/* --- copies ----------------------------------------------------------------------------------- */

static int transfer(const struct plim_transfer *transfer, void *stream)
{
    return plim_transfer(transfer, plim_stream_of(stream)) ? BLAS_MAPPING_ERROR : BLAS_OK;
}

/* Each element is copied as a row, unless the elements are contiguous on both sides. */
static int copy_vector(int64_t count, int64_t bytes, const void *from, int64_t from_step, void *to,
                       int64_t to_step, void *stream)
{
    if (count < 0 || bytes <= 0 || from_step <= 0 || to_step <= 0) return BLAS_INVALID_VALUE;
    if (from_step == 1 && to_step == 1) {
        bytes *= count;
        count = count > 0;
    }
    return transfer(&(struct plim_transfer){.to = to, .from = from, .bytes = (size_t)bytes,
                                            .rows = (size_t)count,
                                            .to_pitch = (size_t)(to_step * bytes),
                                            .from_pitch = (size_t)(from_step * bytes)},
                    stream);
}

/* The leading dimension is the distance between columns. */
static int copy_matrix(int64_t rows, int64_t columns, int64_t bytes, const void *from,
                       int64_t from_leading, void *to, int64_t to_leading, void *stream)
{
    if (rows < 0 || columns < 0 || bytes <= 0 || from_leading < rows || to_leading < rows ||
        from_leading <= 0 || to_leading <= 0)
        return BLAS_INVALID_VALUE;
    return transfer(&(struct plim_transfer){.to = to, .from = from, .bytes = (size_t)(rows * bytes),
                                            .rows = (size_t)columns,
                                            .to_pitch = (size_t)(to_leading * bytes),
                                            .from_pitch = (size_t)(from_leading * bytes)},
                    stream);
}

#define VECTOR(name, async, suffix, integer)                                                       \
    ANSWER int name##suffix(integer count, integer bytes, const void *from, integer from_step,     \
                            void *to, integer to_step)                                             \
    {                                                                                              \
        return copy_vector(count, bytes, from, from_step, to, to_step, NULL);                      \
    }                                                                                              \
    ANSWER int async##suffix(integer count, integer bytes, const void *from, integer from_step,    \
                             void *to, integer to_step, void *stream)                              \
    {                                                                                              \
        return copy_vector(count, bytes, from, from_step, to, to_step, stream);                    \
    }

#define MATRIX(name, async, suffix, integer)                                                       \
    ANSWER int name##suffix(integer rows, integer columns, integer bytes, const void *from,        \
                            integer from_leading, void *to, integer to_leading)                    \
    {                                                                                              \
        return copy_matrix(rows, columns, bytes, from, from_leading, to, to_leading, NULL);        \
    }                                                                                              \
    ANSWER int async##suffix(integer rows, integer columns, integer bytes, const void *from,       \
                             integer from_leading, void *to, integer to_leading, void *stream)     \
    {                                                                                              \
        return copy_matrix(rows, columns, bytes, from, from_leading, to, to_leading, stream);      \
    }

VECTOR(cublasSetVector, cublasSetVectorAsync, , int)
VECTOR(cublasSetVector, cublasSetVectorAsync, _64, int64_t)
VECTOR(cublasGetVector, cublasGetVectorAsync, , int)
VECTOR(cublasGetVector, cublasGetVectorAsync, _64, int64_t)
MATRIX(cublasSetMatrix, cublasSetMatrixAsync, , int)
MATRIX(cublasSetMatrix, cublasSetMatrixAsync, _64, int64_t)
MATRIX(cublasGetMatrix, cublasGetMatrixAsync, , int)
MATRIX(cublasGetMatrix, cublasGetMatrixAsync, _64, int64_t)

/* --- cost of matrix products ------------------------------------------------------------------ */

/* cuBLAS is column-major; in row-major order this is the transposed product, C' = B' A'. */
struct plim_cost plim_blas_cost(const struct blas_product *p)
{
    static const struct {
        int type;
        enum plim_cost_type cost;
        int64_t bytes;
    } types[] = {{BLAS_FP32, PLIM_COST_FP32, 4}, {BLAS_FP16, PLIM_COST_FP16, 2},
                 {BLAS_BF16, PLIM_COST_BF16, 2}};
    size_t i = sizeof(types) / sizeof(types[0]) - 1;
    while (i > 0 && types[i].type != p->type) i--;
    bool tf32 = p->tf32 && types[i].cost == PLIM_COST_FP32;
    return (struct plim_cost){.kind = PLIM_COST_MATMUL,
                              .type = (uint8_t)(tf32 ? PLIM_COST_TF32 : types[i].cost),
                              .number = {p->n, p->m, p->k ? p->k : 1, p->batch > 0 ? p->batch : 1,
                                         p->b_leading * types[i].bytes,
                                         p->a_leading * types[i].bytes}};
}
