/* Matrix products on cuBLASLt; see cublaslt.h. */
#include "cublaslt.h"
#include "autotune/base/hash.h"
#include "gemm.h"
#include "library.h"
#include <cublasLt.h>
#include <stdlib.h>
#include <string.h>

#define FUNCTIONS(X)                                                                               \
    X(Create)                                                                                      \
    X(Destroy)                                                                                     \
    X(GetStatusName)                                                                               \
    X(MatmulDescCreate)                                                                            \
    X(MatmulDescDestroy)                                                                           \
    X(MatmulDescSetAttribute)                                                                      \
    X(MatrixLayoutCreate)                                                                          \
    X(MatrixLayoutDestroy)                                                                         \
    X(MatrixLayoutSetAttribute)                                                                    \
    X(MatmulPreferenceCreate)                                                                      \
    X(MatmulPreferenceDestroy)                                                                     \
    X(MatmulPreferenceSetAttribute)                                                                \
    X(MatmulAlgoCheck)                                                                             \
    X(MatmulAlgoGetHeuristic)                                                                      \
    X(Matmul)

struct api {
#define POINTER(name) __typeof__(cublasLt##name) *name;
    FUNCTIONS(POINTER)
#undef POINTER
};

static const struct plim_cuda_library_symbol symbols[] = {
#define SYMBOL(name) {"cublasLt" #name, offsetof(struct api, name)},
    FUNCTIONS(SYMBOL)
#undef SYMBOL
};

/* Everything that the choice of an algorithm depends on. Compared as bytes: padding is zero. */
struct key {
    struct {
        int64_t rows, columns, ld, batch_stride;
        int32_t alignment, transposed;
    } matrix[PLIM_GEMM_OPERANDS];
    int64_t batch, workspace_bytes;
    int32_t in_dtype, out_dtype, tf32, bias_alignment; /* bias_alignment 0: no epilogue */
};

struct entry {
    struct key key;
    bool used;
    cublasLtMatmulDesc_t desc;
    cublasLtMatrixLayout_t layout[PLIM_GEMM_OPERANDS];
    cublasLtMatmulAlgo_t algo;
};

/* A model has some dozens of products; a search over batch sizes some hundreds. */
enum { ENTRIES = 1024, ENTRIES_KEPT = 768 };

struct plim_blaslt {
    const struct plim_lib_host *host;
    struct plim_cuda_library library;
    struct api api;
    cublasLtHandle_t handle;
    size_t count;
    struct entry entries[ENTRIES]; /* open addressing */
};

/* --- statuses --------------------------------------------------------------------------------- */

static enum plim_status classify(const struct plim_blaslt *b, cublasStatus_t status)
{
    switch (status) {
    case CUBLAS_STATUS_SUCCESS:
        return PLIM_OK;
    case CUBLAS_STATUS_ALLOC_FAILED:
        return PLIM_OOM;
    case CUBLAS_STATUS_ARCH_MISMATCH:
    case CUBLAS_STATUS_NOT_SUPPORTED:
    case CUBLAS_STATUS_LICENSE_ERROR:
        return PLIM_UNSUPPORTED;
    case CUBLAS_STATUS_INVALID_VALUE:
        return PLIM_INTERNAL;
    default: {
        enum plim_status view = b->host->driver_view(b->host->user);
        return view ? view : PLIM_INTERNAL;
    }
    }
}

static enum plim_status failed(const struct plim_blaslt *b, cublasStatus_t status,
                               const char *doing, struct plim_error *err)
{
    enum plim_status st = classify(b, status);
    return st ? plim_fail(err, st, "cuBLASLt: %s: %s", doing, b->api.GetStatusName(status)) : st;
}

/* --- open, close ------------------------------------------------------------------------------ */

