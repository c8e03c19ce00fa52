/* The table of optimizers and the functions that they share. */
#include "optimizer.h"
#include <stdlib.h>
#include <string.h>

static const struct optimizer_kind *const kinds[PLIM_OPTIMIZER_COUNT] = {
    [PLIM_OPTIMIZER_ADAMW] = &optimizer_adamw,
    [PLIM_OPTIMIZER_ADAMW_FUSED] = &optimizer_adamw_fused,
    [PLIM_OPTIMIZER_SGD] = &optimizer_sgd,
    [PLIM_OPTIMIZER_ADAFACTOR] = &optimizer_adafactor,
    [PLIM_OPTIMIZER_ADAMW_TORCH_8BIT] = &optimizer_adamw_torch_8bit,
    [PLIM_OPTIMIZER_ADAMW_TORCH_4BIT] = &optimizer_adamw_torch_4bit,
    [PLIM_OPTIMIZER_ADAMW_8BIT] = &optimizer_adamw_8bit,
    [PLIM_OPTIMIZER_PAGED_ADAMW_32BIT] = &optimizer_paged_adamw_32bit,
    [PLIM_OPTIMIZER_PAGED_ADAMW_8BIT] = &optimizer_paged_adamw_8bit,
};

enum plim_status optimizer_create(struct optimizer *o, enum plim_optimizer kind,
                                  const struct parameters *p)
{
    *o = (struct optimizer){.kind = kinds[kind], .parameters = p};
    size_t n = p->count ? p->count : 1;
    struct tensor **block = calloc(n * (OPTIMIZER_STATES + 4), sizeof(struct tensor *));
    if (!block) return PLIM_NOMEM;
    o->params = block;
    o->grads = block + n;
    o->scratch = block + 2 * n;
    o->ordered = block + 3 * n;
    for (int i = 0; i < OPTIMIZER_STATES; i++) o->state[i] = block + (size_t)(i + 4) * n;
    return PLIM_OK;
}

void optimizer_finish(struct optimizer *o)
{
    free(o->params);
    *o = (struct optimizer){0};
}

size_t optimizer_collect(struct optimizer *o)
{
    o->count = 0;
    for (size_t i = 0; i < o->parameters->count; i++) {
        struct tensor *x = o->parameters->list[i];
        if (!x->requires_grad || !x->grad) continue;
        o->params[o->count] = x;
        o->grads[o->count++] = x->grad;
    }
    return o->count;
}

size_t optimizer_group_end(const struct optimizer *o, size_t start)
{
    size_t end = start;
    while (end < o->count && o->grads[end]->a.dtype == o->grads[start]->a.dtype) end++;
    return end;
}

/* Sorts `list` into groups whose gradients have one type, using `scratch`. */
static void group_list(const struct optimizer *o, struct tensor **list, struct tensor **scratch)
{
    size_t count = 0;
    for (size_t i = o->count; i-- > 0;) {
        uint8_t type = o->grads[i]->a.dtype;
        size_t first = 0;
        while (o->grads[first]->a.dtype != type) first++;
        for (size_t k = i; k < o->count && first == i; k++)
            if (o->grads[k]->a.dtype == type) scratch[count++] = list[k];
    }
    memcpy(list, scratch, count * sizeof(struct tensor *));
}

void optimizer_group(struct optimizer *o)
{
    if (!o->count || optimizer_group_end(o, 0) == o->count) return;
    group_list(o, o->params, o->scratch);
    group_list(o, o->grads, o->scratch);
}

void optimizer_as_trainer(struct optimizer *o, bool adapters,
                          struct tensor *const embeddings[OPTIMIZER_EMBEDDINGS])
{
    size_t count = 0;
    o->by_trainer = true;
    if (o->kind == &optimizer_adafactor) o->kind = &optimizer_adafactor_transformers;
    memcpy(o->embeddings, embeddings, sizeof(o->embeddings));
    for (int group = 0; group < 2; group++) {
        size_t before = count;
        for (size_t i = 0; i < o->parameters->count; i++)
            if (optimizer_decays(adapters, o->parameters->list[i]) == !group)
                o->ordered[count++] = o->parameters->list[i];
        o->groups[group] = count - before;
    }
}

