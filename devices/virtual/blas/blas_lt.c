/* cuBLASLt: a single algorithm, and products that are launches.
 *
 * Programs hold algorithms and heuristic results themselves: 64 and 96 bytes (cublasLt.h of 11.8 to 13.0, which
 * agree). */
#include "blas_lt.h"
#include "blas.h"
#include "devices/virtual/machine/version.h"
#include "devices/virtual/steps/token.h"
#include "devices/virtual/work/launches.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- the library ------------------------------------------------------------------------------ */

ANSWER int cublasLtCreate(struct blas_handle **out)
{
    if (!out) return BLAS_INVALID_VALUE;
    *out = NULL;
    int failed = plim_self_use_current();
    if (failed) return plim_blas_no_handle(failed);
    *out = calloc(1, sizeof(**out));
    if (!*out) return BLAS_ALLOC_FAILED;
    (*out)->common.device = plim_self_device();
    return BLAS_OK;
}

ANSWER int cublasLtDestroy(struct blas_handle *handle)
{
    if (!handle) return BLAS_NOT_INITIALIZED;
    free(handle);
    return BLAS_OK;
}

ANSWER const char *cublasLtGetStatusName(int status) { return plim_blas_status_name(status); }
ANSWER const char *cublasLtGetStatusString(int status) { return plim_blas_status_text(status); }

ANSWER int cublasLtGetProperty(int property, int *value)
{
    return plim_blas_property("libcublasLt.so", "cublasLtGetProperty", property, value);
}

ANSWER size_t cublasLtGetVersion(void)
{
    int major, minor, patch;
    if (cublasLtGetProperty(0, &major) || cublasLtGetProperty(1, &minor) ||
        cublasLtGetProperty(2, &patch))
        return 0;
    return (size_t)(major * 10000 + minor * 100 + patch);
}

ANSWER size_t cublasLtGetCudartVersion(void) { return (size_t)plim_version_runtime(); }

static size_t cache_capacity;
static unsigned cpu_mask;

ANSWER int cublasLtHeuristicsCacheGetCapacity(size_t *capacity)
{
    if (!capacity) return BLAS_INVALID_VALUE;
    *capacity = cache_capacity;
    return BLAS_OK;
}

ANSWER int cublasLtHeuristicsCacheSetCapacity(size_t capacity)
{
    cache_capacity = capacity;
    return BLAS_OK;
}

ANSWER unsigned cublasLtDisableCpuInstructionsSetMask(unsigned mask)
{
    unsigned before = cpu_mask;
    cpu_mask = mask;
    return before;
}

/* Nothing is ever logged. */
typedef void log_callback(int level, const char *function, const char *text);

ANSWER int cublasLtLoggerSetCallback(log_callback *callback)
{
    (void)callback;
    return BLAS_OK;
}

ANSWER int cublasLtLoggerSetFile(FILE *file)
{
    (void)file;
    return BLAS_OK;
}

ANSWER int cublasLtLoggerOpenFile(const char *path)
{
    (void)path;
    return BLAS_OK;
}

ANSWER int cublasLtLoggerSetLevel(int level)
{
    (void)level;
    return BLAS_OK;
}

ANSWER int cublasLtLoggerSetMask(int mask)
{
    (void)mask;
    return BLAS_OK;
}

ANSWER int cublasLtLoggerForceDisable(void) { return BLAS_OK; }

/* --- algorithms ------------------------------------------------------------------------------- */

enum { ALGORITHM = 1, CONFIGURATIONS = 14 };

struct algorithm {
    uint64_t ours;
    uint32_t configuration[CONFIGURATIONS]; /* indexed by attribute; element 0 is the algorithm's number */
};
_Static_assert(sizeof(struct algorithm) == 64, "cublasLtMatmulAlgo_t");

struct heuristic {
    struct algorithm algorithm;
    size_t workspace_bytes;
    int status;
    float waves;
    int reserved[4];
};
_Static_assert(sizeof(struct heuristic) == 96, "cublasLtMatmulHeuristicResult_t");

static const struct algorithm only = {.ours = 0x706c696d736f6c6c, .configuration = {ALGORITHM}};

/* Element types that require a minimum compute capability: cudaDataType and 10 * major + minor. */
static const struct {
    int type, compute_capability;
} newer_types[] = {
    {28, 89}, {29, 89},              /* fp8: e4m3, e5m2 */
    {31, 100}, {32, 100}, {33, 100}, /* fp6: e2m3, e3m2; fp4 */
};

static bool gpu_has(int type)
{
    const struct plim_machine_gpu *gpu = plim_self_gpu(plim_self_device());
    for (size_t i = 0; gpu && i < sizeof(newer_types) / sizeof(newer_types[0]); i++)
        if (newer_types[i].type == type)
            return gpu->compute_capability >= newer_types[i].compute_capability;
    return gpu != NULL;
}

