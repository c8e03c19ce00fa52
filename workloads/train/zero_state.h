/* The state of ZeRO on a rank (zero.h tells which memory is held, and when), and functions that all stages share. */
#ifndef PLIM_TRAIN_ZERO_STATE_H
#define PLIM_TRAIN_ZERO_STATE_H

#include "link.h"
#include "optimizer.h"
#include "workloads/models/model.h"

/* A trainable weight. */
struct zero_weight {
    struct tensor *parameter;
    const struct zero_group *group; /* NULL at stage 3 */
    int64_t offset;                 /* in the group's flat tensor, in elements */
    bool is_owned;  /* this rank's partition has some of its elements */
    bool is_reduced; /* in this backward */
    struct tensor *grad; /* owned weights: the gradient accumulated in this step, or NULL */
    struct tensor *norm; /* owned and offloaded weights: of this step's gradient, or NULL */
};

/* The weights of one group of the optimizer, adjacent in a flat tensor. transformers' Trainer creates two groups, the
 * plain loop one. */
struct zero_group {
    struct tensor *flat, *master; /* the weights; this rank's partition of them in fp32 */
    int64_t partition_size;       /* elements per rank */
    size_t first, end;            /* indices of the weights */
    struct tensor *padding;       /* for the last rank's gradients */
};

enum { ZERO_GROUPS = 2 };

struct zero_bucket {
    struct tensor *buffer[2]; /* one, or two used alternately; NULL: not allocated yet */
    int current;
    size_t *weights; /* indices of those whose gradients are in the bucket, in this order */
    size_t count;
    int64_t elements;
};

struct zero {
    struct decoder *model; /* NULL: ZeRO is not used */
    const struct plim_zero *options;
    int stage;
    int64_t world, rank;
    bool overlaps, reduces;
    bool contiguous;    /* contiguous_gradients; always with offloading in stages 1 and 2 */
    bool offloads;      /* fp32 weights, gradients and states are on the host (zero_offload.c) */
    int64_t micro_step; /* index in this step, from 0 */
    struct tensor *staging; /* offloads, stages 1 and 2: buffer for gradients that are copied back from the host */
    struct parameters masters; /* for the optimizer: the groups' `master` */
    struct zero_group groups[ZERO_GROUPS]; /* stages 1 and 2 */
    int group_count;
    struct zero_weight *weights; /* group by group */
    struct tensor **norms; /* room for one per weight */
    size_t count;
    struct zero_bucket bucket;
    struct tensor *owned; /* gradients of owned weights in this micro-step; NULL: not allocated yet */
    int64_t owned_elements, owned_used;
    struct tensor *norm;      /* of the last step */
    struct zero3 *stage3;     /* NULL at stages 1 and 2; else `owned` has the gradients, and is never freed */
    struct tensor *returned;  /* the result of engine.backward() */
    struct tensor *inputs, *pixels; /* arguments of the running forward, or NULL */
    struct decoder_hooks hooks;
    struct link *link; /* lent */
};

/* The engine has no fp64; to the allocator int64 is the same. */
static const enum plim_dtype zero_double = PLIM_I64;

static inline enum plim_dtype zero_dtype(const struct zero *z)
{
    return z->model->parameters.dtype;
}

/* True if the model is on the device before it is passed to DeepSpeed, like quantised models and those loaded with a
 * device_map. */
static inline bool zero_is_loaded(const struct zero *z)
{
    return decoder_is_loaded(z->model->setting);
}

/* True if a rank's partitions of the parameters are on the host (stage 3). */
static inline bool zero_offloads_parameters(const struct zero *z)
{
    return z->options->parameters == PLIM_OFFLOAD_CPU;
}

/* True if losses and their gradients are divided by the number of accumulation steps. Trainer disables that. */
static inline bool zero_divides(const struct zero *z)
{
    return !plim_loop_is_trainers(z->model->setting->loop);
}

/* Returns the number of the optimizer's groups: Trainer creates one of parameters with weight decay, and one of biases
 * and norms. */
static inline int zero_group_count(const struct zero *z)
{
    return plim_loop_is_trainers(z->model->setting->loop) ? ZERO_GROUPS : 1;
}

/* Returns the index of the group, if there are two, that a weight belongs to. */
static inline int zero_group_of(const struct zero *z, const struct tensor *weight)
{
    return !optimizer_decays(z->model->setting->lora.r > 0, weight);
}

/* Returns the number of elements of a weight that this rank owns, and stores the index of the first of them in
 * *from. */
static inline int64_t zero_owned(const struct zero *z, const struct zero_weight *w, int64_t *from)
{
    int64_t first = z->rank * w->group->partition_size - w->offset, end = first + w->group->partition_size;
    int64_t n = tensor_elements(w->parameter);
    *from = first > 0 ? first : 0;
    return (end < n ? end : n) - *from;
}

/* grad.data = a view of `buffer` at `offset`, into which the gradient is copied. */
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
