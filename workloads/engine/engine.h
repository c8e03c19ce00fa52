/* The state of one training process: memory, autograd, autocast, and why it halted.
 *
 * One engine represents one Python process that trains on one device. It owns neither the device nor the allocator,
 * only the memory it takes from them. A function that changes a mode (gradients, autocast, the class of new storages)
 * restores it.
 *
 * From bottom to top: pool, engine, storage, tensor, workspace; node (what autograd saves); op and ops_*; autograd (the
 * backward pass) and checkpoint. */
#ifndef PLIM_ENGINE_ENGINE_H
#define PLIM_ENGINE_ENGINE_H

#include "autocast.h"
#include "chunk_indices.h"
#include "devices/allocator/allocator.h"
#include "node.h"
#include "object_pool.h"
#include "storage.h"
#include "tensor.h"

enum halt {
    HALT_NONE,
    HALT_OOM,         /* out of memory: no further operation runs */
    HALT_UNSUPPORTED, /* an operation that this device cannot run */
    HALT_FAILED,      /* the device failed, or host memory ran out */
    HALT_EARLY_STOP   /* a checkpointed region was recomputed far enough (checkpoint.h) */
};

enum { ENGINE_STREAMS = 3 }; /* the default stream and two others on which matrix products are computed */
enum thread { THREAD_MAIN, THREAD_AUTOGRAD, THREAD_COUNT };

struct checkpoint_frame;

/* torch's forward hooks, called for every module. */
struct module_hooks {
    /* For a module without parameters of its own: called at its start, and at its end with the result `y`, which the
     * hook may replace by returning a floating tensor. NULL: no hook. */
    void (*begin)(struct engine *e, void *context);
    struct tensor *(*end)(struct engine *e, void *context, struct tensor *y);
    /* For a module with parameters: both return `x` (lent), which is the module's input or its result, or a floating
     * tensor that replaces it. `weights`: its parameters, terminated by NULL. `kind` distinguishes modules with the
     * same first weight. NULL: no hook. */
    struct tensor *(*before)(struct engine *e, void *context, struct tensor *const *weights, int kind,
                             struct tensor *x);
    struct tensor *(*after)(struct engine *e, void *context, struct tensor *const *weights, int kind,
                            struct tensor *x);
    void *context;
    /* Called when the running module, which has the first weight `first` (NULL: the model) and `kind`, accesses a
     * weight of another module. NULL: no hook, and a LoRA layer is a single module, that of its linear, instead of a
     * module that contains its parts as modules. */
    void (*access)(struct engine *e, void *context, struct tensor *first, int kind, struct tensor *weight);
    /* Called when a model uses its head's weight or bias (lent) outside of the head: returns the tensor to use instead,
     * named; release_weight() is called afterwards. NULL: the weight itself is used. */
    struct tensor *(*full_weight)(struct engine *e, void *context, struct tensor *weight);
    void (*release_weight)(struct engine *e, void *context, struct tensor *weight);
    /* Returns the type of a weight outside of its module, between its uses. NULL: its own type. */
    enum plim_dtype (*type_of)(struct engine *e, void *context, struct tensor *weight);
    /* Called when a function uses a weight without calling its module: gathers the full weight. NULL: weights are
     * always full. */
    void (*unshard)(struct engine *e, void *context, struct tensor *weight);
    bool own_linear; /* op_linear_function() replaces torch's linear */
    /* The hooks of the parts of a leaf (NN_LEAF); NULL: the leaf is not a module here, but its parts are. */
    const struct module_hooks *inside;
};

struct engine {
    struct plim_device *device;
    struct plim_allocator *allocator;

    enum halt halted;
    enum plim_status failure; /* for HALT_FAILED */
    struct tensor *poison;    /* what operations return while halted */
    struct storage poison_storage;
    const char *halting_op;  /* the operation whose launch halted it */
    int64_t oom_asked_bytes; /* HALT_OOM: the requested bytes; 0: memory for the code of halting_op */
    enum plim_memory_class oom_class;

    struct memory_use memory;
    int stream; /* for new storages; 0: the default one (plim_allocator_malloc()) */
    bool grad_enabled;
    bool checkpointing_off; /* gradient_checkpointing_disable(): no block is checkpointed */
    bool evaluates; /* model.eval(): no dropout, no block is checkpointed */
    bool adapters_off; /* peft's disable_adapter(): linear layers run without their adapters */
    bool meta; /* torch.device("meta"): new tensors have no memory and nothing is launched */
    struct autograd autograd;
    struct checkpoint_frame *frame; /* the checkpointed region that is running, for the first or second time, or NULL */
    bool reenters; /* a reentrant region is being recomputed */
    enum thread thread;             /* the thread whose cuBLAS handle and workspace are used */
    struct autocast autocast;
    struct chunk_memos chunks; /* cache of flash-linear-attention */

    struct storage *blas_workspace[ENGINE_STREAMS][THREAD_COUNT], *blaslt_workspace[ENGINE_STREAMS][THREAD_COUNT];
    /* PyTorch 2.15: a matrix product allocates and frees its workspace; see also devices/needs/needs_attention.h. */
    bool torch_2_15;
    const struct module_hooks *modules; /* lent; NULL: none */
    bool tf32;           /* torch.backends.cuda.matmul.allow_tf32 */
    uint64_t seed;       /* of the next random operation */

    struct pool tensors, storages, nodes, frames, holders, mappings;
    struct block *rooms; /* host memory of nodes with many edges (node_widen()), and of contexts */
};

enum plim_status engine_create(struct plim_device *device, struct plim_allocator *allocator,
                               struct engine **out, struct plim_error *err) PLIM_MUST_CHECK;
void engine_destroy(struct engine **e);

/* Returns to the state after creation: frees every tensor, storage and node. */
void engine_reset(struct engine *e);

/* Launches an operation; a failure halts the engine. */
void engine_launch(struct engine *e, const struct plim_op *op);
void engine_halt(struct engine *e, enum halt why);
/* Halts with HALT_FAILED and this status, which the replay then returns; only the first call has an effect. */
void engine_fail(struct engine *e, enum plim_status status);

/* Allocates zeroed host memory, which is freed with the engine's tensors at the latest, because after out of memory its
 * owner may never return it. For a few blocks at a time. NULL: no host memory, and the engine has failed. */
void *engine_allocate_host(struct engine *e, size_t bytes);
void engine_free_host(struct engine *e, void *room); /* NULL: nothing */

/* x.item() of a scalar: the host waits for it. Returns 0 on a simulated device, where nothing is computed, and when
 * halted. */
double engine_item(struct engine *e, const struct tensor *x);
/* Copies `bytes` from the host to the start of `x`, which must be contiguous. */
void engine_write(struct engine *e, struct tensor *x, const void *from, size_t bytes);

/* Sets the class of new storages; the default is temporaries. Returns the previous class, which the caller restores. */
static inline enum plim_memory_class engine_set_class(struct engine *e,
                                                      enum plim_memory_class new_class)
{
    enum plim_memory_class before = e->memory.new_class;
    e->memory.new_class = new_class;
    return before;
}

/* Returns the bytes allocated now, like torch.cuda.memory_allocated(). */
static inline int64_t engine_allocated(const struct engine *e)
{
    return plim_allocator_statistics(e->allocator)->allocated;
}

#endif
