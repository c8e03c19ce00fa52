/* cuDNN's backend API; see dnn_graph.h. */
#include "dnn_graph.h"
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static const struct plim_cuda_library_symbol symbols[] = {
#define SYMBOL(name) {#name, offsetof(struct plim_dnn, name)},
    PLIM_DNN_MAP(SYMBOL)
#undef SYMBOL
};

enum plim_status plim_dnn_load(struct plim_dnn *out, struct plim_error *err)
{
    *out = (struct plim_dnn){0};
    enum plim_status st = plim_cuda_library_open(&plim_cuda_library_cudnn, &out->library, err);
    if (!st)
        st = plim_cuda_library_resolve(&out->library, symbols, sizeof symbols / sizeof *symbols,
                                       out, err);
    if (st) plim_dnn_unload(out);
    return st;
}

void plim_dnn_unload(struct plim_dnn *dnn)
{
    if (dnn) plim_cuda_library_close(&dnn->library);
}

/* --- descriptors ------------------------------------------------------------------------------ */

/* A descriptor being filled by a sequence of calls, of which the first failure is kept. */
struct filling {
    const struct plim_dnn *dnn;
    cudnnBackendDescriptor_t descriptor;
    cudnnStatus_t status;
};

static struct filling begin(const struct plim_dnn *dnn, cudnnBackendDescriptorType_t type)
{
    struct filling f = {.dnn = dnn};
    f.status = dnn->cudnnBackendCreateDescriptor(type, &f.descriptor);
    return f;
}

static void set(struct filling *f, cudnnBackendAttributeName_t name,
                cudnnBackendAttributeType_t type, int64_t count, const void *values)
{
    if (!f->status)
        f->status = f->dnn->cudnnBackendSetAttribute(f->descriptor, name, type, count, values);
}

static void set_int(struct filling *f, cudnnBackendAttributeName_t name, int64_t value)
{
    set(f, name, CUDNN_TYPE_INT64, 1, &value);
}

static void set_true(struct filling *f, cudnnBackendAttributeName_t name)
{
    bool value = true;
    set(f, name, CUDNN_TYPE_BOOLEAN, 1, &value);
}

static void set_descriptor(struct filling *f, cudnnBackendAttributeName_t name,
                           cudnnBackendDescriptor_t value)
{
    set(f, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value);
}

static void finalize(struct filling *f)
{
    if (!f->status) f->status = f->dnn->cudnnBackendFinalize(f->descriptor);
}

static void destroy(const struct plim_dnn *dnn, cudnnBackendDescriptor_t *descriptor)
{
    if (*descriptor) dnn->cudnnBackendDestroyDescriptor(*descriptor);
    *descriptor = NULL;
}

/* --- tensors ---------------------------------------------------------------------------------- */

struct plim_dnn_shape plim_dnn_packed(int64_t n0, int64_t n1, int64_t n2, int64_t n3)
{
    return (struct plim_dnn_shape){{n0, n1, n2, n3}, {n1 * n2 * n3, n2 * n3, n3, 1}};
}

struct plim_dnn_shape plim_dnn_transposed(struct plim_dnn_shape s)
{
    return (struct plim_dnn_shape){{s.extent[0], s.extent[1], s.extent[3], s.extent[2]},
                                   {s.stride[0], s.stride[1], s.stride[3], s.stride[2]}};
}

void plim_dnn_graph_init(struct plim_dnn_graph *g, const struct plim_dnn *dnn, cudnnHandle_t handle)
{
    *g = (struct plim_dnn_graph){.dnn = dnn, .handle = handle};
}

enum kind { STORED, VIRTUAL, BY_VALUE };