enum plim_status plim_blaslt_open(const struct plim_lib_host *host, struct plim_blaslt **out,
                                  struct plim_error *err)
{
    enum plim_status st;
    struct plim_blaslt *b = calloc(1, sizeof *b);
    *out = NULL;
    if (!b) return plim_fail(err, PLIM_NOMEM, "no memory for cuBLASLt's table");
    b->host = host;
    PLIM_TRY(plim_cuda_library_open(&plim_cuda_library_cublaslt, &b->library, err));
    PLIM_TRY(plim_cuda_library_resolve(&b->library, symbols, sizeof symbols / sizeof *symbols,
                                       &b->api, err));
    PLIM_TRY(failed(b, b->api.Create(&b->handle), "create", err));
    *out = b;
    return PLIM_OK;
out:
    plim_blaslt_close(b);
    return st;
}

static void entry_finish(const struct plim_blaslt *b, struct entry *e)
{
    if (e->desc) b->api.MatmulDescDestroy(e->desc);
    for (int i = 0; i < PLIM_GEMM_OPERANDS; i++)
        if (e->layout[i]) b->api.MatrixLayoutDestroy(e->layout[i]);
    *e = (struct entry){0};
}

static void clear_cache(struct plim_blaslt *b)
{
    for (size_t i = 0; i < ENTRIES; i++)
        if (b->entries[i].used) entry_finish(b, &b->entries[i]);
    b->count = 0;
}

void plim_blaslt_close(struct plim_blaslt *b)
{
    if (!b) return;
    clear_cache(b);
    if (b->handle)
        b->api.Destroy(b->handle);
    else
        plim_cuda_library_close(&b->library);
    free(b);
}

/* --- the choice of an algorithm, cached ------------------------------------------------------- */

/* Alignment up to 256; more is not considered (CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_*). */
static int32_t alignment(uint64_t address)
{
    enum { ENOUGH = 256 };
    uint64_t lowest = address & (~address + 1);
    return !lowest || lowest > ENOUGH ? ENOUGH : (int32_t)lowest;
}

static struct key key_of(const struct plim_gemm *g, const uint64_t address[PLIM_GEMM_OPERANDS],
                         bool tf32, int64_t workspace_bytes)
{
    struct key key;
    memset(&key, 0, sizeof key);
    bool bias = g->addend == PLIM_GEMM_C_BIAS;
    for (int i = 0; i < PLIM_GEMM_OPERANDS; i++) {
        /* if C is not a separate matrix, it is described as D */
        int source = i == PLIM_GEMM_C && g->addend != PLIM_GEMM_C_MATRIX ? PLIM_GEMM_D : i;
        const struct plim_gemm_matrix *m = &g->matrix[source];
        key.matrix[i].rows = m->rows;
        key.matrix[i].columns = m->columns;
        key.matrix[i].ld = m->ld;
        key.matrix[i].batch_stride = m->batch_stride;
        key.matrix[i].alignment = alignment(address[source]);
        key.matrix[i].transposed = m->transposed;
    }
    key.batch = g->batch;
    key.workspace_bytes = workspace_bytes;
    key.in_dtype = g->in_dtype;
    key.out_dtype = g->out_dtype;
    key.tf32 = tf32 && g->in_dtype == PLIM_F32;
    key.bias_alignment = bias ? alignment(address[PLIM_GEMM_C]) : 0;
    return key;
}

static size_t hash_of(const struct key *key)
{
    uint64_t hash = plim_hash(PLIM_HASH_START, key, sizeof *key);
    return (size_t)(hash ^ hash >> 32);
}

static cudaDataType_t cuda_type(int dtype)
{
    switch (dtype) {
    case PLIM_F32: return CUDA_R_32F;
    case PLIM_BF16: return CUDA_R_16BF;
    case PLIM_U8: return CUDA_R_8I;
    case PLIM_I32: return CUDA_R_32I;
    default: return CUDA_R_16F;
    }
}

/* Keeps the first failure of a sequence of calls. */
static void record_first(cublasStatus_t *first, cublasStatus_t status)
{
    if (*first == CUBLAS_STATUS_SUCCESS) *first = status;
}