static void step_all(struct engine *e, struct optimizer *o, struct tensor *found_inf, struct tensor *grad_scale)
{
    bool grad = e->grad_enabled;
    e->grad_enabled = false;
    optimizer_collect(o);
    o->steps++;
    if (!e->halted && o->count) o->kind->step(e, o, found_inf, grad_scale);
    o->started = true;
    e->grad_enabled = grad;
}

/* Steps `count` of the parameters; their states begin at `first`. */
static void step_part(struct engine *e, const struct parameters *list, size_t first, struct optimizer *o, bool is_last,
                      struct tensor *found_inf, struct tensor *grad_scale)
{
    struct optimizer part = *o;
    part.parameters = list;
    for (int i = 0; i < OPTIMIZER_STATES; i++) part.state[i] += first;
    step_all(e, &part, found_inf, grad_scale);
    memcpy(o->shared, part.shared, sizeof(o->shared));
    o->managed_bytes = part.managed_bytes;
    o->has_compiled = part.has_compiled;
    if (!is_last) return;
    o->steps = part.steps;
    o->started = true;
}

void optimizer_step(struct engine *e, struct optimizer *o, struct tensor *found_inf,
                    struct tensor *grad_scale)
{
    if (!o->by_trainer) {
        step_all(e, o, found_inf, grad_scale);
        return;
    }
    if (o->kind->walks) {
        const struct parameters all = {.list = o->ordered, .count = o->groups[0] + o->groups[1]};
        step_part(e, &all, 0, o, true, found_inf, grad_scale);
        return;
    }
    for (int i = 0; i < 2; i++) {
        size_t first = i ? o->groups[0] : 0;
        step_part(e, &(struct parameters){.list = o->ordered + first, .count = o->groups[i]}, first, o, i == 1,
                  found_inf, grad_scale);
    }
}

void optimizer_step_one(struct engine *e, struct optimizer *o, size_t index)
{
    step_part(e, &(struct parameters){.list = &o->parameters->list[index], .count = 1}, index, o,
              index + 1 == o->parameters->count, NULL, NULL);
}

void optimizer_zero_grad(struct engine *e, struct optimizer *o)
{
    for (size_t i = 0; i < o->parameters->count; i++) {
        struct tensor *x = o->parameters->list[i];
        struct tensor *grad = x->grad;
        x->grad = NULL;
        tensor_drop(e, grad);
    }
}

struct tensor *optimizer_state_like(struct engine *e, struct tensor *parameter,
                                    enum plim_dtype dtype)
{
    enum plim_memory_class before = engine_set_class(e, PLIM_MEMORY_OPTIMIZER);
    struct tensor *x = tensor_keep(tensor_empty_like(e, parameter, dtype));
    op_fill_(e, x, 0);
    engine_set_class(e, before);
    return x;
}

struct plim_adam optimizer_adam(const struct optimizer *o)
{
    return (struct plim_adam){.rate = OPTIMIZER_RATE,
                              .beta1 = 0.9,
                              .beta2 = 0.999,
                              .epsilon = 1e-8,
                              .weight_decay = 0.01,
                              .step = o->steps};
}

void optimizer_foreach(struct engine *e, enum plim_foreach f, size_t count, int list_count,
                       struct tensor **const *lists, double alpha)
{
    if (e->halted || !count) return;
    struct plim_op op = {.kind = PLIM_OP_FOREACH,
                         .foreach = (uint8_t)f,
                         .n_lists = (uint8_t)list_count,
                         .alpha = alpha,
                         .list_length = count};
    /* A tensor starts with its array, so a list of tensors is a list of arrays. */
    for (int i = 0; i < list_count; i++) op.lists[i] = (const struct plim_array *const *)lists[i];
    engine_launch(e, &op);
}
