/* What zero_create.c (making), zero.c (backward) and zero_step.c (the optimizer's step) share. */
#ifndef PLIM_TRAIN_ZERO_INTERNAL_H
#define PLIM_TRAIN_ZERO_INTERNAL_H

#include "zero.h"

/* The engine knows no fp64; to the allocator it is as int64. */
static const enum plim_dtype zero_double = PLIM_I64;

static inline enum plim_dtype zero_dtype(const struct zero *z)
{
    return (enum plim_dtype)z->flat->a.dtype;
}

/* How much of a weight this rank owns, from which of its elements on. */
static inline int64_t zero_owned(const struct zero *z, const struct zero_weight *w, int64_t *from)
{
    int64_t first = z->rank * z->part - w->offset, end = first + z->part;
    int64_t n = tensor_elements(w->parameter);
    *from = first > 0 ? first : 0;
    return (end < n ? end : n) - *from;
}

/* grad.data = its place in `buffer`, where it is copied to */
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

/* AccumulateGrad's post hook (the context is struct zero). */
void zero_accumulated(struct engine *e, void *context, struct tensor *variable);
/* The hook of a model's logits. */
struct tensor *zero_hook_logits(struct engine *e, void *context, struct tensor *logits);

#endif