static cublasStatus_t describe_matrix(const struct plim_blaslt *b, struct entry *e, int i)
{
    const struct key *k = &e->key;
    int dtype = i <= PLIM_GEMM_B ? k->in_dtype : k->out_dtype;
    cublasStatus_t st =
        b->api.MatrixLayoutCreate(&e->layout[i], cuda_type(dtype), (uint64_t)k->matrix[i].rows,
                                  (uint64_t)k->matrix[i].columns, k->matrix[i].ld);
    if (st || k->batch == 1) return st;
    int32_t batch = (int32_t)k->batch;
    record_first(&st, b->api.MatrixLayoutSetAttribute(e->layout[i], CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT,
                                                      &batch, sizeof batch));
    record_first(&st, b->api.MatrixLayoutSetAttribute(
                  e->layout[i], CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
                  &k->matrix[i].batch_stride, sizeof k->matrix[i].batch_stride));
    return st;
}

/* The heuristic needs to know the bias, if only as an address of this alignment. */
static cublasStatus_t describe_product(const struct plim_blaslt *b, struct entry *e,
                                       uint64_t bias_address)
{
    static const cublasLtMatmulDescAttributes_t transposition[] = {CUBLASLT_MATMUL_DESC_TRANSA,
                                                                   CUBLASLT_MATMUL_DESC_TRANSB};
    const struct key *k = &e->key;
    bool bytes = k->in_dtype == PLIM_U8;
    cublasComputeType_t compute = bytes     ? CUBLAS_COMPUTE_32I
                                  : k->tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32
                                            : CUBLAS_COMPUTE_32F;
    cublasStatus_t st = b->api.MatmulDescCreate(&e->desc, compute, bytes ? CUDA_R_32I : CUDA_R_32F);
    for (int i = PLIM_GEMM_A; i <= PLIM_GEMM_B && !st; i++) {
        int32_t operation = k->matrix[i].transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
        record_first(&st, b->api.MatmulDescSetAttribute(e->desc, transposition[i], &operation,
                                                        sizeof operation));
    }
    if (st || !k->bias_alignment) return st;
    uint32_t epilogue = CUBLASLT_EPILOGUE_BIAS;
    record_first(&st, b->api.MatmulDescSetAttribute(e->desc, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue,
                                                    sizeof epilogue));
    record_first(&st, b->api.MatmulDescSetAttribute(e->desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER,
                                                    &bias_address, sizeof bias_address));
    return st;
}

static cublasStatus_t describe_preference(const struct plim_blaslt *b, const struct key *k,
                                          cublasLtMatmulPreference_t *out)
{
    static const cublasLtMatmulPreferenceAttributes_t attribute[PLIM_GEMM_OPERANDS] = {
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES};
    cublasStatus_t st = b->api.MatmulPreferenceCreate(out);
    if (st) return st;
    uint64_t workspace = (uint64_t)k->workspace_bytes;
    record_first(&st, b->api.MatmulPreferenceSetAttribute(*out, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                                          &workspace, sizeof workspace));
    for (int i = 0; i < PLIM_GEMM_OPERANDS; i++) {
        uint32_t bytes = (uint32_t)k->matrix[i].alignment;
        record_first(&st, b->api.MatmulPreferenceSetAttribute(*out, attribute[i], &bytes, sizeof bytes));
    }
    return st;
}

static struct plim_memo_question question_of(const struct plim_blaslt *b, const struct entry *e)
{
    return (struct plim_memo_question){.kind = "gemm",
                                       .version = b->library.version,
                                       .shape = &e->key,
                                       .shape_bytes = sizeof e->key};
}

/* Uses the choice of another process, if cuBLASLt accepts it. */
static bool recall(const struct plim_blaslt *b, struct entry *e)
{
    const struct plim_memo_question question = question_of(b, e);
    cublasLtMatmulHeuristicResult_t result = {0};
    struct plim_memo_answer answer;
    if (!plim_memo_find(b->host->memo, &question, &answer)) return false;
    bool fits = answer.size == sizeof e->algo;
    if (fits) memcpy(&e->algo, answer.bytes, sizeof e->algo);
    fits = fits &&
           !b->api.MatmulAlgoCheck(b->handle, e->desc, e->layout[PLIM_GEMM_A],
                                   e->layout[PLIM_GEMM_B], e->layout[PLIM_GEMM_C],
                                   e->layout[PLIM_GEMM_D], &e->algo, &result) &&
           !result.state && result.workspaceSize <= (size_t)e->key.workspace_bytes;
    plim_memo_release(b->host->memo, &answer);
    return fits;
}

