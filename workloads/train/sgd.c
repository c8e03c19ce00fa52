/* torch.optim.SGD, foreach, with momentum 0.9; without momentum as transformers' Trainer creates it. */
#include "optimizer.h"

enum { MOMENTUM };

static void step(struct engine *e, struct optimizer *o, struct tensor *found_inf,
                 struct tensor *grad_scale)
{
    (void)found_inf;
    (void)grad_scale;
    optimizer_group(o);
    struct tensor **buffer = o->by_trainer ? o->grads : o->state[MOMENTUM];
    if (o->by_trainer) {
        /* without momentum the gradients are used directly */
    } else if (!o->started) { /* the first buffer is a copy of the gradient */
        enum plim_memory_class before = engine_set_class(e, PLIM_MEMORY_OPTIMIZER);
        for (size_t i = 0; i < o->count; i++)
            buffer[i] = tensor_keep(op_copy_like(e, o->grads[i], o->grads[i]));
        engine_set_class(e, before);
    } else {
        optimizer_foreach(e, PLIM_FOREACH_MUL, o->count, 1, (struct tensor * *const[]){buffer},
                          0.9);
        optimizer_foreach(e, PLIM_FOREACH_ADD, o->count, 2,
                          (struct tensor * *const[]){buffer, o->grads}, 1);
    }
    optimizer_foreach(e, PLIM_FOREACH_ADD, o->count, 2,
                      (struct tensor * *const[]){o->params, buffer}, -OPTIMIZER_RATE);
}

const struct optimizer_kind optimizer_sgd = {.name = "sgd", .step = step};
