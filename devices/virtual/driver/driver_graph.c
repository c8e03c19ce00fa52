/* The CUDA driver: graphs. */
#include "driver_context.h"
#include <string.h>

/* --- whole graphs ----------------------------------------------------------------------------- */

LIKE_RUNTIME_ANYWHERE(cuGraphCreate, cudaGraphCreate, (void **out, unsigned flags), (out, flags))
LIKE_RUNTIME_ANYWHERE(cuGraphDestroy, cudaGraphDestroy, (void *graph), (graph))
LIKE_RUNTIME_ANYWHERE(cuGraphClone, cudaGraphClone, (void **out, void *graph), (out, graph))
LIKE_RUNTIME_ANYWHERE(cuGraphExecDestroy, cudaGraphExecDestroy, (void *graph), (graph))
LIKE_RUNTIME_ANYWHERE(cuGraphGetNodes, cudaGraphGetNodes,
                      (void *graph, void **nodes, size_t *count), (graph, nodes, count))
LIKE_RUNTIME_ANYWHERE(cuGraphGetRootNodes, cudaGraphGetRootNodes,
                      (void *graph, void **nodes, size_t *count), (graph, nodes, count))
LIKE_RUNTIME_ANYWHERE(cuGraphNodeGetType, cudaGraphNodeGetType, (void *node, int *type),
                      (node, type))
LIKE_RUNTIME_ANYWHERE(cuGraphNodeGetDependencies_v2, cudaGraphNodeGetDependencies_v2,
                      (void *node, void **out, void *edges, size_t *count),
                      (node, out, edges, count))
LIKE_RUNTIME_ANYWHERE(cuGraphDebugDotPrint, cudaGraphDebugDotPrint,
                      (void *graph, const char *path, unsigned flags), (graph, path, flags))
LIKE_RUNTIME(cuGraphUpload, cudaGraphUpload, (void *graph, void *stream), (graph, stream))
PER_THREAD(cuGraphUpload, _ptsz)
LIKE_RUNTIME(cuGraphLaunch, cudaGraphLaunch, (void *graph, void *stream), (graph, stream))
PER_THREAD(cuGraphLaunch, _ptsz)

ANSWER int cuGraphNodeGetDependencies(void *node, void **out, size_t *count)
{
    return cuGraphNodeGetDependencies_v2(node, out, NULL, count);
}

/* The older versions have (out, graph, error node, log, its size); all arguments after the graph are ignored. */
LIKE_RUNTIME(cuGraphInstantiateWithFlags, cudaGraphInstantiateWithFlags,
             (void **out, void *graph, unsigned long long flags), (out, graph, flags))
ALSO(cuGraphInstantiateWithFlags, cuGraphInstantiate)
ALSO(cuGraphInstantiateWithFlags, cuGraphInstantiate_v2)

struct instantiation { /* CUDA_GRAPH_INSTANTIATE_PARAMS */
    uint64_t flags;
    void *upload_stream, *error_node;
    int result;
};

ANSWER int cuGraphInstantiateWithParams(void **out, void *graph, struct instantiation *parameters)
{
    parameters->error_node = NULL;
    parameters->result = 0;
    return cuGraphInstantiateWithFlags(out, graph, parameters->flags);
}
PER_THREAD(cuGraphInstantiateWithParams, _ptsz)

ANSWER int cuGraphExecUpdate(void *graph, void *other, void **error_node, int *result)
{
    if (error_node) *error_node = NULL;
    if (result) *result = 0;
    return graph && other ? GPU_OK : GPU_INVALID_VALUE;
}

/* The third argument is a structure that starts with the result. */
ANSWER int cuGraphExecUpdate_v2(void *graph, void *other, int *result)
{
    return cuGraphExecUpdate(graph, other, NULL, result);
}

ANSWER int cuGraphExecGetFlags(void *graph, uint64_t *flags)
{
    *flags = 0;
    return graph ? GPU_OK : GPU_INVALID_VALUE;
}

/* --- building graphs node by node ------------------------------------------------------------- */

struct kernel_node { /* CUDA_KERNEL_NODE_PARAMS; the last two fields exist from its second version on */
    struct plim_kernel *function;
    unsigned grid[3], block[3], shared_bytes;
    void **arguments, **extra;
    struct plim_kernel *kernel;
    void *context;
};

#define PLACE                                                                                      \
    struct plim_node **out, struct plim_graph *graph, struct plim_node *const *after, size_t count

