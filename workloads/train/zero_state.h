/* The state of ZeRO on a rank (zero.h says what is held, and from when to when), and functions that all stages
 * share. */
#ifndef PLIM_TRAIN_ZERO_STATE_H
#define PLIM_TRAIN_ZERO_STATE_H

#include "link.h"
#include "optimizer.h"
#include "workloads/models/model.h"

/* A weight that trains. */
struct zero_weight {
    struct tensor *parameter;
    const struct zero_group *group; /* NULL at stage 3 */
    int64_t offset;                 /* in the group's flat tensor, in elements */
    bool is_owned;  /* this rank's part has some of it */
    bool is_reduced; /* in this backward */
    struct tensor *grad; /* owned: what this step's micro-steps add up to, or NULL */
    struct tensor *norm; /* owned, offloaded: of this step's gradient, or NULL */
};

/* Weights of one group of the optimizer: they follow one another in a flat tensor. transformers' Trainer makes
 * two groups, the plain loop one. */
struct zero_group {
    struct tensor *flat, *master; /* the weights; this rank's part of them in fp32 */
    int64_t part;                 /* elements of a rank */
    size_t first, end;            /* of the weights */
    struct tensor *padding;       /* of the last rank's gradients */
};

enum { ZERO_GROUPS = 2 };

struct zero_bucket {
    struct tensor *buffer[2]; /* one, or two that take turns; NULL: not allocated yet */
    int current;
    size_t *weights; /* those whose gradients wait, in their order */
    size_t count;
    int64_t elements;
};

struct zero {
    struct decoder *model; /* NULL: there is no ZeRO */
    const struct plim_zero *options;
    int stage;
    int64_t world, rank;
    bool overlaps, reduces;
    bool contiguous;    /* contiguous_gradients; always with offloading in stages 1 and 2 */
    bool offloads;      /* fp32 weights, gradients and states are on the host (zero_offload.c) */
    int64_t micro_step; /* of this step, from 0 */
    struct tensor *staging; /* offloads, stages 1 and 2: buffer for gradients that come back from the host */
    struct parameters sharded; /* for the optimizer: the groups' `master` */
    struct zero_group groups[ZERO_GROUPS]; /* stages 1 and 2 */
    int group_count;
    struct zero_weight *weights; /* group by group */
    struct tensor **norms; /* room for one per weight */
    size_t count;
    struct zero_bucket bucket;
    struct tensor *owned; /* gradients of owned weights, of this micro-step; NULL: not allocated yet */
    int64_t owned_elements, owned_used;
    struct tensor *norm;      /* of the last step */
    struct zero3 *gathered;   /* stage 3: its parameters; `owned` then holds the gradients, and is never freed */
    struct tensor *returned;  /* the result of engine.backward() */
    struct tensor *inputs, *pixels; /* the inputs of the forward; NULL: it is over */
    struct decoder_hooks hooks;
    struct link *link; /* lent */
};

/* The engine has no fp64; to the allocator it is the same as int64. */
static const enum plim_dtype zero_double = PLIM_I64;

static inline enum plim_dtype zero_dtype(const struct zero *z)
{
    return z->model->parameters.dtype;
}

/* Is the model on the device before DeepSpeed gets it, as are quantised models and those loaded with a device_map? */
static inline bool zero_is_loaded(const struct zero *z)
{
    return decoder_is_loaded(z->model->setting);
}

/* Are a rank's pieces of the parameters on the host (stage 3)? */
static inline bool zero_offloads_parameters(const struct zero *z)
{
    return z->options->parameters == PLIM_OFFLOAD_CPU;
}

/* Are losses and their gradients divided by the accumulation? Trainer turns that off. */
static inline bool zero_divides(const struct zero *z)
{
    return !plim_loop_is_trainers(z->model->setting->loop);
}

/* The optimizer's groups: Trainer makes one of what decays and one of biases and norms. */
static inline int zero_group_count(const struct zero *z)
{
    return plim_loop_is_trainers(z->model->setting->loop) ? ZERO_GROUPS : 1;
}

/* The index of the group, of two, that a weight is in. */
static inline int zero_group_of(const struct zero *z, const struct tensor *weight)
{
    return !optimizer_decays(z->model->setting->lora.r > 0, weight);
}

/* The number of elements of a weight that this rank owns; *from: the first of them. */
static inline int64_t zero_owned(const struct zero *z, const struct zero_weight *w, int64_t *from)
{
    int64_t first = z->rank * w->group->part - w->offset, end = first + w->group->part;
    int64_t n = tensor_elements(w->parameter);
    *from = first > 0 ? first : 0;
    return (end < n ? end : n) - *from;
}

/* grad.data = a view of `buffer` at `offset`, where the gradient is copied to */
static inline void zero_move_grad(struct engine *e, struct tensor *grad, struct tensor *buffer,
                                  int64_t offset)
{
    if (e->halted) return;
    struct plim_array a = grad->a;
    struct tensor *view = tensor_keep(tensor_alias(e, buffer, a.ndim, a.shape, a.stride, offset));
    struct plim_op op = {
        .kind = PLIM_OP_COPY, .n_out = 1, .n_in = 1, .out = {&view->a}, .in = {&grad->a}};
    if (!e->halted) engine_launch(e, &op);
    if (!e->halted) tensor_set_data(e, grad, view);
}

#endif
