/* A cuBLASLt for tests: descriptors as the real one takes them, products by the reference on host
 * memory. It refuses what the real one refuses: a leading dimension below the rows, matrices that
 * do not fit together, operands less aligned than was said to the heuristic, less workspace than the
 * algorithm wants. It writes over that workspace.
 *
 * Not checked, because we do not use it: types per operand beyond fp32, bf16, fp16, orders other
 * than column-major, other epilogues (refused as not supported).
 */
#include "gpu_state.h"
#include "devices/host/reference.h"
#include <cublasLt.h>
#include <stdlib.h>
#include <string.h>

enum { A, B, C, D, OPERANDS };

struct layout {
    cudaDataType type;
    int64_t rows, columns, ld, batch_stride;
    int32_t batch;
};

struct product {
    cublasComputeType_t compute;
    int32_t transposed[2];
    uint32_t epilogue;
    uint64_t bias;
};

struct preference {
    uint64_t workspace_bytes;
    uint32_t alignment[OPERANDS];
};

/* The contents of cublasLtMatmulAlgo_t. */
struct algorithm {
    uint64_t magic, workspace_bytes;
    uint32_t alignment[OPERANDS];
};

static const uint64_t algorithm_magic = 0x706c696d73616c67u;

static cublasStatus_t fault(void)
{
    if (gpu_fault(GPU_FAULT_OOM_LIB)) return CUBLAS_STATUS_ALLOC_FAILED;
    if (gpu_fault(GPU_FAULT_DISGUISED_LIB)) return CUBLAS_STATUS_INTERNAL_ERROR;
    return gpu_gone() ? CUBLAS_STATUS_EXECUTION_FAILED : CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t create(void *out, size_t bytes, const void *value)
{
    void *object = malloc(bytes);
    if (!object) return CUBLAS_STATUS_ALLOC_FAILED;
    memcpy(object, value, bytes);
    memcpy(out, &object, sizeof object);
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t set(void *to, size_t bytes, const void *value, size_t value_bytes)
{
    if (!to || !value || bytes != value_bytes) return CUBLAS_STATUS_INVALID_VALUE;
    memcpy(to, value, bytes);
    return CUBLAS_STATUS_SUCCESS;
}

/* --- handle, texts ---------------------------------------------------------------------------- */

cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle)
{
    cublasStatus_t st = fault();
    return st ? st : create(handle, 1, "");
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle)
{
    free(handle);
    return CUBLAS_STATUS_SUCCESS;
}

/* PLIM_DOUBLE_CUBLASLT: another version than the headers'. */
size_t cublasLtGetVersion(void)
{
    const char *version = getenv("PLIM_DOUBLE_CUBLASLT");
    return version ? strtoul(version, NULL, 10) : CUBLAS_VERSION;
}

const char *cublasLtGetStatusName(cublasStatus_t status)
{
    static const char *const names[] = {[CUBLAS_STATUS_NOT_INITIALIZED] = "NOT_INITIALIZED",
                                        [CUBLAS_STATUS_ALLOC_FAILED] = "ALLOC_FAILED",
                                        [CUBLAS_STATUS_INVALID_VALUE] = "INVALID_VALUE",
                                        [CUBLAS_STATUS_EXECUTION_FAILED] = "EXECUTION_FAILED",
                                        [CUBLAS_STATUS_INTERNAL_ERROR] = "INTERNAL_ERROR",
                                        [CUBLAS_STATUS_NOT_SUPPORTED] = "NOT_SUPPORTED"};
    size_t count = sizeof names / sizeof *names;
    return (size_t)status < count && names[status] ? names[status] : "another status";
}

/* --- descriptors ------------------------------------------------------------------------------ */

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *out, cublasComputeType_t compute,
                                        cudaDataType_t scale)
{
    bool floats = compute == CUBLAS_COMPUTE_32F || compute == CUBLAS_COMPUTE_32F_FAST_TF32;
    bool fits = floats ? scale == CUDA_R_32F : compute == CUBLAS_COMPUTE_32I && scale == CUDA_R_32I;
    if (!fits) return CUBLAS_STATUS_NOT_SUPPORTED;
    struct product p = {.compute = compute, .epilogue = CUBLASLT_EPILOGUE_DEFAULT};
    return create(out, sizeof p, &p);
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t desc)
{
    free(desc);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc,
                                              cublasLtMatmulDescAttributes_t attribute,
                                              const void *value, size_t bytes)
{
    struct product *p = (struct product *)desc;
    switch (attribute) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
        return set(&p->transposed[A], sizeof p->transposed[A], value, bytes);
    case CUBLASLT_MATMUL_DESC_TRANSB:
        return set(&p->transposed[B], sizeof p->transposed[B], value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
        return set(&p->epilogue, sizeof p->epilogue, value, bytes);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
        return set(&p->bias, sizeof p->bias, value, bytes);
    default:
        return CUBLAS_STATUS_NOT_SUPPORTED;
    }
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *out, cudaDataType type,
                                          uint64_t rows, uint64_t columns, int64_t ld)
{
    struct layout l = {
        .type = type, .rows = (int64_t)rows, .columns = (int64_t)columns, .ld = ld, .batch = 1};
    return create(out, sizeof l, &l);
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout)
{
    free(layout);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout,
                                                cublasLtMatrixLayoutAttribute_t attribute,
                                                const void *value, size_t bytes)
{
    struct layout *l = (struct layout *)layout;
    if (attribute == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT)
        return set(&l->batch, sizeof l->batch, value, bytes);
    if (attribute == CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET)
        return set(&l->batch_stride, sizeof l->batch_stride, value, bytes);
    return CUBLAS_STATUS_NOT_SUPPORTED;
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *out)
{
    struct preference p = {.alignment = {256, 256, 256, 256}}; /* the real one's defaults */
    return create(out, sizeof p, &p);
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference)
{
    free(preference);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute,
                                                    const void *value, size_t bytes)
{
    struct preference *p = (struct preference *)preference;
    switch (attribute) {
    case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES:
        return set(&p->workspace_bytes, sizeof p->workspace_bytes, value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES:
        return set(&p->alignment[A], sizeof p->alignment[A], value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES:
        return set(&p->alignment[B], sizeof p->alignment[B], value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES:
        return set(&p->alignment[C], sizeof p->alignment[C], value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES:
        return set(&p->alignment[D], sizeof p->alignment[D], value, bytes);
    default:
        return CUBLAS_STATUS_NOT_SUPPORTED;
    }
}

/* --- what fits together ----------------------------------------------------------------------- */

static bool is_known(cudaDataType type, bool of_bytes, int x)
{
    if (of_bytes) return type == (x <= B ? CUDA_R_8I : CUDA_R_32I);
    return type == CUDA_R_32F || type == CUDA_R_16BF || type == CUDA_R_16F;
}

static bool is_of_bytes(const struct product *p)
{
    return p->compute == CUBLAS_COMPUTE_32I;
}

/* What kernels for tensor cores ask for: the first turned, and sizes in fours (cuBLAS documentation, cublasLtMatmul).
 */
static bool is_laid_out_for_bytes(const struct product *p, const struct layout *l[OPERANDS])
{
    enum { UNIT = 4 };
    return p->transposed[A] && !p->transposed[B] && l[A]->rows % UNIT == 0 && l[D]->rows % UNIT == 0 &&
           l[A]->ld % UNIT == 0 && l[B]->ld % UNIT == 0;
}

/* op(A), op(B) as the product sees them */
static int64_t rows_of(const struct product *p, const struct layout *l, int x)
{
    return p->transposed[x] ? l->columns : l->rows;
}
static int64_t columns_of(const struct product *p, const struct layout *l, int x)
{
    return p->transposed[x] ? l->rows : l->columns;
}

static cublasStatus_t check(const struct product *p, const struct layout *l[OPERANDS])
{
    for (int i = A; i <= D; i++) {
        if (l[i]->rows < 1 || l[i]->columns < 1 || l[i]->ld < l[i]->rows || l[i]->batch < 1)
            return CUBLAS_STATUS_INVALID_VALUE;
        if (l[i]->batch != l[D]->batch) return CUBLAS_STATUS_INVALID_VALUE;
        if (!is_known(l[i]->type, is_of_bytes(p), i)) return CUBLAS_STATUS_NOT_SUPPORTED;
    }
    if (is_of_bytes(p) && !is_laid_out_for_bytes(p, l)) return CUBLAS_STATUS_NOT_SUPPORTED;
    bool shapes = rows_of(p, l[A], A) == l[D]->rows && columns_of(p, l[B], B) == l[D]->columns &&
                  columns_of(p, l[A], A) == rows_of(p, l[B], B) && l[C]->rows == l[D]->rows &&
                  l[C]->columns == l[D]->columns;
    if (!shapes) return CUBLAS_STATUS_INVALID_VALUE;
    if (l[D]->batch > 1 && l[D]->batch_stride < l[D]->rows) return CUBLAS_STATUS_INVALID_VALUE;
    if (l[A]->type != l[B]->type || l[C]->type != l[D]->type) return CUBLAS_STATUS_NOT_SUPPORTED;
    if (p->epilogue != CUBLASLT_EPILOGUE_DEFAULT && p->epilogue != CUBLASLT_EPILOGUE_BIAS)
        return CUBLAS_STATUS_NOT_SUPPORTED;
    if (p->epilogue == CUBLASLT_EPILOGUE_BIAS && !p->bias) return CUBLAS_STATUS_INVALID_VALUE;
    return CUBLAS_STATUS_SUCCESS;
}

/* Long sums are split, in as much of the workspace as there is. */
static uint64_t wanted_workspace(const struct layout *d, int64_t k, uint64_t most)
{
    enum { LONG = 64 };
    uint64_t wanted = k < LONG ? 0 : (uint64_t)(d->rows * d->columns * d->batch) * sizeof(float);
    return wanted < most ? wanted : most;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int asked,
                                              cublasLtMatmulHeuristicResult_t *results, int *found)
{
    const struct layout *l[OPERANDS] = {(struct layout *)a, (struct layout *)b, (struct layout *)c,
                                        (struct layout *)d};
    const struct product *p = (struct product *)desc;
    const struct preference *wish = (struct preference *)preference;
    *found = 0;
    cublasStatus_t st = handle && asked > 0 ? fault() : CUBLAS_STATUS_INVALID_VALUE;
    if (!st) st = check(p, l);
    if (!st && gpu_fault(GPU_FAULT_CHOICE)) st = CUBLAS_STATUS_NOT_SUPPORTED;
    if (st) return st;
    struct algorithm algorithm = {
        .magic = algorithm_magic,
        .workspace_bytes = wanted_workspace(l[D], columns_of(p, l[A], A), wish->workspace_bytes)};
    memcpy(algorithm.alignment, wish->alignment, sizeof algorithm.alignment);
    *results = (cublasLtMatmulHeuristicResult_t){.workspaceSize = algorithm.workspace_bytes};
    memcpy(&results->algo, &algorithm, sizeof algorithm);
    *found = 1;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc,
                                       cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                       cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                       const cublasLtMatmulAlgo_t *algo,
                                       cublasLtMatmulHeuristicResult_t *result)
{
    const struct layout *l[OPERANDS] = {(struct layout *)a, (struct layout *)b, (struct layout *)c,
                                        (struct layout *)d};
    struct algorithm algorithm;
    memcpy(&algorithm, algo, sizeof algorithm);
    if (!handle || algorithm.magic != algorithm_magic) return CUBLAS_STATUS_INVALID_VALUE;
    *result = (cublasLtMatmulHeuristicResult_t){.algo = *algo,
                                                .workspaceSize = algorithm.workspace_bytes};
    return check((struct product *)desc, l);
}

/* --- the product ------------------------------------------------------------------------------ */

static uint8_t dtype_of(cudaDataType type)
{
    switch (type) {
    case CUDA_R_32F: return PLIM_F32;
    case CUDA_R_16BF: return PLIM_BF16;
    case CUDA_R_8I: return PLIM_U8;
    case CUDA_R_32I: return PLIM_I32;
    default: return PLIM_F16;
    }
}

/* As (batch, rows, columns) of the product. */
static struct plim_array array_of(const struct layout *l, const void *data, bool transposed)
{
    int64_t rows = transposed ? l->columns : l->rows, columns = transposed ? l->rows : l->columns;
    int64_t down = transposed ? l->ld : 1, across = transposed ? 1 : l->ld;
    return (struct plim_array){.data = (uint64_t)(uintptr_t)data,
                               .shape = {l->batch, rows, columns},
                               .stride = {l->batch_stride, down, across},
                               .ndim = 3,
                               .dtype = dtype_of(l->type)};
}

/* The only matrix of a batch. */
static struct plim_array matrix_of(const struct plim_array *x, bool turned)
{
    struct plim_array m = *x;
    m.ndim = 2;
    for (int d = 0; d < 2; d++) {
        int from = 1 + (turned ? 1 - d : d);
        m.shape[d] = x->shape[from];
        m.stride[d] = x->stride[from];
    }
    return m;
}

static enum plim_status multiply_bytes(const struct plim_array x[OPERANDS])
{
    struct plim_array a = matrix_of(&x[A], false), b = matrix_of(&x[B], true), d = matrix_of(&x[D], false);
    const struct plim_op op = {.kind = PLIM_OP_MATMUL_INT8, .n_out = 1, .n_in = 2, .out = {&d}, .in = {&a, &b}};
    return plim_reference_run(&op);
}

static cublasStatus_t check_call(const struct product *p, const struct layout *l[OPERANDS],
                                 const void *const data[OPERANDS],
                                 const struct algorithm *algorithm, const void *workspace,
                                 size_t workspace_bytes)
{
    if (algorithm->magic != algorithm_magic) return CUBLAS_STATUS_INVALID_VALUE;
    if (workspace_bytes < algorithm->workspace_bytes) return CUBLAS_STATUS_INVALID_VALUE;
    if (workspace_bytes && (!workspace || (uintptr_t)workspace % 256))
        return CUBLAS_STATUS_INVALID_VALUE;
    for (int i = A; i <= D; i++)
        if (!data[i] || (uintptr_t)data[i] % algorithm->alignment[i])
            return CUBLAS_STATUS_INVALID_VALUE;
    return check(p, l);
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, const void *alpha,
                              const void *a, cublasLtMatrixLayout_t a_layout, const void *b,
                              cublasLtMatrixLayout_t b_layout, const void *beta, const void *c,
                              cublasLtMatrixLayout_t c_layout, void *d,
                              cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t *algo,
                              void *workspace, size_t workspace_bytes, cudaStream_t stream)
{
    (void)stream; /* everything is done at once */
    const struct product *p = (struct product *)desc;
    const struct layout *l[OPERANDS] = {(struct layout *)a_layout, (struct layout *)b_layout,
                                        (struct layout *)c_layout, (struct layout *)d_layout};
    const void *const data[OPERANDS] = {a, b, c, d};
    struct algorithm algorithm;
    memcpy(&algorithm, algo, sizeof algorithm);
    cublasStatus_t st = handle ? fault() : CUBLAS_STATUS_NOT_INITIALIZED;
    if (!st) st = check_call(p, l, data, &algorithm, workspace, workspace_bytes);
    if (st) return st;
    float scale[2];
    int32_t whole[2];
    memcpy(&scale[0], alpha, sizeof *scale);
    memcpy(&scale[1], beta, sizeof *scale);
    memcpy(&whole[0], alpha, sizeof *whole);
    memcpy(&whole[1], beta, sizeof *whole);
    if (is_of_bytes(p) && (whole[0] != 1 || whole[1] != 0 || l[D]->batch != 1)) return CUBLAS_STATUS_NOT_SUPPORTED;
    bool biased = p->epilogue == CUBLASLT_EPILOGUE_BIAS;
    if (biased && scale[1] != 0) return CUBLAS_STATUS_NOT_SUPPORTED; /* not needed here */
    if (algorithm.workspace_bytes) memset(workspace, 0xa5, algorithm.workspace_bytes);
    struct plim_array x[OPERANDS] = {array_of(l[A], a, p->transposed[A]),
                                     array_of(l[B], b, p->transposed[B]), array_of(l[C], c, false),
                                     array_of(l[D], d, false)};
    if (biased)
        x[C] = (struct plim_array){.data = p->bias,
                                   .shape = {l[D]->rows, 1},
                                   .stride = {1, 1},
                                   .ndim = 2,
                                   .dtype = dtype_of(l[D]->type)};
    struct plim_op op = {.kind = PLIM_OP_MATMUL,
                         .n_out = 1,
                         .n_in = biased || scale[1] != 0 ? 3 : 2,
                         .alpha = scale[0],
                         .beta = biased ? 1 : scale[1],
                         .out = {&x[D]},
                         .in = {&x[A], &x[B], &x[C]}};
    double inner = (double)(p->transposed[A] ? l[A]->rows : l[A]->columns);
    gpu_time_passes(
        gpu_launch_seconds((double)l[D]->rows * (double)l[D]->columns * l[D]->batch * inner));
    enum plim_status done = is_of_bytes(p) ? multiply_bytes(x) : plim_reference_run(&op);
    return done == PLIM_OK ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}