static int add_kernel(PLACE, struct plim_kernel *kernel)
{
    int before = plim_self_peek_error(), failed = plim_driver_ready();
    if (!failed && !kernel) failed = GPU_INVALID_VALUE;
    if (failed) return failed;
    return plim_driver_result(before, plim_runtime_add_kernel(out, graph, after, count, kernel));
}

ANSWER int cuGraphAddKernelNode(PLACE, const struct kernel_node *node)
{
    return add_kernel(out, graph, after, count, node->function);
}

ANSWER int cuGraphAddKernelNode_v2(PLACE, const struct kernel_node *node)
{
    return add_kernel(out, graph, after, count, node->function ? node->function : node->kernel);
}

ANSWER int cuGraphAddNode(PLACE, struct plim_node_parameters *parameters)
{
    struct kernel_node node;
    memcpy(&node, parameters->of_type, sizeof(node));
    if (parameters->type == PLIM_NODE_KERNEL)
        return cuGraphAddKernelNode_v2(out, graph, after, count, &node);
    int before = plim_self_peek_error(), failed = plim_driver_ready();
    if (failed) return failed;
    return plim_driver_result(before, plim_runtime_add_node(out, graph, after, count, parameters));
}

ANSWER int cuGraphAddNode_v2(struct plim_node **out, struct plim_graph *graph,
                             struct plim_node *const *after, const void *edges, size_t count,
                             struct plim_node_parameters *parameters)
{
    (void)edges;
    return cuGraphAddNode(out, graph, after, count, parameters);
}

#define ADD(name, runtime) LIKE_RUNTIME_ANYWHERE(name, runtime, (PLACE), (out, graph, after, count))
ADD(cuGraphAddEmptyNode, cudaGraphAddEmptyNode)
ADD(cuGraphAddMemcpyNode, cudaGraphAddMemcpyNode)
ADD(cuGraphAddMemsetNode, cudaGraphAddMemsetNode)
ADD(cuGraphAddHostNode, cudaGraphAddHostNode)
ADD(cuGraphAddEventRecordNode, cudaGraphAddEventRecordNode)
ADD(cuGraphAddEventWaitNode, cudaGraphAddEventWaitNode)
LIKE_RUNTIME_ANYWHERE(cuGraphAddChildGraphNode, cudaGraphAddChildGraphNode,
                      (PLACE, const struct plim_graph *child), (out, graph, after, count, child))
LIKE_RUNTIME_ANYWHERE(cuGraphChildGraphNodeGetGraph, cudaGraphChildGraphNodeGetGraph,
                      (struct plim_node *node, struct plim_graph **graph), (node, graph))
LIKE_RUNTIME_ANYWHERE(cuGraphDestroyNode, cudaGraphDestroyNode, (struct plim_node *node), (node))

LIKE_RUNTIME_ANYWHERE(cuGraphConditionalHandleCreate, cudaGraphConditionalHandleCreate,
                      (uint64_t *handle), (handle))

LIKE_RUNTIME_ANYWHERE(cuGraphNodeSetParams, cudaGraphNodeSetParams, (const void *object), (object))
ALSO(cuGraphNodeSetParams, cuGraphKernelNodeSetParams)
ALSO(cuGraphNodeSetParams, cuGraphKernelNodeSetParams_v2)
ALSO(cuGraphNodeSetParams, cuGraphKernelNodeSetAttribute)
ALSO(cuGraphNodeSetParams, cuGraphKernelNodeCopyAttributes)
ALSO(cuGraphNodeSetParams, cuGraphMemcpyNodeSetParams)
ALSO(cuGraphNodeSetParams, cuGraphMemsetNodeSetParams)
ALSO(cuGraphNodeSetParams, cuGraphHostNodeSetParams)
ALSO(cuGraphNodeSetParams, cuGraphExecNodeSetParams)
ALSO(cuGraphNodeSetParams, cuGraphExecKernelNodeSetParams)
ALSO(cuGraphNodeSetParams, cuGraphExecKernelNodeSetParams_v2)
ALSO(cuGraphNodeSetParams, cuGraphExecMemcpyNodeSetParams)
ALSO(cuGraphNodeSetParams, cuGraphExecMemsetNodeSetParams)
ALSO(cuGraphNodeSetParams, cuGraphExecHostNodeSetParams)
ALSO(cuGraphNodeSetParams, cuGraphExecChildGraphNodeSetParams)
ALSO(cuGraphNodeSetParams, cuGraphNodeSetEnabled)
