/* The CUDA runtime: graphs that were captured. Graphs that a program builds node by node are not
 * answered. An executable graph is a graph of its own, as with CUDA: the other may be destroyed. */
#include "devices/virtual/kernel.h"
#include "runtime.h"
#include "devices/virtual/stream.h"
#include "devices/virtual/version.h"
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

/* 11: (out, graph, error node, log, its size). From 12 on: (out, graph, flags). */
ANSWER int cudaGraphInstantiate(void **out, void *graph) { return cudaGraphInstantiateWithFlags(out, graph, 0); }

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

/* 11: (graph, other, error node, result). From 12 on: (graph, other, a structure that begins with
 * the result). Success is 0 in each. */
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

/* 13 has edge data before the count. */
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
