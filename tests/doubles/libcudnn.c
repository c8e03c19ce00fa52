/* A cuDNN for tests: the backend API's descriptors, and graphs that run by their definition on host
 * memory (cudnn_interpreter.c). Which GPU it has comes from gpu_state.h; its engines support what
 * the real ones support of attention, and ask for the workspace that the real ones ask for
 * (tests/unit/test_cudnn_real.c compares those formulas with the real library). It writes over that
 * workspace.
 */
#include "gpu_state.h"
#include "cudnn_descriptor.h"
#include "cudnn_text.h"
#include <stdlib.h>
#include <string.h>

/* --- descriptors ------------------------------------------------------------------------------ */

size_t attribute_size(cudnnBackendAttributeType_t type)
{
    switch (type) {
    case CUDNN_TYPE_INT64:
    case CUDNN_TYPE_DOUBLE:
    case CUDNN_TYPE_VOID_PTR:
    case CUDNN_TYPE_HANDLE:
    case CUDNN_TYPE_BACKEND_DESCRIPTOR:
        return 8;
    case CUDNN_TYPE_DATA_TYPE:
    case CUDNN_TYPE_POINTWISE_MODE:
    case CUDNN_TYPE_REDUCTION_OPERATOR_TYPE:
    case CUDNN_TYPE_HEUR_MODE:
    case CUDNN_TYPE_RNG_DISTRIBUTION:
        return sizeof(int);
    case CUDNN_TYPE_BOOLEAN:
    case CUDNN_TYPE_CHAR:
        return 1;
    default:
        return 0;
    }
}

struct descriptor *descriptor_create(cudnnBackendDescriptorType_t type)
{
    struct descriptor *d = calloc(1, sizeof *d);
    if (d) *d = (struct descriptor){.type = type, .references = 1};
    return d;
}

void descriptor_retain(struct descriptor *d)
{
    d->references++;
}

static void attribute_finish(struct attribute *a)
{
    if (a->type == CUDNN_TYPE_BACKEND_DESCRIPTOR)
        for (int64_t i = 0; i < a->count; i++)
            descriptor_release(((struct descriptor **)a->values)[i]);
    free(a->values);
}

void descriptor_release(struct descriptor *d)
{
    if (!d || --d->references) return;
    for (int i = 0; i < d->attributes; i++) attribute_finish(&d->attribute[i]);
    descriptor_release(d->graph);
    free(d);
}

const struct attribute *descriptor_find(const struct descriptor *d,
                                        cudnnBackendAttributeName_t name)
{
    for (int i = 0; d && i < d->attributes; i++)
        if (d->attribute[i].name == name) return &d->attribute[i];
    return NULL;
}

struct descriptor *descriptor_link(const struct descriptor *d, cudnnBackendAttributeName_t name)
{
    const struct attribute *a = descriptor_find(d, name);
    return a && a->type == CUDNN_TYPE_BACKEND_DESCRIPTOR ? *(struct descriptor **)a->values : NULL;
}

int64_t descriptor_number(const struct descriptor *d, cudnnBackendAttributeName_t name,
                          int64_t plain)
{
    const struct attribute *a = descriptor_find(d, name);
    if (!a) return plain;
    size_t size = attribute_size(a->type);
    if (size == 8) return *(const int64_t *)a->values;
    return size == 1 ? *(const char *)a->values : *(const int *)a->values;
}

/* --- engines ---------------------------------------------------------------------------------- */

/* What an engine has to know of an attention graph. Its first product is Q K^T. */
struct attention {
    bool backward, dropout;
    int64_t batch, heads, kv_heads, q, k, size;
};

static bool read_attention(const struct descriptor *graph, struct attention *out)
{
    const struct attribute *ops = descriptor_find(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS);
    int products = 0;
    bool dropout = false;
    for (int64_t i = 0; ops && i < ops->count; i++) {
        const struct descriptor *op = ((struct descriptor **)ops->values)[i];
        dropout |= op->type == CUDNN_BACKEND_OPERATION_RNG_DESCRIPTOR;
        if (op->type != CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR || products++) continue;
        const struct descriptor *a = descriptor_link(op, CUDNN_ATTR_OPERATION_MATMUL_ADESC);
        const struct descriptor *b = descriptor_link(op, CUDNN_ATTR_OPERATION_MATMUL_BDESC);
        const int64_t *q = descriptor_find(a, CUDNN_ATTR_TENSOR_DIMENSIONS)->values;
        const int64_t *k = descriptor_find(b, CUDNN_ATTR_TENSOR_DIMENSIONS)->values;
        *out = (struct attention){false, false, q[0], q[1], k[1], q[2], k[3], q[3]};
    }
    out->backward = products == 5;
    out->dropout = dropout;
    return products == 2 || products == 5;
}

