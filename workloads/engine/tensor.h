/* Tensors of the engine: a strided array, its storage, its position in the autograd graph.
 *
 * The engine's vocabulary is unprefixed and small: struct tensor, struct node (node.h), struct engine (engine.h),
 * op_*() (ops.h), nn_*() (workloads/nn). It is visible only inside workloads/.
 *
 * Ownership. Tensors are reference-counted. A fresh result of an operation is *floating*: the next operation that takes
 * it as an operand releases it when it is done, as the Python interpreter drops a temporary. tensor_keep() makes it a
 * *named* variable, which owns a reference until tensor_drop(). So `y = op_mul(e, op_silu(e, a), b)` frees silu's
 * result right after the multiplication, at exactly the point in the sequence of events where PyTorch does. Where
 * comments of functions say so, a result is floating or named, and an argument is *lent* (the caller keeps its
 * reference) or *taken* (the function drops it).
 *
 * Views share a storage (storage.h); a tensor saved for backward is one more reference to it.
 *
 * Halting. When memory runs out the engine is halted (engine.h): every further operation returns the engine's poison
 * tensor immediately, so model code needs no error path. */
#ifndef PLIM_ENGINE_TENSOR_H
#define PLIM_ENGINE_TENSOR_H

#include "devices/op.h"
#include "storage.h"
#include <stdbool.h>
#include <stdint.h>

/* The reference count of the poison tensor, which is never freed. */
enum { POISON_REFS = 1 << 29 };

struct engine;
struct node;

/* The start of every node: all that a tensor needs to know about its graph. */
struct node_head {
    int32_t refs;
    void (*release)(struct engine *e, struct node *n); /* called when the last reference is dropped */
};
static inline void node_drop(struct engine *e, struct node *n)
{
    struct node_head *head = (struct node_head *)n;
    if (head && --head->refs == 0) head->release(e, n);
}

struct tensor {
    struct plim_array a; /* must be first: a tensor can be used as an array */
    struct storage *storage;
    struct node *grad_fn;     /* NULL: a leaf, or not differentiable */
    struct node *accumulator; /* a leaf that requires grad: its AccumulateGrad node */
    struct tensor *grad;      /* a leaf's .grad */
    struct tensor *cast;      /* autocast's cached low-precision copy of a leaf */
    int32_t refs;
    int32_t layer;         /* parameters: the decoder layer, from 1; 0: none */
    int32_t param_index;    /* parameters: index in the list of the sharder (ddp.h, zero.h) */
    uint16_t output_number; /* index among the outputs of grad_fn */
    bool floating;
    bool requires_grad;
    bool is_view;
    bool is_parameter;
    bool odd_name; /* parameters: named like a bias or norm but with several dimensions; or the reverse. With adapters:
                    * a copy of a bias or norm (modules_to_save) */
    bool is_codes; /* parameters: codes of a quantised weight, which are never cast */
};

/* Returns a tensor with new memory, contiguous or with the given strides (in elements). Floating. */
struct tensor *tensor_empty(struct engine *e, enum plim_dtype dtype, int ndim,
                            const int64_t *shape);
struct tensor *tensor_empty_strided(struct engine *e, enum plim_dtype dtype, int ndim,
                                    const int64_t *shape, const int64_t *stride);
/* Returns one of the same shape and, if `x` is dense, the same strides. Floating. */
struct tensor *tensor_empty_like(struct engine *e, const struct tensor *x, enum plim_dtype dtype);
/* Returns uninitialised memory as a one-dimensional array of bytes. Floating. */
struct tensor *tensor_empty_bytes(struct engine *e, int64_t bytes);

/* Returns another tensor on the same storage, starting `offset` elements further. Floating; no autograd. */
struct tensor *tensor_alias(struct engine *e, const struct tensor *x, int ndim,
                            const int64_t *shape, const int64_t *stride, int64_t offset);
/* Returns the same array without its position in the graph, like PyTorch's detach() and saved outputs. Floating. */
struct tensor *tensor_detach(struct engine *e, const struct tensor *x);

/* Makes `x` a named variable, no longer floating. Returns `x`. */
static inline struct tensor *tensor_keep(struct tensor *x)
{
    x->floating = false;
    return x;
}
static inline struct tensor *tensor_ref(struct tensor *x)
{
    x->refs++;
    return x;
}
void tensor_free(struct engine *e, struct tensor *x); /* called by tensor_drop() for the last reference */
static inline void tensor_drop(struct engine *e, struct tensor *x)
{
    if (x && --x->refs == 0) tensor_free(e, x);
}

/* Drops several tensors, in order. */
static inline void tensor_drop_list(struct engine *e, struct tensor *const *list, size_t count)
{
    for (size_t i = 0; i < count; i++) tensor_drop(e, list[i]);
}
#define tensor_drop_all(e, ...)                                                                    \
    tensor_drop_list(e, (struct tensor *[]){__VA_ARGS__},                                          \
                     sizeof((struct tensor *[]){__VA_ARGS__}) / sizeof(struct tensor *))
/* Binds a variable to a result that may be an operand itself (op_to and op_dropout return their operand if there is
 * nothing to do). */
static inline struct tensor *tensor_hold(struct tensor *x)
{
    if (x->floating)
        x->floating = false;
    else
        x->refs++;
    return x;
}
/* Rebinds a variable, like Python's `x = value`: drops its old tensor after `value` was computed. */
static inline void tensor_set(struct engine *e, struct tensor **x, struct tensor *value)
{
    struct tensor *old = *x;
    *x = tensor_hold(value);
    tensor_drop(e, old);
}
/* For a function that returns its variable: makes it floating again, for the caller. */
static inline struct tensor *tensor_yield(struct tensor *x)
{
    x->floating = x->refs < POISON_REFS;
    return x;
}

/* Holds an argument that may be floating during a call: tensor_enter() at the beginning, tensor_leave() at the end. */
static inline bool tensor_enter(struct tensor *x)
{
    bool was = x && x->floating;
    if (was) x->floating = false;
    return was;
}
static inline void tensor_leave(struct engine *e, struct tensor *x, bool was)
{
    if (was) tensor_drop(e, x);
}
/* Releases an operand at the end of an operation, if it is floating. */
static inline void tensor_consume(struct engine *e, struct tensor *x)
{
    if (!x || !x->floating) return;
    x->floating = false;
    tensor_drop(e, x);
}

/* x.data = `data` (taken): replaces the array; for autograd it stays the same tensor. */
void tensor_set_data(struct engine *e, struct tensor *x, struct tensor *data);

/* Sets the class of its storage permanently (parameters, gradients, optimizer). */
void tensor_classify(struct engine *e, struct tensor *x, enum plim_memory_class memory_class);

/* --- shapes ------------------------------------------------------------------------------- */

bool tensor_is_contiguous(const struct tensor *x);
/* True if the layout is some permutation of a contiguous one (PyTorch's is_non_overlapping_and_dense). */
bool tensor_is_dense(const struct tensor *x);
static inline int64_t tensor_elements(const struct tensor *x)
{
    return plim_array_elements(&x->a);
}
static inline int tensor_dim(const struct tensor *x, int dim)
{
    return dim < 0 ? dim + x->a.ndim : dim;
}
static inline int64_t tensor_size(const struct tensor *x, int dim)
{
    return x->a.shape[tensor_dim(x, dim)];
}

/* Computes strides with which `x` can be viewed in another shape without a copy. Returns false if that is impossible
 * (PyTorch's computeStride). */
bool tensor_view_strides(const struct tensor *x, int ndim, const int64_t *shape, int64_t *stride);

#endif
