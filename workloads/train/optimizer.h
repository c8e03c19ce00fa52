/* Optimizers, with the memory behaviour of torch.optim (and bitsandbytes) on CUDA.
 *
 * States are made in the first step. Each optimizer has a file and a row of the table in optimizer.c.
 */
#ifndef PLIM_TRAIN_OPTIMIZER_H
#define PLIM_TRAIN_OPTIMIZER_H

#include "workloads/nn/nn.h"
#include "workloads/spec/spec.h"

enum { OPTIMIZER_STATES = 6, OPTIMIZER_EMBEDDINGS = 3 };

/* The learning rate of the golden runs; the rest are the defaults of torch.optim. A rate changes
 * neither bytes nor seconds. */
#define OPTIMIZER_RATE 1e-4

struct optimizer {
    const struct optimizer_kind *kind;
    const struct parameters *parameters;
    /* per trainable parameter: what the kind keeps; NULL where it keeps nothing */
    struct tensor **state[OPTIMIZER_STATES];
    struct tensor **params, **grads; /* of the current step: parameters that have a gradient */
    size_t count;
    struct tensor **scratch;  /* room for one list of temporaries */
    bool by_trainer;          /* as transformers' Trainer makes it: optimizer_as_trainer(), with the next three: */
    struct tensor **ordered;  /* the parameters that decay, then biases and norms */
    size_t groups[2];         /* how many there are of each; the groups are stepped one after the other */
    struct tensor *embeddings[OPTIMIZER_EMBEDDINGS]; /* parameters whose states are not quantised */
    struct tensor *shared[2]; /* one for all parameters (bitsandbytes' quantisation maps) */
    bool sharded; /* the parameters are DTensors, of which this rank has a part each */
    bool started;
    bool has_compiled;     /* torch.compile has made kernels for a parameter */
    int64_t steps;         /* done and running */
    int64_t managed_bytes; /* of states in managed memory, not the GPU's own */
};

struct optimizer_kind {
    const char *name;
    /* One step over `count` (params, grads); the first one makes the states. `found_inf` is the
     * gradient scaler's flag for fused kernels, or NULL. */
    void (*step)(struct engine *e, struct optimizer *o, struct tensor *found_inf,
                 struct tensor *grad_scale);
    bool takes_scaler; /* the kernel unscales the gradients itself (fused) */
    bool in_fp32;      /* bitsandbytes' kinds: states are not quantised */
    bool walks;        /* steps the parameters of all groups in one loop, whose variables outlive a group */
    int bits;          /* torchao's kinds: bits per element of a quantised state */
    bool is_paged;     /* bitsandbytes' kinds: large states are in managed memory */
};

extern const struct optimizer_kind optimizer_adamw, optimizer_adamw_fused, optimizer_sgd,
    optimizer_adafactor, optimizer_adafactor_transformers, optimizer_adamw_torch_8bit,
    optimizer_adamw_torch_4bit, optimizer_adamw_8bit, optimizer_paged_adamw_32bit,
    optimizer_paged_adamw_8bit;

enum plim_status optimizer_create(struct optimizer *o, enum plim_optimizer kind,
                                  const struct parameters *p) PLIM_MUST_CHECK;
void optimizer_finish(struct optimizer *o); /* host memory only */
/* Does the parameter have weight decay in Trainer? Biases and norms, which it knows by their names, have none; adapters
 * always do. Biases and norms have one dimension and no other parameter has, except those with odd_name. */
static inline bool optimizer_decays(bool is_adapter, const struct tensor *parameter)
{
    return is_adapter || (parameter->a.ndim > 1) != parameter->odd_name;
}
/* Makes it an optimizer as transformers' Trainer creates it: two groups, with and without weight decay; SGD without
 * momentum; transformers' Adafactor; bitsandbytes' states of embeddings (NULL: there are no more) in fp32. */
void optimizer_as_trainer(struct optimizer *o, bool adapters,
                          struct tensor *const embeddings[OPTIMIZER_EMBEDDINGS]);
/* Finds the parameters that have a gradient; returns how many (also in `count`). */
size_t optimizer_collect(struct optimizer *o);
/* _group_tensors_by_device_and_dtype(): puts these parameters, and their gradients, together by their types. The type
 * that occurs last comes first: the map (std::unordered_map in
 * at::native::_group_tensors_by_first_tensors_device_and_dtype(), aten/src/ATen/native/ForeachUtils.h) begins with the
 * entry that was inserted last. */
void optimizer_group(struct optimizer *o);
/* Where the group that begins at `start` ends */
size_t optimizer_group_end(const struct optimizer *o, size_t start);
void optimizer_step(struct engine *e, struct optimizer *o, struct tensor *found_inf,
                    struct tensor *grad_scale);
/* A step on the parameter `index` alone. The caller steps all, from the first to the last. */
void optimizer_step_one(struct engine *e, struct optimizer *o, size_t index);
/* optimizer.zero_grad(set_to_none=True) */
void optimizer_zero_grad(struct engine *e, struct optimizer *o);

/* --- for the kinds ---------------------------------------------------------------------------- */

/* A new state like the parameter, zeroed. */
struct tensor *optimizer_state_like(struct engine *e, struct tensor *parameter,
                                    enum plim_dtype dtype);
/* AdamW's hyperparameters for this step: torch.optim's defaults. */
struct plim_adam optimizer_adam(const struct optimizer *o);
/* One kernel over lists of equal length; lists[0] is written. */
void optimizer_foreach(struct engine *e, enum plim_foreach f, size_t count, int list_count,
                       struct tensor **const *lists, double alpha);

#endif