static cublasStatus_t choose(const struct plim_blaslt *b, struct entry *e)
{
    cublasLtMatmulPreference_t preference = NULL;
    cublasLtMatmulHeuristicResult_t result = {0};
    int found = 0;
    cublasStatus_t st = describe_preference(b, &e->key, &preference);
    if (!st)
        st = b->api.MatmulAlgoGetHeuristic(b->handle, e->desc, e->layout[PLIM_GEMM_A],
                                           e->layout[PLIM_GEMM_B], e->layout[PLIM_GEMM_C],
                                           e->layout[PLIM_GEMM_D], preference, 1, &result, &found);
    if (!st && !found) st = CUBLAS_STATUS_NOT_SUPPORTED;
    if (!st) st = result.state;
    if (preference) b->api.MatmulPreferenceDestroy(preference);
    e->algo = result.algo;
    const struct plim_memo_question question = question_of(b, e);
    if (!st) plim_memo_store(b->host->memo, &question, &e->algo, sizeof e->algo);
    return st;
}

static enum plim_status fill_entry(const struct plim_blaslt *b, struct entry *e,
                                   uint64_t bias_address, struct plim_error *err)
{
    cublasStatus_t st = describe_product(b, e, bias_address);
    for (int i = 0; i < PLIM_GEMM_OPERANDS && !st; i++) st = describe_matrix(b, e, i);
    if (!st && !recall(b, e)) st = choose(b, e);
    return failed(b, st, "choice of an algorithm", err);
}

static enum plim_status find_entry(struct plim_blaslt *b, const struct key *key,
                                   uint64_t bias_address, struct entry **out,
                                   struct plim_error *err)
{
    if (b->count >= ENTRIES_KEPT) clear_cache(b);
    size_t i = hash_of(key) % ENTRIES;
    while (b->entries[i].used && memcmp(&b->entries[i].key, key, sizeof *key) != 0)
        i = (i + 1) % ENTRIES;
    struct entry *e = *out = &b->entries[i];
    if (e->used) return PLIM_OK;
    memcpy(&e->key, key, sizeof *key);
    enum plim_status st = fill_entry(b, e, bias_address, err);
    if (st) {
        entry_finish(b, e);
        return st;
    }
    e->used = true;
    b->count++;
    return PLIM_OK;
}

/* --- running ---------------------------------------------------------------------------------- */

struct workspace {
    uint64_t address;
    int64_t bytes;
};

