/* The CUDA runtime: graphs. An executable graph is a separate copy, as in CUDA: the original may be destroyed. */
#include "runtime.h"
#include "devices/virtual/machine/version.h"
#include "devices/virtual/process/unsupported.h"
#include <string.h>
#include <stdio.h>

ANSWER int cudaGraphCreate(void **out, unsigned flags)
{
    (void)flags;
    *out = plim_graph_create();
    return plim_self_error(*out ? GPU_OK : GPU_OUT_OF_MEMORY);
}

ANSWER int cudaGraphDestroy(void *graph)
{
    plim_graph_destroy(graph);
    return plim_self_error(graph ? GPU_OK : GPU_INVALID_VALUE);
}

ANSWER int cudaGraphClone(void **out, void *graph)
{
    *out = plim_graph_clone(graph);
    return plim_self_error(*out ? GPU_OK : GPU_OUT_OF_MEMORY);
}

ANSWER int cudaGraphInstantiateWithFlags(void **out, void *graph, unsigned long long flags)
{
    (void)flags;
    if (!graph) return plim_self_error(GPU_INVALID_VALUE);
    return cudaGraphClone(out, graph);
}

/* CUDA 11: (out, graph, error node, log, its size). From 12 on: (out, graph, flags). */
ANSWER int cudaGraphInstantiate(void **out, void *graph)
{
    return cudaGraphInstantiateWithFlags(out, graph, 0);
}

ANSWER int cudaGraphExecDestroy(void *graph) { return cudaGraphDestroy(graph); }

ANSWER int cudaGraphUpload(void *graph, void *stream)
{
    (void)stream;
    return plim_self_error(graph ? GPU_OK : GPU_INVALID_VALUE);
}
PER_THREAD(cudaGraphUpload, _ptsz)

ANSWER int cudaGraphLaunch(void *graph, void *stream)
{
    if (!graph) return plim_self_error(GPU_INVALID_VALUE);
    return plim_self_error(plim_graph_launch(graph, stream));
}
PER_THREAD(cudaGraphLaunch, _ptsz)

/* CUDA 11: (graph, other, error node, result). From 12 on: (graph, other, a structure that starts with the result).
 * Success is 0 in both. */
ANSWER int cudaGraphExecUpdate(void *graph, void *other, void *third, int *result)
{
    (void)graph;
    (void)other;
    int *out = plim_version_runtime() < 12000 ? result : third;
    if (out) *out = 0;
    return GPU_OK;
}

ANSWER int cudaGraphGetNodes(void *graph, void **nodes, size_t *count)
{
    struct plim_node **of;
    size_t has = plim_graph_nodes(graph, &of);
    for (size_t i = 0; nodes && i < *count; i++) nodes[i] = i < has ? (void *)of[i] : NULL;
    *count = nodes && *count < has ? *count : has;
    return GPU_OK;
}

ANSWER int cudaGraphGetRootNodes(void *graph, void **nodes, size_t *count)
{
    struct plim_node **of;
    size_t has = plim_graph_nodes(graph, &of) ? 1 : 0;
    if (nodes && *count && has) nodes[0] = of[0];
    *count = has;
    return GPU_OK;
}

ANSWER int cudaGraphNodeGetType(void *node, int *type)
{
    *type = (int)((struct plim_node *)node)->type;
    return GPU_OK;
}

static void dependencies(const struct plim_node *node, void **out, size_t *count)
{
    size_t has = node->before != NULL;
    if (out && *count && has) out[0] = node->before;
    *count = has;
}

/* CUDA 13 has the edge data before the count. */
ANSWER int cudaGraphNodeGetDependencies(void *node, void **out, void *third, size_t *fourth)
{
    dependencies(node, out, plim_version_runtime() >= 13000 ? fourth : third);
    return GPU_OK;
}

ANSWER int cudaGraphNodeGetDependencies_v2(void *node, void **out, void *edges, size_t *count)
{
    (void)edges;
    dependencies(node, out, count);
    return GPU_OK;
}