static int add_tensor(struct plim_dnn_graph *g, cudnnDataType_t type, struct plim_dnn_shape shape,
                      enum kind kind)
{
    enum { ALIGNMENT = 16 };
    if (g->tensors == PLIM_DNN_MAX_TENSORS && !g->status) g->status = CUDNN_STATUS_BAD_PARAM;
    if (g->status) return 0;
    struct filling f = begin(g->dnn, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    set(&f, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type);
    set(&f, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, PLIM_DNN_DIMS, shape.extent);
    set(&f, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, PLIM_DNN_DIMS, shape.stride);
    set_int(&f, CUDNN_ATTR_TENSOR_UNIQUE_ID, g->tensors + 1);
    set_int(&f, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, ALIGNMENT);
    if (kind == VIRTUAL) set_true(&f, CUDNN_ATTR_TENSOR_IS_VIRTUAL);
    if (kind == BY_VALUE) set_true(&f, CUDNN_ATTR_TENSOR_IS_BY_VALUE);
    finalize(&f);
    g->status = f.status;
    g->shape[g->tensors] = shape;
    g->tensor[g->tensors] = f.descriptor;
    return g->tensors++;
}

int plim_dnn_tensor(struct plim_dnn_graph *g, cudnnDataType_t type, struct plim_dnn_shape shape)
{
    return add_tensor(g, type, shape, STORED);
}

int plim_dnn_virtual(struct plim_dnn_graph *g, cudnnDataType_t type, struct plim_dnn_shape shape)
{
    return add_tensor(g, type, shape, VIRTUAL);
}

int plim_dnn_scalar(struct plim_dnn_graph *g, cudnnDataType_t type)
{
    return add_tensor(g, type, plim_dnn_packed(1, 1, 1, 1), BY_VALUE);
}

/* --- operations ------------------------------------------------------------------------------- */

/* Begins an operation and its parameters; `link`: the operation's attribute for the parameters. */
static struct filling begin_operation(const struct plim_dnn_graph *g, cudnnBackendDescriptorType_t type,
                                      cudnnBackendAttributeName_t link, struct filling *parameters)
{
    finalize(parameters);
    struct filling o = begin(g->dnn, type);
    set_descriptor(&o, link, parameters->descriptor);
    return o;
}

/* Finishes and keeps the parameters' descriptor, which may be missing, and the operation's. */
static void add_operation(struct plim_dnn_graph *g, struct filling *parameters,
                          struct filling *operation)
{
    finalize(operation);
    if (parameters) g->detail[g->operations] = parameters->descriptor;
    g->operation[g->operations++] = operation->descriptor;
    g->status = parameters && parameters->status ? parameters->status : operation->status;
}

static bool can_add(struct plim_dnn_graph *g)
{
    if (g->operations == PLIM_DNN_MAX_OPERATIONS && !g->status) g->status = CUDNN_STATUS_BAD_PARAM;
    return !g->status;
}

static void set_tensor(struct filling *f, const struct plim_dnn_graph *g,
                       cudnnBackendAttributeName_t name, int tensor)
{
    if (tensor >= 0) set_descriptor(f, name, g->tensor[tensor]);
}

static void add_pointwise(struct plim_dnn_graph *g, cudnnPointwiseMode_t mode,
                          cudnnDataType_t precision, const int64_t *axis, const int operand[4])
{
    static const cudnnBackendAttributeName_t name[4] = {
        CUDNN_ATTR_OPERATION_POINTWISE_XDESC, CUDNN_ATTR_OPERATION_POINTWISE_BDESC,
        CUDNN_ATTR_OPERATION_POINTWISE_TDESC, CUDNN_ATTR_OPERATION_POINTWISE_YDESC};
    if (!can_add(g)) return;
    struct filling p = begin(g->dnn, CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    set(&p, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode);
    set(&p, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1, &precision);
    if (axis) set(&p, CUDNN_ATTR_POINTWISE_AXIS, CUDNN_TYPE_INT64, 1, axis);
    struct filling o = begin_operation(g, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR,
                                       CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, &p);
    for (int i = 0; i < 4; i++) set_tensor(&o, g, name[i], operand[i]);
    add_operation(g, &p, &o);
}

void plim_dnn_pointwise(struct plim_dnn_graph *g, cudnnPointwiseMode_t mode,
                        cudnnDataType_t precision, int x, int b, int t, int y)
{
    add_pointwise(g, mode, precision, NULL, (const int[4]){x, b, t, y});
}

void plim_dnn_index(struct plim_dnn_graph *g, int64_t axis, int x, int y)
{
    add_pointwise(g, CUDNN_POINTWISE_GEN_INDEX, CUDNN_DATA_INT32, &axis,
                  (const int[4]){x, -1, -1, y});
}

void plim_dnn_matmul(struct plim_dnn_graph *g, int a, int b, int y)
{
    if (!can_add(g)) return;
    cudnnDataType_t precision = CUDNN_DATA_FLOAT;
    struct filling p = begin(g->dnn, CUDNN_BACKEND_MATMUL_DESCRIPTOR);
    set(&p, CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &precision);
    struct filling o = begin_operation(g, CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR,
                                       CUDNN_ATTR_OPERATION_MATMUL_DESC, &p);
    set_tensor(&o, g, CUDNN_ATTR_OPERATION_MATMUL_ADESC, a);
    set_tensor(&o, g, CUDNN_ATTR_OPERATION_MATMUL_BDESC, b);
    set_tensor(&o, g, CUDNN_ATTR_OPERATION_MATMUL_CDESC, y);
    add_operation(g, &p, &o);
}

void plim_dnn_reduce(struct plim_dnn_graph *g, cudnnReduceTensorOp_t fold, int x, int y)
{
    if (!can_add(g)) return;
    cudnnDataType_t precision = CUDNN_DATA_FLOAT;
    struct filling p = begin(g->dnn, CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
    set(&p, CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, 1, &fold);
    set(&p, CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &precision);
    struct filling o = begin_operation(g, CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR,
                                       CUDNN_ATTR_OPERATION_REDUCTION_DESC, &p);
    set_tensor(&o, g, CUDNN_ATTR_OPERATION_REDUCTION_XDESC, x);
    set_tensor(&o, g, CUDNN_ATTR_OPERATION_REDUCTION_YDESC, y);
    add_operation(g, &p, &o);
}

void plim_dnn_reshape(struct plim_dnn_graph *g, int x, int y)
{
    if (!can_add(g)) return;
    struct filling o = begin(g->dnn, CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);
    set_tensor(&o, g, CUDNN_ATTR_OPERATION_RESHAPE_XDESC, x);
    set_tensor(&o, g, CUDNN_ATTR_OPERATION_RESHAPE_YDESC, y);
    add_operation(g, NULL, &o);
}

void plim_dnn_bernoulli(struct plim_dnn_graph *g, double kept, int seed, int offset, int y)
{
    if (!can_add(g)) return;
    cudnnRngDistribution_t distribution = CUDNN_RNG_DISTRIBUTION_BERNOULLI;
    struct filling p = begin(g->dnn, CUDNN_BACKEND_RNG_DESCRIPTOR);
    set(&p, CUDNN_ATTR_RNG_DISTRIBUTION, CUDNN_TYPE_RNG_DISTRIBUTION, 1, &distribution);
    set(&p, CUDNN_ATTR_RNG_BERNOULLI_DIST_PROBABILITY, CUDNN_TYPE_DOUBLE, 1, &kept);
    struct filling o = begin_operation(g, CUDNN_BACKEND_OPERATION_RNG_DESCRIPTOR,
                                       CUDNN_ATTR_OPERATION_RNG_DESC, &p);
    set_tensor(&o, g, CUDNN_ATTR_OPERATION_RNG_SEED, seed);
    set_tensor(&o, g, CUDNN_ATTR_OPERATION_RNG_OFFSET_DESC, offset);
    set_tensor(&o, g, CUDNN_ATTR_OPERATION_RNG_YDESC, y);
    add_operation(g, &p, &o);
}

cudnnStatus_t plim_dnn_graph_seal(struct plim_dnn_graph *g)
{
    if (g->status) return g->status;
    struct filling f = begin(g->dnn, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    set(&f, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, g->operations,
        g->operation);
    if (g->handle) set(&f, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &g->handle);
    finalize(&f);
    g->graph = f.descriptor;
    return g->status = f.status;
}

void plim_dnn_graph_close(struct plim_dnn_graph *g)
{
    destroy(g->dnn, &g->graph);
    for (int i = 0; i < g->operations; i++) {
        destroy(g->dnn, &g->operation[i]);
        destroy(g->dnn, &g->detail[i]);
    }
    for (int i = 0; i < g->tensors; i++) destroy(g->dnn, &g->tensor[i]);
}

/* --- engines and plans ------------------------------------------------------------------------ */

/* The heuristic fills descriptors created by the caller, and may fill fewer than it announced: unsupported ones are
 * removed only then. */
static cudnnStatus_t drop_unsupported(struct plim_dnn_configs *c)
{
    const struct plim_dnn *dnn = c->dnn;
    int64_t got = 0;
    cudnnStatus_t st = CUDNN_STATUS_SUCCESS;
    for (int i = 0; i < PLIM_DNN_MAX_CONFIGS && !st; i++)
        st = dnn->cudnnBackendCreateDescriptor(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, &c->config[i]);
    if (!st)
        st = dnn->cudnnBackendGetAttribute(c->heuristic, CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                           CUDNN_TYPE_BACKEND_DESCRIPTOR, PLIM_DNN_MAX_CONFIGS,
                                           &got, c->config);
    c->count = st ? 0 : (int)(got < PLIM_DNN_MAX_CONFIGS ? got : PLIM_DNN_MAX_CONFIGS);
    for (int i = 0; i < c->count && !st; i++)
        st = dnn->cudnnBackendGetAttribute(c->config[i], CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE,
                                           CUDNN_TYPE_INT64, 1, &got, &c->workspace_bytes[i]);
    return st;
}

cudnnStatus_t plim_dnn_configs_open(const struct plim_dnn_graph *g, cudnnBackendDescriptor_t device,
                                    struct plim_dnn_configs *out)
{
    *out = (struct plim_dnn_configs){.dnn = g->dnn, .handle = g->handle};
    cudnnBackendHeurMode_t mode = CUDNN_HEUR_MODE_A;
    struct filling f = begin(g->dnn, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    set_descriptor(&f, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, g->graph);
    set(&f, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
    if (device) set_descriptor(&f, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, device);
    finalize(&f);
    out->heuristic = f.descriptor;
    return f.status ? f.status : drop_unsupported(out);
}

void plim_dnn_configs_close(struct plim_dnn_configs *c)
{
    for (int i = 0; i < PLIM_DNN_MAX_CONFIGS; i++) destroy(c->dnn, &c->config[i]);
    destroy(c->dnn, &c->heuristic);
    c->count = 0;
}

int64_t plim_dnn_config_engine(const struct plim_dnn_configs *c, int i)
{
    const struct plim_dnn *dnn = c->dnn;
    int64_t got = 0, index = -1;
    struct filling engine = begin(dnn, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
    if (!engine.status &&
        !dnn->cudnnBackendGetAttribute(c->config[i], CUDNN_ATTR_ENGINECFG_ENGINE,
                                       CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &got, &engine.descriptor))
        dnn->cudnnBackendGetAttribute(engine.descriptor, CUDNN_ATTR_ENGINE_GLOBAL_INDEX,
                                      CUDNN_TYPE_INT64, 1, &got, &index);
    destroy(dnn, &engine.descriptor);
    return index;
}

/* Finishes a plan and stores it with its workspace size. */
static cudnnStatus_t finish_plan(struct filling *f, cudnnBackendDescriptor_t *plan,
                                 int64_t *workspace_bytes)
{
    int64_t got;
    finalize(f);
    if (!f->status)
        f->status = f->dnn->cudnnBackendGetAttribute(f->descriptor,
                                                     CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                                                     CUDNN_TYPE_INT64, 1, &got, workspace_bytes);
    if (f->status) destroy(f->dnn, &f->descriptor);
    *plan = f->descriptor;
    return f->status;
}

cudnnStatus_t plim_dnn_plan_open(const struct plim_dnn_configs *c, int i,
                                 cudnnBackendDescriptor_t *plan, int64_t *workspace_bytes)
{
    struct filling f = begin(c->dnn, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    if (c->handle) set(&f, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &c->handle);
    set_descriptor(&f, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, c->config[i]);
    return finish_plan(&f, plan, workspace_bytes);
}

char *plim_dnn_plan_write(const struct plim_dnn *dnn, cudnnBackendDescriptor_t plan, size_t *bytes)
{
    const cudnnBackendAttributeName_t name = CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION;
    int64_t size = 0, got = 0;
    *bytes = 0;
    if (dnn->cudnnBackendGetAttribute(plan, name, CUDNN_TYPE_CHAR, 0, &size, NULL) || size <= 0)
        return NULL;
    char *text = calloc((size_t)size + 1, 1);
    if (text && !dnn->cudnnBackendGetAttribute(plan, name, CUDNN_TYPE_CHAR, size, &got, text)) {
        *bytes = strlen(text);
        return text;
    }
    free(text);
    return NULL;
}

/* cuDNN 9.19 crashes if neither of the two is set before the text. */
cudnnStatus_t plim_dnn_plan_read(const struct plim_dnn *dnn, cudnnHandle_t handle,
                                 cudnnBackendDescriptor_t device, const char *text, size_t bytes,
                                 cudnnBackendDescriptor_t *plan, int64_t *workspace_bytes)
{
    struct filling f = begin(dnn, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    if (handle) set(&f, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle);
    if (!handle) set_descriptor(&f, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, device);
    set(&f, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, (int64_t)bytes, text);
    return finish_plan(&f, plan, workspace_bytes);
}

cudnnStatus_t plim_dnn_execute(const struct plim_dnn *dnn, cudnnHandle_t handle,
                               cudnnBackendDescriptor_t plan, int count, const int *id,
                               void *const *address, void *workspace)
{
    int64_t unique[PLIM_DNN_MAX_TENSORS];
    for (int i = 0; i < count; i++) unique[i] = id[i] + 1;
    struct filling f = begin(dnn, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    set(&f, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, count, unique);
    set(&f, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, count, address);
    set(&f, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace);
    finalize(&f);
    if (!f.status) f.status = dnn->cudnnBackendExecute(handle, plan, f.descriptor);
    destroy(dnn, &f.descriptor);
    return f.status;
}
