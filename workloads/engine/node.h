/* The nodes of the autograd graph, and what they save for backward.
 *
 * A node represents one forward operation. It has the nodes of its inputs (edges), the saved tensors, and a function
 * that computes the gradients of its inputs from those of its outputs. autograd.h runs the nodes. */
#ifndef PLIM_ENGINE_NODE_H
#define PLIM_ENGINE_NODE_H

#include "tensor.h"
#include <stddef.h>

/* Capacity of a node without allocation; node_widen() adds more. */
enum { NODE_EDGES = 8, NODE_OUTPUTS = 4, NODE_MAX_SAVED = 12, NODE_INTS = 8 };

/* `grads` has the gradients of the outputs (lent; NULL if none arrived). Gradients of the inputs are stored in `out`,
 * one reference each, not floating; only where node_wants() is true. */
typedef void (*backward_fn)(struct engine *e, struct node *n, struct tensor **grads,
                            struct tensor **out);

struct quantized;

struct node_kind {
    const char *name; /* PyTorch's: "MulBackward0" */
    backward_fn backward;
};

struct edge {
    struct node *node; /* NULL: this input needs no gradient */
    uint16_t input;    /* which output of that node's forward operation */
};

/* Shape and type of a forward output, which its gradient must have. */
struct node_output {
    int64_t shape[PLIM_MAX_DIMS];
    uint8_t ndim, dtype;
};

/* Hooks that store saved tensors instead of the node (torch.autograd.graph.saved_tensors_hooks). */
struct saved_tensors_hooks {
    /* Returns a handle for `x` (lent, may be NULL); NULL: the node keeps `x`. */
    void *(*pack)(struct engine *e, struct tensor *x);
    struct tensor *(*unpack)(struct engine *e, void *handle); /* returns a reference */
    void (*drop)(struct engine *e, void *handle);
};

/* Runs before a node, when all gradients of its outputs have arrived (Tensor.register_hook()). */
struct node_hook {
    void (*run)(struct engine *e, void *context);
    void *context;
};

struct node {
    struct node_head head; /* first */
    const struct node_kind *kind;
    const struct node_hook *hook; /* lent; NULL: none */
    uint64_t sequence;
    uint8_t saved_count;
    uint16_t edge_count, output_count;
    struct edge *edge; /* `edge` to `ints` point to the arrays below (`own_`), or into `room` */
    struct node_output *output;
    struct tensor **grad; /* of the outputs, during a backward pass */
    int64_t *ints;        /* integer arguments of the operation */
    void *room;                   /* allocated for many edges or outputs (torch.cat, torch.split); otherwise NULL */
    struct tensor **grads, **out; /* in `room`, for node_kind.backward() */
    struct edge own_edge[NODE_EDGES];
    struct node_output own_output[NODE_OUTPUTS];
    struct tensor *own_grad[NODE_OUTPUTS];
    int64_t own_ints[NODE_INTS];
    struct tensor *saved[NODE_MAX_SAVED];
    const struct saved_tensors_hooks *hooks; /* own the handles; NULL: none */
    void *handle[NODE_MAX_SAVED];            /* NULL: the node keeps the tensor in `saved` */
    const struct quantized *weight;          /* of a quantised linear layer */
    struct tensor *held;                     /* node_retain() */
    /* Data other than tensors in a Python function's ctx, until the node is freed; NULL: none. */
    void *context;
    void (*drop_context)(struct engine *e, void *context);
    double number, scale, softcap;
    struct tensor *variable; /* AccumulateGrad: the leaf (lent); NULL in all others */
    /* number of the backward pass, and of gradients that have not arrived in it */
    uint32_t pass;
    int32_t dependencies;
};

/* The state of autograd between calls. Zeroed: the initial state. */
struct autograd {
    uint64_t sequence;                       /* of the next node */
    const struct saved_tensors_hooks *hooks; /* for tensors that new nodes save, or NULL */
    struct node *released; /* list of nodes to be released, because long chains must not recurse */
    bool releasing;
    /* Called when a leaf's gradient was accumulated in .grad, or NULL (the post hooks of AccumulateGrad). */
    void (*accumulated)(struct engine *e, void *context, struct tensor *variable);
    void *accumulated_context;
    struct node_hook ended; /* called when a backward pass has run its nodes; run NULL: no hook */
    uint32_t pass;       /* number of the current backward pass */
    struct node **ready; /* heap of nodes whose gradients are complete */
    size_t ready_count, ready_capacity;
};

/* True if an operand needs a gradient and grad mode is enabled. Operands may be NULL. */
bool autograd_needed(const struct engine *e, int count, struct tensor *const *operands);

/* Returns a new node with edges to the operands that need a gradient. */
struct node *node_create(struct engine *e, const struct node_kind *kind, int count,
                         struct tensor *const *operands);
/* Enlarges a node without outputs to this many edges (existing ones are kept) and outputs, and to NODE_INTS ints plus
 * one for each edge. */
void node_widen(struct engine *e, struct node *n, int edges, int outputs);
/* Saves a tensor in slot `slot`. Call in the order in which PyTorch packs them. */
void node_save(struct engine *e, struct node *n, int slot, struct tensor *x);
/* Saves an output of the operation itself, without its grad_fn. */
void node_save_output(struct engine *e, struct node *n, int slot, struct tensor *x);
/* Holds `x` until the node is freed, like an attribute of a Python function's ctx: no hook sees it, and it outlives the
 * backward pass. */
void node_retain(struct engine *e, struct node *n, struct tensor *x);
/* Makes `x` the next output of the node. */
void node_attach(struct node *n, struct tensor *x);
/* Returns a saved tensor, in backward, lent; recomputes a checkpointed region if necessary. NULL: nothing was saved
 * there. */
struct tensor *node_saved(struct engine *e, struct node *n, int slot);
/* Frees what the hooks have unpacked; it can be unpacked again. */
void node_release_unpacked(struct engine *e, struct node *n);
/* Frees everything that was saved. */
void node_release_saved(struct engine *e, struct node *n);
static inline bool node_wants(const struct node *n, int edge)
{
    return edge < n->edge_count && n->edge[edge].node;
}

/* Makes `x` a parameter that needs a gradient. */
void tensor_require_grad(struct engine *e, struct tensor *x);
/* x.requires_grad_() of any other leaf: its AccumulateGrad node holds the leaf, and thereby its gradient. */
void tensor_require_input_grad(struct engine *e, struct tensor *x);

#endif