/* What engines 3 and 5 keep of dropout: a bit for each score, in tiles of 128 x 128. */
static int64_t dropout_bits(const struct attention *a)
{
    int64_t q_tiles = (a->q + 127) / 128, k_tiles = (a->k + 127) / 128;
    return a->dropout ? a->batch * a->heads * q_tiles * k_tiles * (128 * 128 / 8) : 0;
}

static int64_t forward_workspace(const struct attention *a, int64_t engine)
{
    if (engine == 2) return a->q > 1 ? 256 : 0;
    return engine == 3 && a->dropout ? dropout_bits(a) + 128 : 0;
}

/* Engine 6 is for 9.0, engine 5 for 10.x, engine 7 for everything from 8.0 on. */
static int64_t backward_workspace(const struct attention *a, int64_t engine)
{
    int64_t heads = a->batch * a->heads, bytes = engine == 5 ? dropout_bits(a) : 0;
    if (a->heads != a->kv_heads) bytes += 4 * heads * a->k * a->size;
    if (engine == 7) return bytes + 4 * heads * ((a->q + 7) / 8 * 8) * a->size + 128;
    if (engine == 6) return bytes + 256;
    return bytes ? bytes + 128 : 0;
}

static bool is_supported(const struct attention *a, int cc)
{
    if (cc < 80 || a->size % 8 || a->heads % a->kv_heads) return false;
    return a->size <= (a->backward && cc != 90 ? 128 : 256);
}

/* The engines for this GPU, the best first. Returns how many. */
static int list_engines(const struct attention *a, int cc, struct descriptor *configs[],
                        int64_t size)
{
    int own = cc == 90 ? 2 : cc / 10 == 10 ? 3 : 1, count = 0;
    bool tiny = !a->dropout && a->q > 1 && (a->q <= 128 || a->k <= 128);
    int64_t engines[2] = {own, 1};
    if (a->backward) {
        engines[0] = cc == 90 ? 6 : cc / 10 == 10 && !tiny ? 5 : 7;
        engines[1] = 7;
    }
    if (!is_supported(a, cc)) return 0;
    for (int i = 0; i < 2 && i < size; i++) {
        if (i && engines[i] == engines[0]) break;
        configs[i]->engine = engines[i];
        configs[i]->workspace_bytes =
            (a->backward ? backward_workspace : forward_workspace)(a, engines[i]);
        configs[i]->finalized = true;
        count++;
    }
    return count;
}

/* --- the interface ---------------------------------------------------------------------------- */

static cudnnStatus_t fault(void)
{
    if (gpu_fault(GPU_FAULT_OOM_LIB)) return CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED;
    if (gpu_fault(GPU_FAULT_DISGUISED_LIB) || gpu_gone())
        return CUDNN_STATUS_EXECUTION_FAILED_CUDA_DRIVER;
    return CUDNN_STATUS_SUCCESS;
}

size_t cudnnGetVersion(void)
{
    return CUDNN_VERSION;
}

const char *cudnnGetErrorString(cudnnStatus_t status)
{
    return status ? "a failure of the stand-in" : "success";
}

struct cudnnContext {
    cudaStream_t stream;
};

cudnnStatus_t cudnnCreate(cudnnHandle_t *handle)
{
    cudnnStatus_t st = fault();
    *handle = st ? NULL : calloc(1, sizeof **handle);
    return st;
}

cudnnStatus_t cudnnDestroy(cudnnHandle_t handle)
{
    free(handle);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream)
{
    handle->stream = stream;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type,
                                           cudnnBackendDescriptor_t *out)
{
    *out = descriptor_create(type);
    return *out ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED;
}

cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t d)
{
    descriptor_release(d);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t to,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t count,
                                       const void *values)
{
    struct descriptor *d = to;
    size_t bytes = attribute_size(type) * (size_t)count;
    if (!d || d->finalized || !values || !bytes) return CUDNN_STATUS_BAD_PARAM;
    if (descriptor_find(d, name) || d->attributes == MAX_ATTRIBUTES) return CUDNN_STATUS_BAD_PARAM;
    if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR)
        for (int64_t i = 0; i < count; i++) {
            struct descriptor *linked = ((struct descriptor *const *)values)[i];
            if (!linked || !linked->finalized) return CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED;
        }
    struct attribute a = {name, type, count, malloc(bytes)};
    if (!a.values) return CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED;
    memcpy(a.values, values, bytes);
    if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR)
        for (int64_t i = 0; i < count; i++) descriptor_retain(((struct descriptor **)a.values)[i]);
    d->attribute[d->attributes++] = a;
    return CUDNN_STATUS_SUCCESS;
}

/* The real one crashes without the handle. */
static cudnnStatus_t restore_plan(struct descriptor *d, const struct attribute *text)
{
    if (!descriptor_find(d, CUDNN_ATTR_EXECUTION_PLAN_HANDLE)) abort();
    return plan_read(text->values, (size_t)text->count, d) ? CUDNN_STATUS_SUCCESS
                                                           : CUDNN_STATUS_BAD_PARAM;
}