/* D may be omitted; it is C then. */
static int check(const void *handle, const struct lt_descriptor *matmul,
                 const struct lt_descriptor *const layouts[4])
{
    if (!handle) return BLAS_NOT_INITIALIZED;
    if (!plim_lt_is(matmul, LT_MATMUL)) return BLAS_INVALID_VALUE;
    for (int i = 0; i < 4; i++) {
        int type = 0;
        if (i >= 2 && !layouts[i]) continue;
        if (plim_lt_layout_type(layouts[i], &type)) return BLAS_INVALID_VALUE;
        if (!gpu_has(type)) return BLAS_NOT_SUPPORTED;
    }
    return BLAS_OK;
}

ANSWER int cublasLtMatmulAlgoGetHeuristic(const void *handle, const struct lt_descriptor *matmul,
                                          const struct lt_descriptor *a,
                                          const struct lt_descriptor *b,
                                          const struct lt_descriptor *c,
                                          const struct lt_descriptor *d,
                                          const struct lt_descriptor *preference, int asked,
                                          struct heuristic *results, int *count)
{
    (void)preference;
    if (!count || !results || asked < 1) return BLAS_INVALID_VALUE;
    *count = 0;
    int status = check(handle, matmul, (const struct lt_descriptor *const[]){a, b, c, d});
    if (status) return status;
    results[0] = (struct heuristic){.algorithm = only, .waves = 1};
    *count = 1;
    return BLAS_OK;
}

ANSWER int cublasLtMatmulAlgoCheck(const void *handle, const struct lt_descriptor *matmul,
                                   const struct lt_descriptor *a, const struct lt_descriptor *b,
                                   const struct lt_descriptor *c, const struct lt_descriptor *d,
                                   const struct algorithm *algorithm, struct heuristic *result)
{
    if (!algorithm || algorithm->ours != only.ours || !result) return BLAS_INVALID_VALUE;
    int status = check(handle, matmul, (const struct lt_descriptor *const[]){a, b, c, d});
    *result = (struct heuristic){.algorithm = *algorithm, .status = status, .waves = 1};
    return status;
}

ANSWER int cublasLtMatmulAlgoGetIds(const void *handle, int compute, int scale_type, int a_type,
                                    int b_type, int c_type, int d_type, int asked, int *ids,
                                    int *count)
{
    (void)compute;
    (void)scale_type;
    if (!handle) return BLAS_NOT_INITIALIZED;
    if (!ids || !count || asked < 1) return BLAS_INVALID_VALUE;
    *count = 0;
    if (!gpu_has(a_type) || !gpu_has(b_type) || !gpu_has(c_type) || !gpu_has(d_type))
        return BLAS_NOT_SUPPORTED;
    ids[0] = ALGORITHM;
    *count = 1;
    return BLAS_OK;
}

ANSWER int cublasLtMatmulAlgoInit(const void *handle, int compute, int scale_type, int a_type,
                                  int b_type, int c_type, int d_type, int id,
                                  struct algorithm *algorithm)
{
    (void)compute;
    (void)scale_type;
    (void)a_type;
    (void)b_type;
    (void)c_type;
    (void)d_type;
    if (!handle) return BLAS_NOT_INITIALIZED;
    if (!algorithm || id != ALGORITHM) return BLAS_INVALID_VALUE;
    *algorithm = only;
    return BLAS_OK;
}

ANSWER int cublasLtMatmulAlgoConfigSetAttribute(struct algorithm *algorithm, int id,
                                                const void *value, size_t bytes)
{
    if (!algorithm || algorithm->ours != only.ours || !value || !bytes || id <= 0 ||
        id >= CONFIGURATIONS || bytes > sizeof(algorithm->configuration[0]))
        return BLAS_INVALID_VALUE;
    algorithm->configuration[id] = 0;
    memcpy(&algorithm->configuration[id], value, bytes);
    return BLAS_OK;
}

/* Attributes 7 and 8, inner and cluster shape, have 2 bytes. */
ANSWER int cublasLtMatmulAlgoConfigGetAttribute(const struct algorithm *algorithm, int id,
                                                void *value, size_t bytes, size_t *written)
{
    size_t needed = id == 7 || id == 8 ? 2 : 4;
    if (!algorithm || algorithm->ours != only.ours || id < 0 || id >= CONFIGURATIONS)
        return BLAS_INVALID_VALUE;
    if (written) *written = needed;
    if (!bytes) return written ? BLAS_OK : BLAS_INVALID_VALUE;
    if (!value || bytes < needed) return BLAS_INVALID_VALUE;
    memcpy(value, &algorithm->configuration[id], needed);
    return BLAS_OK;
}

/* Capabilities of the algorithm, by attribute. Attributes that are not listed are 0: there are no tiles, stages or
 * split-k. */
static const struct {
    int id;
    uint32_t value;
} abilities[] = {
    {3, 1}, {4, 1},                              /* strided batches, out-of-place results */
    {11, 0xffffffff}, {12, 0xffffffff},          /* pointer modes and epilogues: all */
    {16, 16}, {17, 16}, {18, 16}, {19, 16},      /* alignment of A to D in bytes */
    {21, 1},                                     /* batches as arrays of pointers */
};