ANSWER int cudaGraphDebugDotPrint(void *graph, const char *path, unsigned flags)
{
    (void)flags;
    FILE *file = fopen(path, "w");
    if (!file) return plim_self_error(GPU_INVALID_VALUE);
    fprintf(file, "digraph { nodes [label=\"%zu nodes\"] }\n", plim_graph_nodes(graph, NULL));
    fclose(file);
    return GPU_OK;
}

/* --- building graphs node by node ------------------------------------------------------------- */

/* Stores the dependencies of a node; only the last one is kept. */
static int store_dependencies(struct plim_node *node, struct plim_node *const *after, size_t count)
{
    node->before = count ? after[count - 1] : NULL;
    return GPU_OK;
}

static int add(struct plim_node **out, struct plim_graph *graph, struct plim_node *const *after,
               size_t count, enum plim_node_type type)
{
    int failed = graph ? plim_graph_add(graph, type, out) : GPU_INVALID_VALUE;
    return plim_self_error(failed ? failed : store_dependencies(*out, after, count));
}

int plim_runtime_add_kernel(struct plim_node **out, struct plim_graph *graph,
                            struct plim_node *const *after, size_t count, struct plim_kernel *kernel)
{
    if (!kernel) return plim_self_error(GPU_INVALID_DEVICE_FUNCTION);
    int failed = add(out, graph, after, count, PLIM_NODE_KERNEL);
    if (!failed) plim_graph_record_class(graph, plim_kernel_class(kernel), false);
    return failed;
}

struct conditional_node { /* cudaConditionalNodeParams */
    uint64_t handle;
    int type;
    unsigned bodies;
    struct plim_graph **out; /* list of the bodies, owned by the node */
    void *context;
};

static int add_conditional(struct plim_node **out, struct plim_graph *graph, void *parameters)
{
    struct conditional_node node;
    memcpy(&node, parameters, sizeof(node));
    int failed = plim_graph_add_conditional(graph, node.bodies, out);
    if (failed) return failed;
    node.out = (*out)->children;
    memcpy(parameters, &node, sizeof(node));
    return GPU_OK;
}

int plim_runtime_add_node(struct plim_node **out, struct plim_graph *graph,
                          struct plim_node *const *after, size_t count,
                          struct plim_node_parameters *parameters)
{
    void *first; /* the kernel's function or the child graph */
    memcpy(&first, parameters->of_type, sizeof(first));
    int failed = GPU_INVALID_VALUE;
    if (!graph) return plim_self_error(failed);
    switch (parameters->type) {
    case PLIM_NODE_KERNEL:
        return plim_runtime_add_kernel(out, graph, after, count, plim_kernel_find(first));
    case PLIM_NODE_ALLOCATE:
    case PLIM_NODE_FREE: return plim_unsupported(PLIM_CUDART, "cudaGraphAddNode of an allocation");
    case PLIM_NODE_GRAPH: failed = plim_graph_add_child(graph, first, out); break;
    case PLIM_NODE_CONDITIONAL:
        failed = add_conditional(out, graph, parameters->of_type);
        break;
    default: return add(out, graph, after, count, (enum plim_node_type)parameters->type);
    }
    return plim_self_error(failed ? failed : store_dependencies(*out, after, count));
}

ANSWER int cudaGraphAddNode_v2(struct plim_node **out, struct plim_graph *graph,
                               struct plim_node *const *after, const void *edges, size_t count,
                               struct plim_node_parameters *parameters)
{
    (void)edges;
    return plim_runtime_add_node(out, graph, after, count, parameters);
}

/* CUDA 13 has the edge data before the count. */
ANSWER int cudaGraphAddNode(struct plim_node **out, struct plim_graph *graph,
                            struct plim_node *const *after, const void *fourth, void *fifth,
                            struct plim_node_parameters *sixth)
{
    if (plim_version_runtime() >= 13000)
        return cudaGraphAddNode_v2(out, graph, after, fourth, (size_t)fifth, sixth);
    return cudaGraphAddNode_v2(out, graph, after, NULL, (size_t)fourth, fifth);
}

