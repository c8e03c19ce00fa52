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

/* AccumulateGrad's post hook (the context is struct zero). */
void zero_accumulated(struct engine *e, void *context, struct tensor *variable);
/* The hook of a model's logits. */
struct tensor *zero_hook_logits(struct engine *e, void *context, struct tensor *logits);

#endif