/* cuBLASLt needs an alignment of 256 bytes for its workspace. */
static struct workspace workspace_of(const struct plim_op *op)
{
    enum { ALIGNMENT = 256 };
    if (!op->n_scratch || !op->scratch[0]) return (struct workspace){0, 0};
    const struct plim_array *s = op->scratch[0];
    uint64_t start = (s->data + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    int64_t bytes = plim_array_bytes(s) - (int64_t)(start - s->data);
    return bytes > 0 ? (struct workspace){start, bytes} : (struct workspace){0, 0};
}

static enum plim_status run(struct plim_blaslt *b, const struct plim_op *op,
                            const struct plim_gemm *g, int64_t number, struct plim_error *err)
{
    uint64_t address[PLIM_GEMM_OPERANDS];
    for (int i = 0; i < PLIM_GEMM_OPERANDS; i++) address[i] = plim_gemm_address(g, i, number);
    struct workspace space = workspace_of(op);
    struct key key = key_of(g, address, op->tf32, space.bytes);
    uint64_t bias = address[PLIM_GEMM_C];
    struct entry *e;
    enum plim_status st = find_entry(b, &key, bias, &e, err);
    if (st) return st;
    cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
    if (key.bias_alignment)
        status = b->api.MatmulDescSetAttribute(e->desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias,
                                               sizeof bias);
    bool adds = g->addend == PLIM_GEMM_C_MATRIX || g->addend == PLIM_GEMM_C_COPIED;
    const float scale[2] = {(float)op->alpha, adds ? (float)op->beta : 0};
    const int32_t whole[2] = {1, 0}; /* of bytes */
    const void *alpha = &scale[0], *beta = &scale[1];
    if (key.in_dtype == PLIM_U8) alpha = &whole[0], beta = &whole[1];
    void *p[PLIM_GEMM_OPERANDS];
    for (int i = 0; i < PLIM_GEMM_OPERANDS; i++) p[i] = (void *)(uintptr_t)address[i];
    if (g->addend != PLIM_GEMM_C_MATRIX) p[PLIM_GEMM_C] = p[PLIM_GEMM_D];
    if (!status)
        status =
            b->api.Matmul(b->handle, e->desc, alpha, p[PLIM_GEMM_A], e->layout[PLIM_GEMM_A],
                          p[PLIM_GEMM_B], e->layout[PLIM_GEMM_B], beta, p[PLIM_GEMM_C],
                          e->layout[PLIM_GEMM_C], p[PLIM_GEMM_D], e->layout[PLIM_GEMM_D], &e->algo,
                          (void *)(uintptr_t)space.address, (size_t)space.bytes, b->host->stream);
    return failed(b, status, "matmul", err);
}

/* out = scale in, broadcast; if `in` is NULL, out = 0 */
static enum plim_status fill_result(const struct plim_blaslt *b, const struct plim_array *out,
                                    const struct plim_array *in, double scale)
{
    struct plim_op op = {.kind = in ? PLIM_OP_BINARY : PLIM_OP_FILL,
                         .binary = PLIM_BINARY_MUL,
                         .n_out = 1,
                         .n_in = in ? 1 : 0,
                         .alpha = in ? scale : 0,
                         .out = {out},
                         .in = {in}};
    if (in && scale == 1) op.kind = PLIM_OP_COPY;
    return b->host->launch(b->host->user, &op);
}

enum plim_status plim_blaslt_matmul_int8(struct plim_blaslt *b, const struct plim_op *op,
                                         struct plim_error *err)
{
    struct plim_array right = *op->in[1];
    if (right.ndim != 2) return plim_fail(err, PLIM_INVALID, "a weight in bytes that is no matrix");
    for (int d = 0; d < 2; d++) {
        right.shape[d] = op->in[1]->shape[1 - d];
        right.stride[d] = op->in[1]->stride[1 - d];
    }
    const struct plim_op product = {.kind = PLIM_OP_MATMUL,
                                    .n_out = 1,
                                    .n_in = 2,
                                    .alpha = 1,
                                    .out = {op->out[0]},
                                    .in = {op->in[0], &right}};
    return plim_blaslt_matmul(b, &product, err);
}

enum plim_status plim_blaslt_matmul(struct plim_blaslt *b, const struct plim_op *op,
                                    struct plim_error *err)
{
    if (plim_array_elements(op->out[0]) == 0) return PLIM_OK;
    const struct plim_array *c = op->n_in > 2 && op->beta != 0 ? op->in[2] : NULL;
    if (op->in[0]->ndim && op->in[0]->shape[op->in[0]->ndim - 1] == 0)
        return fill_result(b, op->out[0], c, op->beta);
    struct plim_gemm g;
    enum plim_status st = plim_gemm_describe(op, &g, err);
    if (!st && g.batch > INT32_MAX)
        st = plim_fail(err, PLIM_UNSUPPORTED, "more than 2^31 matrices in one matmul");
    if (!st && g.addend == PLIM_GEMM_C_COPIED) st = fill_result(b, op->out[0], c, 1);
    for (int64_t i = 0, runs = st ? 0 : plim_gemm_runs(&g); i < runs && !st; i++)
        st = run(b, op, &g, i, err);
    return st;
}
