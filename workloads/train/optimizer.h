/* Optimizers, with the memory behaviour of torch.optim (and bitsandbytes) on CUDA.
 *
 * States are born in the first step. One file and one row of the table in optimizer.c each.
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
    struct tensor **params, **grads; /* of the running step: parameters that have a gradient */
    size_t count;
    struct tensor **scratch;  /* room for one list of temporaries */
    bool by_trainer;          /* as transformers' Trainer makes it: optimizer_as_trainer() */
    struct tensor **ordered;  /* then: the parameters that decay, then biases and norms, */
    size_t groups[2];         /* how many there are of both, which are stepped one after the other, */
    struct tensor *embeddings[OPTIMIZER_EMBEDDINGS]; /* and those whose states are not quantised */
    struct tensor *shared[2]; /* one for all parameters (bitsandbytes' quantisation maps) */
    bool sharded; /* the parameters are DTensors, of which this rank has a part each */
    bool started;
    bool has_compiled;     /* torch.compile has made kernels for a parameter */
    int64_t steps;         /* done and running */
    int64_t managed_bytes; /* of states in managed memory, which is no GPU's own */
};

struct optimizer_kind {
    const char *name;
    /* One step over `count` (params, grads); makes the states at the first. `found_inf` is the
     * gradient scaler's flag for fused kernels, or NULL. */
    void (*step)(struct engine *e, struct optimizer *o, struct tensor *found_inf,
                 struct tensor *grad_scale);
    bool takes_scaler; /* the kernel unscales the gradients itself (fused) */
    bool in_fp32;      /* of bitsandbytes' kinds: states are not quantised */
    bool walks;        /* steps the parameters of all groups in one loop, whose variables outlive a group */
    int bits;          /* of torchao's kinds: of a quantised state's element */
    bool is_paged;     /* of bitsandbytes': large states are in managed memory */
};

extern const struct optimizer_kind optimizer_adamw, optimizer_adamw_fused, optimizer_sgd,
    optimizer_adafactor, optimizer_adafactor_transformers, optimizer_adamw_torch_8bit,
    optimizer_adamw_torch_4bit, optimizer_adamw_8bit, optimizer_paged_adamw_32bit,
    optimizer_paged_adamw_8bit;

enum plim_status optimizer_create(struct optimizer *o, enum plim_optimizer kind,
                                  const struct parameters *p) PLIM_MUST_CHECK;
void optimizer_finish(struct optimizer *o); /* host memory only */
/* Does Trainer let it decay? Biases and norms do not, which it knows by their names; of adapters all do. Nearly all
 * of these have one dimension, and nothing else has. */
static inline bool optimizer_decays(bool is_adapter, const struct tensor *parameter)
{
    return is_adapter || (parameter->a.ndim > 1) != parameter->odd_name;
}
/* From now on it is as transformers' Trainer makes it: of two groups, what decays and what does not; SGD without
 * momentum; Adafactor by transformers; bitsandbytes' states of embeddings (NULL: there are no more) in fp32. */
void optimizer_as_trainer(struct optimizer *o, bool adapters,
                          struct tensor *const embeddings[OPTIMIZER_EMBEDDINGS]);
/* Finds the parameters that have a gradient; returns how many (also in `count`). */
size_t optimizer_collect(struct optimizer *o);
void optimizer_step(struct engine *e, struct optimizer *o, struct tensor *found_inf,
                    struct tensor *grad_scale);
/* A step on the parameter `index` alone: all are stepped one after another so, from the first to the last. */
void optimizer_step_one(struct engine *e, struct optimizer *o, size_t index);
/* optimizer.zero_grad(set_to_none=True) */
void optimizer_zero_grad(struct engine *e, struct optimizer *o);

/* --- for the kinds ---------------------------------------------------------------------------- */

/* A new state like the parameter, zeroed. */
struct tensor *optimizer_state_like(struct engine *e, struct tensor *parameter,
                                    enum plim_dtype dtype);
/* AdamW's numbers for this step: torch.optim's defaults. */
struct plim_adam optimizer_adam(const struct optimizer *o);
/* One kernel over lists of equal length; lists[0] is written. */
void optimizer_foreach(struct engine *e, enum plim_foreach f, size_t count, int list_count,
                       struct tensor **const *lists, double alpha);

#endif