ANSWER int cublasLtMatmulAlgoCapGetAttribute(const struct algorithm *algorithm, int id, void *value,
                                             size_t bytes, size_t *written)
{
    uint64_t ability = 0;
    size_t needed = id == 15 ? sizeof(uint64_t) : sizeof(uint32_t);
    if (!algorithm || algorithm->ours != only.ours || id < 0) return BLAS_INVALID_VALUE;
    if (written) *written = needed;
    if (!bytes) return written ? BLAS_OK : BLAS_INVALID_VALUE;
    if (!value || bytes < needed) return BLAS_INVALID_VALUE;
    for (size_t i = 0; i < sizeof(abilities) / sizeof(abilities[0]); i++)
        if (abilities[i].id == id) ability = abilities[i].value;
    memcpy(value, &ability, needed);
    return BLAS_OK;
}

/* What distinguishes uses of a function: transposes and the epilogue; numbers of rows and columns. */
static uint64_t form_of(const struct lt_descriptor *matmul)
{
    enum { TRANSPOSE_A = 3, TRANSPOSE_B = 4, EPILOGUE = 7 };
    return plim_lt_number(matmul, TRANSPOSE_A) | plim_lt_number(matmul, TRANSPOSE_B) << 8 |
           plim_lt_number(matmul, EPILOGUE) << 16;
}

static uint64_t sizes_of(const struct lt_descriptor *from, const struct lt_descriptor *to)
{
    enum { ROWS = 2, COLUMNS = 3 };
    uint64_t hash = plim_token_more(plim_lt_number(from, ROWS), plim_lt_number(from, COLUMNS));
    return plim_token_more(plim_token_more(hash, plim_lt_number(to, ROWS)),
                                 plim_lt_number(to, COLUMNS));
}

static struct plim_cost cost_of(const struct lt_descriptor *matmul, const struct lt_descriptor *a,
                                const struct lt_descriptor *b, const struct lt_descriptor *d)
{
    enum { COMPUTE = 0, TRANSPOSE_A = 3, TYPE = 0, ROWS = 2, COLUMNS = 3, LEADING = 4, BATCH = 5 };
    uint64_t k = plim_lt_number(a, plim_lt_number(matmul, TRANSPOSE_A) ? ROWS : COLUMNS);
    const struct blas_product product = {
        .m = (int64_t)plim_lt_number(d, ROWS), .n = (int64_t)plim_lt_number(d, COLUMNS),
        .k = (int64_t)k, .batch = (int64_t)plim_lt_number(d, BATCH),
        .a_leading = (int64_t)plim_lt_number(a, LEADING),
        .b_leading = (int64_t)plim_lt_number(b, LEADING), .type = (int)plim_lt_number(a, TYPE),
        .tf32 = plim_lt_number(matmul, COMPUTE) == BLAS_COMPUTE_TF32};
    return plim_blas_cost(&product);
}

/* --- launches --------------------------------------------------------------------------------- */

ANSWER int cublasLtMatmul(const void *handle, const struct lt_descriptor *matmul, const void *alpha,
                          const void *a, const struct lt_descriptor *a_layout, const void *b,
                          const struct lt_descriptor *b_layout, const void *beta, const void *c,
                          const struct lt_descriptor *c_layout, void *d,
                          const struct lt_descriptor *d_layout, const struct algorithm *algorithm,
                          void *workspace, size_t workspace_bytes, void *stream)
{
    (void)alpha;
    (void)beta;
    (void)c;
    (void)workspace;
    (void)workspace_bytes;
    if (algorithm && algorithm->ours != only.ours) return BLAS_INVALID_VALUE;
    const struct lt_descriptor *const layouts[] = {a_layout, b_layout, c_layout, d_layout};
    int status = check(handle, matmul, layouts);
    if (status) return status;
    const void *operands[] = {a, b, d};
    const struct plim_cost cost = cost_of(matmul, a_layout, b_layout, d_layout ? d_layout : c_layout);
    struct plim_work work = {.stream = stream, .what = "cublasLtMatmul", .operands = operands,
                             .cost = &cost,
                             .form = form_of(matmul), .sizes = sizes_of(a_layout, d_layout),
                             .read = 2, .written = 1};
    return plim_library_launch(&work) ? BLAS_EXECUTION_FAILED : BLAS_OK;
}

ANSWER int cublasLtMatrixTransform(const void *handle, const struct lt_descriptor *transform,
                                   const void *alpha, const void *a,
                                   const struct lt_descriptor *a_layout, const void *beta,
                                   const void *b, const struct lt_descriptor *b_layout, void *c,
                                   const struct lt_descriptor *c_layout, void *stream)
{
    (void)alpha;
    (void)beta;
    if (!handle) return BLAS_NOT_INITIALIZED;
    if (!plim_lt_is(transform, LT_TRANSFORM) || !a_layout || !c_layout || (b && !b_layout))
        return BLAS_INVALID_VALUE;
    const void *operands[] = {a, b, c};
    struct plim_work work = {.stream = stream, .what = "cublasLtMatrixTransform",
                             .operands = operands, .sizes = sizes_of(a_layout, c_layout),
                             .read = b ? 2 : 1, .written = b ? 1 : 0};
    return plim_library_launch(&work) ? BLAS_EXECUTION_FAILED : BLAS_OK;
}
