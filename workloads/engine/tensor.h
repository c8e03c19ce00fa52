/* Tensors of the engine: a strided array, its storage, its place in the autograd graph.
 *
 * The engine's vocabulary is unprefixed and small: struct tensor, struct node (node.h),
 * struct engine (engine.h), op_*() (ops.h), nn_*() (workloads/nn). It is seen only inside
 * workloads/.
 *
 * Ownership. Tensors are reference-counted. A fresh result of an operation is *floating*: the next
 * operation that takes it as an operand releases it when it is done, as the Python interpreter
 * drops a temporary. tensor_keep() makes it a named variable; tensor_drop() ends the variable.
 * So `y = op_mul(e, op_silu(e, a), b)` frees silu's result right after the multiplication, at
 * exactly the point in the sequence of events where PyTorch does.
 *
 * Views share a storage (storage.h); a tensor that a node saved for backward counts as one.
 *
 * Halting. When memory runs out the engine is halted (engine.h): every further operation returns
 * the engine's poison tensor at once, so that model code needs no error path.
 */
#ifndef PLIM_ENGINE_TENSOR_H
#define PLIM_ENGINE_TENSOR_H

#include "devices/op.h"
#include "storage.h"
#include <stdbool.h>
#include <stdint.h>

/* The reference count of the poison tensor, which never reaches zero. */
enum { POISON_REFS = 1 << 29 };

struct engine;
struct node;

/* The head of every node: all that a tensor knows about its graph. */
struct node_head {
    int32_t refs;
    void (*release)(struct engine *e, struct node *n); /* after the last reference */
};
static inline void node_drop(struct engine *e, struct node *n)
{
    struct node_head *head = (struct node_head *)n;
    if (head && --head->refs == 0) head->release(e, n);
}

struct tensor {
    struct plim_array a; /* first: a tensor can be used as an array */
    struct storage *storage;
    struct node *grad_fn;     /* NULL: a leaf, or not differentiable */
    struct node *accumulator; /* a leaf that requires grad: its AccumulateGrad node */
    struct tensor *grad;      /* a leaf's .grad */
    struct tensor *cast;      /* autocast's cached low-precision copy of a leaf */
    int32_t refs;
    int32_t layer;         /* of a parameter: its decoder layer, from 1; 0: none */
    int32_t place;         /* of a parameter: its index in the list of the sharder (ddp.h, zero.h) */
    uint16_t output_number; /* which output of grad_fn */
    bool floating;
    bool requires_grad;
    bool is_view;
    bool is_parameter;
    bool odd_name; /* of a parameter: named as a bias or norm but with several dimensions; or not so named, with one */
    bool is_codes; /* of a parameter: the codes of a quantised weight, which are never cast */
};

/* A new tensor on new memory, contiguous / with the given strides (elements). Floating. */
struct tensor *tensor_empty(struct engine *e, enum plim_dtype dtype, int ndim,
                            const int64_t *shape);
struct tensor *tensor_empty_strided(struct engine *e, enum plim_dtype dtype, int ndim,
                                    const int64_t *shape, const int64_t *stride);
/* Same shape and, if `x` is dense, the same strides. */
struct tensor *tensor_empty_like(struct engine *e, const struct tensor *x, enum plim_dtype dtype);
/* Bare memory: a one-dimensional array of bytes. */
struct tensor *tensor_empty_bytes(struct engine *e, int64_t bytes);

/* Another tensor on the same storage, `offset` elements further. Floating; no autograd. */
struct tensor *tensor_alias(struct engine *e, const struct tensor *x, int ndim,
                            const int64_t *shape, const int64_t *stride, int64_t offset);
/* The same array without its place in the graph (what PyTorch's detach() and saved outputs are). */
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
void tensor_free(struct engine *e, struct tensor *x); /* after the last reference: tensor_drop() */
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
/* Binds a variable to a result that may be an operand itself (op_to, op_dropout return
 * their operand if there is nothing to do). */
static inline struct tensor *tensor_hold(struct tensor *x)
{
    if (x->floating)
        x->floating = false;
    else
        x->refs++;
    return x;
}
/* Rebinds a variable, as Python's `x = value`: drops its old tensor after `value` was computed. */
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

/* Holds an argument that may be floating during a call: enter at the beginning, leave at the end. */
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

/* x.data = `data` (taken over): another array, but the same tensor for autograd. */
void tensor_set_data(struct engine *e, struct tensor *x, struct tensor *data);

/* Sets the class of its storage permanently (parameters, gradients, optimizer). */
void tensor_classify(struct engine *e, struct tensor *x, enum plim_memory_class memory_class);

/* --- shapes ------------------------------------------------------------------------------- */

bool tensor_is_contiguous(const struct tensor *x);
/* Dense: some permutation of a contiguous layout (PyTorch's is_non_overlapping_and_dense). */
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

/* Strides with which `x` can be viewed in another shape without a copy; false if that is impossible
 * (PyTorch's computeStride). */
bool tensor_view_strides(const struct tensor *x, int ndim, const int64_t *shape, int64_t *stride);

#endif