/* `parameters` start with the host function of the kernel. */
ANSWER int cudaGraphAddKernelNode(struct plim_node **out, struct plim_graph *graph,
                                  struct plim_node *const *after, size_t count,
                                  const void *const *parameters)
{
    return plim_runtime_add_kernel(out, graph, after, count, plim_kernel_find(*parameters));
}

#define ADD(name, type)                                                                            \
    ANSWER int name(struct plim_node **out, struct plim_graph *graph,                              \
                    struct plim_node *const *after, size_t count)                                  \
    {                                                                                              \
        return add(out, graph, after, count, type);                                                \
    }
ADD(cudaGraphAddEmptyNode, PLIM_NODE_EMPTY)
ADD(cudaGraphAddMemcpyNode, PLIM_NODE_MEMCPY)
ADD(cudaGraphAddMemcpyNode1D, PLIM_NODE_MEMCPY)
ADD(cudaGraphAddMemcpyNodeToSymbol, PLIM_NODE_MEMCPY)
ADD(cudaGraphAddMemcpyNodeFromSymbol, PLIM_NODE_MEMCPY)
ADD(cudaGraphAddMemsetNode, PLIM_NODE_MEMSET)
ADD(cudaGraphAddHostNode, PLIM_NODE_HOST)
ADD(cudaGraphAddEventRecordNode, PLIM_NODE_RECORD)
ADD(cudaGraphAddEventWaitNode, PLIM_NODE_WAIT)

ANSWER int cudaGraphAddChildGraphNode(struct plim_node **out, struct plim_graph *graph,
                                      struct plim_node *const *after, size_t count,
                                      const struct plim_graph *child)
{
    int failed = graph && child ? plim_graph_add_child(graph, child, out) : GPU_INVALID_VALUE;
    return plim_self_error(failed ? failed : store_dependencies(*out, after, count));
}

ANSWER int cudaGraphChildGraphNodeGetGraph(struct plim_node *node, struct plim_graph **graph)
{
    if (!node || !node->child_count) return plim_self_error(GPU_INVALID_VALUE);
    *graph = node->children[0];
    return GPU_OK;
}

/* The node stays in the graph, but does nothing. */
ANSWER int cudaGraphDestroyNode(struct plim_node *node)
{
    if (!node) return plim_self_error(GPU_INVALID_VALUE);
    node->type = PLIM_NODE_EMPTY;
    return GPU_OK;
}

ANSWER int cudaGraphConditionalHandleCreate(uint64_t *handle)
{
    *handle = plim_self_new_id();
    return GPU_OK;
}

/* Parameters of a node do not affect anything that is kept. */
ANSWER int cudaGraphNodeSetParams(const void *object)
{
    return plim_self_error(object ? GPU_OK : GPU_INVALID_VALUE);
}
ALSO(cudaGraphNodeSetParams, cudaGraphNodeSetEnabled)
ALSO(cudaGraphNodeSetParams, cudaGraphKernelNodeSetParams)
ALSO(cudaGraphNodeSetParams, cudaGraphKernelNodeSetAttribute)
ALSO(cudaGraphNodeSetParams, cudaGraphKernelNodeCopyAttributes)
ALSO(cudaGraphNodeSetParams, cudaGraphMemcpyNodeSetParams)
ALSO(cudaGraphNodeSetParams, cudaGraphMemcpyNodeSetParams1D)
ALSO(cudaGraphNodeSetParams, cudaGraphMemsetNodeSetParams)
ALSO(cudaGraphNodeSetParams, cudaGraphHostNodeSetParams)
ALSO(cudaGraphNodeSetParams, cudaGraphExecNodeSetParams)
ALSO(cudaGraphNodeSetParams, cudaGraphExecKernelNodeSetParams)
ALSO(cudaGraphNodeSetParams, cudaGraphExecMemcpyNodeSetParams)
ALSO(cudaGraphNodeSetParams, cudaGraphExecMemcpyNodeSetParams1D)
ALSO(cudaGraphNodeSetParams, cudaGraphExecMemsetNodeSetParams)
ALSO(cudaGraphNodeSetParams, cudaGraphExecHostNodeSetParams)
ALSO(cudaGraphNodeSetParams, cudaGraphExecChildGraphNodeSetParams)
