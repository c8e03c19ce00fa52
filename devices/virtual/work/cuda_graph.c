#include "cuda_graph.h"
#include "autotune/base/array.h"
#include <stdlib.h>

struct plim_graph {
    PLIM_ARRAY(struct plim_node *) nodes;
    enum plim_steps_class steps_class; /* of the graph's own launches, without those of its children */
    size_t calls;
    PLIM_ARRAY(uintptr_t) written;
    PLIM_ARRAY(struct plim_cost) costs;
};

struct plim_graph *plim_graph_create(void) { return calloc(1, sizeof(struct plim_graph)); }

static void destroy_node(struct plim_node *node)
{
    for (size_t i = 0; i < node->child_count; i++) plim_graph_destroy(node->children[i]);
    free(node->children);
    free(node);
}

void plim_graph_destroy(struct plim_graph *graph)
{
    if (!graph) return;
    for (size_t i = 0; i < graph->nodes.count; i++) destroy_node(graph->nodes.items[i]);
    PLIM_ARRAY_FINISH(&graph->nodes);
    PLIM_ARRAY_FINISH(&graph->written);
    PLIM_ARRAY_FINISH(&graph->costs);
    free(graph);
}

/* --- nodes ------------------------------------------------------------------------------------ */

int plim_graph_add(struct plim_graph *graph, enum plim_node_type type, struct plim_node **out)
{
    struct plim_node *node = calloc(1, sizeof(*node));
    if (!node || PLIM_ARRAY_PUSH(&graph->nodes, node) != PLIM_OK) {
        free(node);
        return GPU_OUT_OF_MEMORY;
    }
    node->type = type;
    *out = node;
    return GPU_OK;
}

/* Adds `child` to the node, which takes ownership. Fails if `child` is NULL (out of memory). */
static int add_child(struct plim_node *node, struct plim_graph *child)
{
    struct plim_graph **more = child ? realloc(node->children, (node->child_count + 1) *
                                                                   sizeof(struct plim_graph *))
                                     : NULL;
    if (!more) {
        plim_graph_destroy(child);
        return GPU_OUT_OF_MEMORY;
    }
    node->children = more;
    node->children[node->child_count++] = child;
    return GPU_OK;
}

int plim_graph_add_child(struct plim_graph *graph, const struct plim_graph *child,
                         struct plim_node **out)
{
    int failed = plim_graph_add(graph, PLIM_NODE_GRAPH, out);
    return failed ? failed : add_child(*out, plim_graph_clone(child));
}

int plim_graph_add_conditional(struct plim_graph *graph, size_t bodies, struct plim_node **out)
{
    int failed = plim_graph_add(graph, PLIM_NODE_CONDITIONAL, out);
    for (size_t i = 0; i < bodies && !failed; i++) failed = add_child(*out, plim_graph_create());
    return failed;
}

static int clone_node(struct plim_graph *graph, const struct plim_node *node,
                      struct plim_node **out)
{
    int failed = plim_graph_add(graph, node->type, out);
    for (size_t i = 0; i < node->child_count && !failed; i++)
        failed = add_child(*out, plim_graph_clone(node->children[i]));
    return failed;
}

/* Dependencies become a chain in the order of the nodes, as a capture makes it. */
struct plim_graph *plim_graph_clone(const struct plim_graph *graph)
{
    struct plim_graph *copy = plim_graph_create();
    struct plim_node *node;
    for (size_t i = 0; copy && i < graph->nodes.count; i++)
        if (clone_node(copy, graph->nodes.items[i], &node)) {
            plim_graph_destroy(copy);
            copy = NULL;
        } else if (i > 0) node->before = copy->nodes.items[i - 1];
    if (!copy) return NULL;
    copy->steps_class = graph->steps_class;
    copy->calls = graph->calls;
    plim_graph_record_writes(copy, graph->written.items, graph->written.count);
    for (size_t i = 0; i < graph->costs.count; i++) plim_graph_record_cost(copy, &graph->costs.items[i]);
    return copy;
}

size_t plim_graph_nodes(const struct plim_graph *graph, struct plim_node ***nodes)
{
    if (nodes) *nodes = graph->nodes.items;
    return graph->nodes.count;
}

/* --- launches in the graph -------------------------------------------------------------------- */

void plim_graph_record_class(struct plim_graph *graph, enum plim_steps_class steps_class,
                             bool is_library)
{
    graph->steps_class = plim_steps_join(graph->steps_class, steps_class);
    graph->calls += is_library;
}

void plim_graph_record_writes(struct plim_graph *graph, const uintptr_t *written, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        size_t had = graph->written.count;
        bool is_new = !had || graph->written.items[had - 1] != written[i];
        if (is_new && PLIM_ARRAY_PUSH(&graph->written, written[i]) != PLIM_OK) return;
    }
}

const uintptr_t *plim_graph_writes(const struct plim_graph *graph, size_t *count)
{
    *count = graph->written.count;
    return graph->written.items;
}

/* A cost for which there is no memory is dropped. */
void plim_graph_record_cost(struct plim_graph *graph, const struct plim_cost *cost)
{
    if (PLIM_ARRAY_PUSH(&graph->costs, *cost) != PLIM_OK) return;
}

const struct plim_cost *plim_graph_costs(const struct plim_graph *graph, size_t *count)
{
    *count = graph->costs.count;
    return graph->costs.items;
}

static void add_up(const struct plim_graph *graph, struct plim_graph_sum *sum)
{
    sum->steps_class = plim_steps_join(sum->steps_class, graph->steps_class);
    sum->calls += graph->calls;
    for (size_t i = 0; i < graph->nodes.count; i++) {
        const struct plim_node *node = graph->nodes.items[i];
        sum->kernels += node->type == PLIM_NODE_KERNEL;
        for (size_t k = 0; k < node->child_count; k++) add_up(node->children[k], sum);
    }
}

struct plim_graph_sum plim_graph_sum(const struct plim_graph *graph)
{
    struct plim_graph_sum sum = {.steps_class = PLIM_STEPS_PLAIN};
    add_up(graph, &sum);
    return sum;
}