/* A plan compiles: that is where a full GPU shows. */
static cudnnStatus_t finalize_plan(struct descriptor *d)
{
    const struct attribute *text = descriptor_find(d, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION);
    if (text) return restore_plan(d, text);
    if (gpu_fault(GPU_FAULT_CHOICE)) return CUDNN_STATUS_NOT_SUPPORTED;
    const struct descriptor *config = descriptor_link(d, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
    cudnnStatus_t st = config ? fault() : CUDNN_STATUS_BAD_PARAM;
    if (st) return st;
    d->workspace_bytes = config->workspace_bytes;
    d->graph = config->graph;
    descriptor_retain(d->graph);
    return CUDNN_STATUS_SUCCESS;
}

static bool is_complete_tensor(const struct descriptor *d)
{
    const struct attribute *n = descriptor_find(d, CUDNN_ATTR_TENSOR_DIMENSIONS);
    const struct attribute *s = descriptor_find(d, CUDNN_ATTR_TENSOR_STRIDES);
    if (!n || !s || n->count != 4 || s->count != 4) return false;
    for (int i = 0; i < 4; i++)
        if (((const int64_t *)n->values)[i] < 1 || ((const int64_t *)s->values)[i] < 1)
            return false;
    return descriptor_number(d, CUDNN_ATTR_TENSOR_UNIQUE_ID, 0) > 0;
}

cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor)
{
    struct descriptor *d = descriptor;
    cudnnStatus_t st = CUDNN_STATUS_SUCCESS;
    struct attention a;
    if (!d || d->finalized) return CUDNN_STATUS_BAD_PARAM;
    if (d->type == CUDNN_BACKEND_TENSOR_DESCRIPTOR && !is_complete_tensor(d))
        st = CUDNN_STATUS_BAD_PARAM;
    if (d->type == CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR && !read_attention(d, &a))
        st = CUDNN_STATUS_NOT_SUPPORTED_GRAPH_PATTERN;
    if (d->type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR) st = finalize_plan(d);
    d->finalized = !st;
    return st;
}

static cudnnStatus_t heuristic_results(const struct descriptor *heuristic, int64_t asked,
                                       int64_t *got, struct descriptor *configs[])
{
    struct descriptor *graph = descriptor_link(heuristic, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
    struct attention a;
    if (!heuristic->finalized || !graph || !read_attention(graph, &a))
        return CUDNN_STATUS_BAD_PARAM;
    *got = list_engines(&a, gpu_model(0)->compute_capability, configs, asked);
    for (int64_t i = 0; i < *got; i++) {
        configs[i]->graph = graph;
        descriptor_retain(graph);
    }
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t give_text(const struct descriptor *plan, int64_t asked, int64_t *got, void *to)
{
    char *text = plan_write(plan);
    if (!text) return CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED;
    *got = (int64_t)strlen(text) + 1;
    if (to) memcpy(to, text, (size_t)(asked < *got ? asked : *got));
    free(text);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t const from,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t asked,
                                       int64_t *got, void *values)
{
    const struct descriptor *d = from;
    (void)type;
    *got = 1;
    switch (name) {
    case CUDNN_ATTR_ENGINEHEUR_RESULTS:
        return heuristic_results(d, asked, got, values);
    case CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE:
    case CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE:
        memcpy(values, &d->workspace_bytes, sizeof d->workspace_bytes);
        return CUDNN_STATUS_SUCCESS;
    case CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION:
        return give_text(d, asked, got, values);
    case CUDNN_ATTR_ENGINECFG_ENGINE:
        (*(struct descriptor **)values)->engine = d->engine;
        return CUDNN_STATUS_SUCCESS;
    case CUDNN_ATTR_ENGINE_GLOBAL_INDEX:
        memcpy(values, &d->engine, sizeof d->engine);
        return CUDNN_STATUS_SUCCESS;
    default:
        return CUDNN_STATUS_NOT_SUPPORTED;
    }
}

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan_descriptor,
                                  cudnnBackendDescriptor_t pack_descriptor)
{
    const struct descriptor *plan = plan_descriptor, *pack = pack_descriptor;
    if (!handle || !plan->finalized || !pack->finalized) return CUDNN_STATUS_BAD_PARAM;
    cudnnStatus_t st = fault();
    if (st) return st;
    const struct attribute *space = descriptor_find(pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE);
    void *workspace = space ? *(void **)space->values : NULL;
    if (plan->workspace_bytes && !workspace) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
    if (plan->workspace_bytes) memset(workspace, 0xa5, (size_t)plan->workspace_bytes);
    return graph_run(plan->graph, pack);
}
