/* Reverse-mode differentiation: nodes, what they save, the backward pass.
 *
 * A node stands for one forward operation. It knows the nodes of its inputs (edges), what it
 * saved, and how to turn gradients of its outputs into gradients of its inputs. The pass runs
 * nodes as PyTorch's engine does (torch/csrc/autograd/engine.cpp): of the ready ones the one with
 * the highest sequence number, AccumulateGrad before all others; a node's saved tensors are
 * released when it has run; gradients that do not have the forward tensor's shape or type are
 * summed or cast (validate_outputs); contributions from several uses are added, in place where
 * the buffer is nobody else's (InputBuffer).
 */
#ifndef PLIM_ENGINE_AUTOGRAD_H
#define PLIM_ENGINE_AUTOGRAD_H

#include "engine.h"

enum { NODE_MAX_EDGES = 5, NODE_MAX_OUTPUTS = 4, NODE_MAX_SAVED = 8, NODE_INTS = 8 };

/* Gradients of the outputs come in `grads` (lent; NULL where none arrived). Gradients of the
 * inputs go to `out`, one reference each, not floating; only where node_wants() says so. */
typedef void (*backward_fn)(struct engine *e, struct node *n, struct tensor **grads,
                            struct tensor **out);

struct node_kind {
    const char *name; /* PyTorch's: "MulBackward0" */
    backward_fn backward;
};

struct edge {
    struct node *node; /* NULL: this input needs no gradient */
    uint8_t input;     /* which output of that node's forward operation */
};

/* Shape and type of a forward output: what its gradient must have. */
struct node_output {
    int64_t shape[PLIM_MAX_DIMS];
    uint8_t ndim, dtype;
};

struct checkpoint_holder;

struct node {
    const struct node_kind *kind;
    uint64_t sequence;
    int32_t refs;
    uint8_t edge_count, output_count, saved_count;
    bool packed; /* what it saved is held by a checkpoint */
    struct edge edge[NODE_MAX_EDGES];
    struct node_output output[NODE_MAX_OUTPUTS];
    struct tensor *saved[NODE_MAX_SAVED];
    struct checkpoint_holder *holder[NODE_MAX_SAVED]; /* packed: where to find it again */
    int64_t ints[NODE_INTS];                          /* parameters of the operation */
    double number, scale;
    struct tensor *variable; /* AccumulateGrad: the leaf (lent) */
    void *custom;            /* CheckpointBackward: its frame */
    /* the pass */
    uint32_t pass;
    int32_t dependencies;
    struct tensor *grad[NODE_MAX_OUTPUTS];
};

/* Does any operand need a gradient (and is grad mode on)? Operands may be NULL. */
bool autograd_needed(const struct engine *e, int count, struct tensor *const *operands);

/* A new node whose edges lead to the operands that need a gradient. */
struct node *node_create(struct engine *e, const struct node_kind *kind, int count,
                         struct tensor *const *operands);
/* Saves a tensor in slot `slot`, in the order in which PyTorch packs them. */
void node_save(struct engine *e, struct node *n, int slot, struct tensor *x);
/* The same for an output of the operation itself: without its grad_fn. */
void node_save_output(struct engine *e, struct node *n, int slot, struct tensor *x);
/* Makes `x` the next output of the node. */
void node_attach(struct engine *e, struct node *n, struct tensor *x);
/* A saved tensor, in backward; recomputes a checkpointed region if it must. Lent. */
struct tensor *node_saved(struct engine *e, struct node *n, int slot);
static inline bool node_wants(const struct node *n, int edge)
{
    return edge < n->edge_count && n->edge[edge].node;
}
void node_drop(struct engine *e, struct node *n);

/* loss.backward(). `loss` is a scalar; grads arrive in the .grad of the leaves. */
void autograd_backward(struct engine *e, struct tensor *loss);

/* A parameter that wants a gradient. */
void tensor_require_grad(struct engine *e, struct tensor *x);
/* x.requires_grad_() of any other leaf: the graph holds the leaf, and with it its gradient. */
void tensor_require_input_grad(struct engine *e, struct tensor *x);

#endif
