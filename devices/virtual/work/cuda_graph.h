/* CUDA graphs: work that a program captures (stream.h) or builds node by node, to launch it as a whole. Nothing in it
 * runs, so only the nodes, their dependencies, and what their launches say about training steps (steps_class.h) are
 * kept. */
#ifndef PLIM_DEVICES_VIRTUAL_WORK_CUDA_GRAPH_H
#define PLIM_DEVICES_VIRTUAL_WORK_CUDA_GRAPH_H

#include "devices/cost.h"
#include "devices/virtual/machine/self.h"
#include "devices/virtual/steps/steps_class.h"

struct plim_graph;

/* The node types of CUDA that are distinguished. */
enum plim_node_type {
    PLIM_NODE_KERNEL = 0, PLIM_NODE_MEMCPY = 1, PLIM_NODE_MEMSET = 2, PLIM_NODE_HOST = 3,
    PLIM_NODE_GRAPH = 4, PLIM_NODE_EMPTY = 5, PLIM_NODE_WAIT = 6, PLIM_NODE_RECORD = 7,
    PLIM_NODE_ALLOCATE = 10, PLIM_NODE_FREE = 11, PLIM_NODE_CONDITIONAL = 13,
};

struct plim_node {
    enum plim_node_type type;
    struct plim_node *before;    /* the last node it depends on; NULL: none */
    struct plim_graph **children; /* GRAPH: one; CONDITIONAL: its bodies. Owned by the node */
    size_t child_count;
};

/* Return NULL if out of memory. An executable graph is a clone. */
struct plim_graph *plim_graph_create(void);
struct plim_graph *plim_graph_clone(const struct plim_graph *graph);
void plim_graph_destroy(struct plim_graph *graph); /* NULL is allowed */

/* Adds a node, which the graph owns. GPU_OUT_OF_MEMORY. */
int plim_graph_add(struct plim_graph *graph, enum plim_node_type type, struct plim_node **out);
/* Adds a node of type GRAPH with a copy of `child`. */
int plim_graph_add_child(struct plim_graph *graph, const struct plim_graph *child,
                         struct plim_node **out);
/* Adds a node of type CONDITIONAL with empty bodies, to be filled by the program. */
int plim_graph_add_conditional(struct plim_graph *graph, size_t bodies, struct plim_node **out);

/* Records what a launch in the graph says about steps: its class, and whether a library made it. */
void plim_graph_record_class(struct plim_graph *graph, enum plim_steps_class steps_class,
                             bool is_library);

/* Record and return the addresses that launches in the graph may write; without those of child graphs. */
void plim_graph_record_writes(struct plim_graph *graph, const uintptr_t *written, size_t count);
const uintptr_t *plim_graph_writes(const struct plim_graph *graph, size_t *count);

/* Record and return the costs of launches in the graph, in the order of capture; without those of child graphs. */
void plim_graph_record_cost(struct plim_graph *graph, const struct plim_cost *cost);
const struct plim_cost *plim_graph_costs(const struct plim_graph *graph, size_t *count);

size_t plim_graph_nodes(const struct plim_graph *graph, struct plim_node ***nodes);

/* What one launch of a graph does, including its children; conditional bodies are assumed to run once. */
struct plim_graph_sum {
    size_t kernels, calls; /* library calls are also counted as kernels */
    enum plim_steps_class steps_class; /* of all launches together */
};
struct plim_graph_sum plim_graph_sum(const struct plim_graph *graph);

#endif
