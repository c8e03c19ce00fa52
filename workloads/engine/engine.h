/* The state of one training process: memory, autograd, autocast, why it halted.
 *
 * One engine stands for one Python process that trains on one device. It owns no device and no
 * allocator, only what it takes from them. A function that changes a mode (gradients, autocast,
 * the class of new storages) sets it back.
 *
 * From bottom to top: pool, engine, storage, tensor, workspace; node (what autograd saves); op and
 * ops_*; autograd (the backward pass) and checkpoint.
 */
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
    HALT_OOM,         /* no memory: nothing runs any more */
    HALT_UNSUPPORTED, /* an operation that this device cannot run */
    HALT_FAILED,      /* the device failed, or host memory ran out */
    HALT_EARLY_STOP   /* a checkpointed region was recomputed far enough (checkpoint.h) */
};

enum { ENGINE_STREAMS = 3 }; /* on which products are computed: the default one and two beside it */
enum thread { THREAD_MAIN, THREAD_AUTOGRAD, THREAD_COUNT };

struct checkpoint_frame;

/* torch's forward hooks of every module. */
struct module_hooks {
    /* Of one without parameters of its own: it begins, and returns `y`, in whose stead it may return a
     * floating tensor. NULL: nothing is done there. */
    void (*begin)(struct engine *e, void *context);
    struct tensor *(*end)(struct engine *e, void *context, struct tensor *y);
    /* Of one with: both return what is to stand for `x` (lent), the module's input, or its result: that itself, or
     * a floating tensor. `weights`: its parameters, NULL behind the last. `kind`: tells modules of one first weight
     * apart. NULL: nothing is done there. */
    struct tensor *(*before)(struct engine *e, void *context, struct tensor *const *weights, int kind,
                             struct tensor *x);
    struct tensor *(*after)(struct engine *e, void *context, struct tensor *const *weights, int kind,
                            struct tensor *x);
    void *context;
    /* The module of the first weight `first` (NULL: the model) and `kind`, which runs, looks at a weight of another
     * one. NULL: nothing is done there, and a LoRA layer is one module, that of its linear, in place of one with its
     * parts as modules within it. */
    void (*look)(struct engine *e, void *context, struct tensor *first, int kind, struct tensor *weight);
    /* A model that computes with its head's weight or bias (lent) outside of the head: what stands for it there, named;
     * and that it has been computed with. NULL: it does itself, and nothing is done. */
    struct tensor *(*lend)(struct engine *e, void *context, struct tensor *weight);
    void (*take_back)(struct engine *e, void *context, struct tensor *weight);
    /* The type that a weight has outside of its module, between its uses. NULL: its own. */
    enum plim_dtype (*type_of)(struct engine *e, void *context, struct tensor *weight);
    /* A function computes with a weight in the place of the module that has it: makes it whole. NULL: it is. */
    void (*unshard)(struct engine *e, void *context, struct tensor *weight);
    bool own_linear; /* op_linear_function() stands for torch's linear */
    /* What the parts of a leaf (NN_LEAF) see; NULL: a leaf is no module here, its parts are. */
    const struct module_hooks *inside;
};

struct engine {
    struct plim_device *device;
    struct plim_allocator *allocator;

    enum halt halted;
    enum plim_status failure; /* of HALT_FAILED */
    struct tensor *poison;    /* what operations return while halted */
    struct storage poison_storage;
    const char *halting_op;  /* the operation whose launch halted it */
    int64_t oom_asked_bytes; /* of HALT_OOM; 0: for the code of halting_op */
    enum plim_memory_class oom_class;

    struct memory_use memory;
    int stream; /* of new storages: 0 the default one (plim_allocator_malloc()) */
    bool grad_enabled;
    bool checkpointing_off; /* gradient_checkpointing_disable(): no block is checkpointed */
    bool evaluates; /* model.eval(): nothing is dropped, no block is checkpointed */
    bool adapters_off; /* peft's disable_adapter(): linear layers are those below their adapters */
    bool meta; /* torch.device("meta"): new tensors have no memory and nothing is launched */
    struct autograd autograd;
    struct checkpoint_frame *frame; /* the checkpointed region that runs, first or again, or NULL */
    bool reenters; /* a reentrant region runs for the second time */
    enum thread thread;             /* whose cuBLAS handle and workspace */
    struct autocast autocast;
    struct chunk_memos chunks; /* of flash-linear-attention */

    struct storage *blas_workspace[ENGINE_STREAMS][THREAD_COUNT], *blaslt_workspace[ENGINE_STREAMS][THREAD_COUNT];
    /* As PyTorch 2.15: a product takes its workspace and gives it back; and devices/needs/needs_attention.h. */
    bool torch_2_15;
    const struct module_hooks *modules; /* lent; NULL: none */
    bool tf32;           /* torch.backends.cuda.matmul.allow_tf32 */
    uint64_t seed;       /* of the next random operation */

    struct pool tensors, storages, nodes, frames, holders, mappings;
    struct block *rooms; /* of nodes: of many edges (node_widen()), and what contexts have */
};

enum plim_status engine_create(struct plim_device *device, struct plim_allocator *allocator,
                               struct engine **out, struct plim_error *err) PLIM_MUST_CHECK;
void engine_destroy(struct engine **e);

/* As after creation: every tensor, storage and node is gone (their memory too). */
void engine_reset(struct engine *e);

/* Launches an operation; a failure halts the engine. */
void engine_launch(struct engine *e, const struct plim_op *op);
void engine_halt(struct engine *e, enum halt why);
/* Halts with HALT_FAILED for this reason, which the replay then returns; the first one counts. */
void engine_fail(struct engine *e, enum plim_status status);

/* Host memory, zeroed, that goes with the engine's tensors at the latest: out of memory may keep its owner from giving
 * it back. For few at a time. NULL: there is none, and the engine has failed. */
void *engine_take_room(struct engine *e, size_t bytes);
void engine_give_room(struct engine *e, void *room); /* NULL: nothing */

/* x.item() of a scalar: the host waits for it. Zero on a simulated device, where nothing is
 * computed, and when halted. */
double engine_item(struct engine *e, const struct tensor *x);
/* Copies `bytes` from the host to the start of `x`, which is contiguous. */
void engine_write(struct engine *e, struct tensor *x, const void *from, size_t bytes);

/* The class of new storages, for the tensors of one purpose: temporaries unless said. Returns what
 * it was, to be set again. */
static inline enum plim_memory_class engine_set_class(struct engine *e,
                                                      enum plim_memory_class new_class)
{
    enum plim_memory_class before = e->memory.new_class;
    e->memory.new_class = new_class;
    return before;
}

/* Bytes allocated now, as torch.cuda.memory_allocated(). */
static inline int64_t engine_allocated(const struct engine *e)
{
    return plim_allocator_statistics(e->allocator)->allocated;
}

#endif
