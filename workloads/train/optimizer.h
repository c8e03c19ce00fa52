/* Optimizers, with the memory behaviour of torch.optim, bitsandbytes, torchao and transformers on CUDA.
 *
 * States are allocated in the first step. Each optimizer has a file and a row of the table in optimizer.c. */
#ifndef PLIM_TRAIN_OPTIMIZER_H
#define PLIM_TRAIN_OPTIMIZER_H

#include "workloads/nn/nn.h"
#include "workloads/spec/spec.h"

enum { OPTIMIZER_STATES = 6, OPTIMIZER_EMBEDDINGS = 3 };

/* The learning rate of the golden runs; the other hyperparameters are the defaults of torch.optim. A rate changes
 * neither bytes nor seconds. */
#define OPTIMIZER_RATE 1e-4

struct optimizer {
    const struct optimizer_kind *kind;
    const struct parameters *parameters;
    /* the kind's states of each trainable parameter; NULL if it has none */
    struct tensor **state[OPTIMIZER_STATES];
    struct tensor **params, **grads; /* of the current step: parameters that have a gradient, and their gradients */
    size_t count;
    struct tensor **scratch;  /* room for one list of temporaries */
    bool by_trainer;          /* optimizer_as_trainer() was called; sets the next three: */
    struct tensor **ordered;  /* parameters with weight decay, then biases and norms */
    size_t groups[2];         /* the number of each; the groups are stepped one after the other */
    struct tensor *embeddings[OPTIMIZER_EMBEDDINGS]; /* parameters whose states are not quantised; then NULL */
    struct tensor *shared[2]; /* shared by all parameters (bitsandbytes' quantisation maps) */
    bool sharded; /* the parameters are DTensors, of which this rank holds a shard each */
    bool started;
    bool has_compiled;     /* torch.compile has compiled kernels for a parameter */
    int64_t steps;         /* including the current one */
    int64_t managed_bytes; /* bytes of states in managed memory, which are not counted as GPU memory */
};

struct optimizer_kind {
    const char *name;
    /* Performs one step over `count` (params, grads); the first step allocates the states. `found_inf` is the gradient
     * scaler's flag for fused kernels, or NULL. */
    void (*step)(struct engine *e, struct optimizer *o, struct tensor *found_inf,
                 struct tensor *grad_scale);
    bool takes_scaler; /* the kernel unscales the gradients itself (fused) */
    bool in_fp32;      /* bitsandbytes' kinds: states are not quantised */
    bool walks;        /* steps the parameters of all groups in one loop, so that its variables outlive a group */
    int bits;          /* torchao's kinds: bits per element of a quantised state */
    bool is_paged;     /* bitsandbytes' kinds: large states are in managed memory */
};

extern const struct optimizer_kind optimizer_adamw, optimizer_adamw_fused, optimizer_sgd,
    optimizer_adafactor, optimizer_adafactor_transformers, optimizer_adamw_torch_8bit,
    optimizer_adamw_torch_4bit, optimizer_adamw_8bit, optimizer_paged_adamw_32bit,
    optimizer_paged_adamw_8bit;

enum plim_status optimizer_create(struct optimizer *o, enum plim_optimizer kind,
                                  const struct parameters *p) PLIM_MUST_CHECK;
void optimizer_finish(struct optimizer *o); /* frees host memory only */
/* True if Trainer applies weight decay to the parameter: it excludes biases and norms, which it recognises by their
 * names; adapters always decay. Biases and norms have one dimension and all other parameters have several, except those
 * with odd_name. With adapters, those with odd_name are copies of biases and norms (modules_to_save). */
static inline bool optimizer_decays(bool has_adapters, const struct tensor *parameter)
{
    return has_adapters ? !parameter->odd_name : (parameter->a.ndim > 1) != parameter->odd_name;
}
/* Configures the optimizer as transformers' Trainer creates it: two groups, with and without weight decay; SGD without
 * momentum; transformers' Adafactor; bitsandbytes' states of `embeddings` (NULL ends the list) in fp32. */
void optimizer_as_trainer(struct optimizer *o, bool adapters,
                          struct tensor *const embeddings[OPTIMIZER_EMBEDDINGS]);
/* Stores the parameters that have a gradient, and their gradients, in `params` and `grads`. Returns their number, also
 * stored in `count`. */
size_t optimizer_collect(struct optimizer *o);
/* _group_tensors_by_device_and_dtype(): sorts these parameters, and their gradients, into groups of one type. The type
 * that occurs last comes first: the map (std::unordered_map in
 * at::native::_group_tensors_by_first_tensors_device_and_dtype(), aten/src/ATen/native/ForeachUtils.h) iterates from
 * the entry that was inserted last. */
void optimizer_group(struct optimizer *o);
/* Returns the end of the group that begins at `start`. */
size_t optimizer_group_end(const struct optimizer *o, size_t start);
void optimizer_step(struct engine *e, struct optimizer *o, struct tensor *found_inf,
                    struct tensor *grad_scale);
/* Steps the parameter `index` alone. The caller steps all of them in order. */
void optimizer_step_one(struct engine *e, struct optimizer *o, size_t index);
/* optimizer.zero_grad(set_to_none=True) */
void optimizer_zero_grad(struct engine *e, struct optimizer *o);

/* --- used by the optimizer kinds -------------------------------------------------------------- */

/* Returns a new zeroed state of the parameter's shape, in `dtype`. */
struct tensor *optimizer_state_like(struct engine *e, struct tensor *parameter,
                                    enum plim_dtype dtype);
/* Returns AdamW's hyperparameters for this step: torch.optim's defaults. */
struct plim_adam optimizer_adam(const struct optimizer *o);
/* Launches one kernel over `list_count` lists of `count` tensors each; lists[0] is written. */
void optimizer_foreach(struct engine *e, enum plim_foreach f, size_t count, int list_count,
                       struct tensor **const *lists, double alpha);

#endif
