/* Creating, counting, tying, ordering and copying parameters. */
#include "nn.h"
#include <stdlib.h>
#include <string.h>

static bool parameters_add(struct parameters *p, struct tensor *x)
{
    if (p->count == p->capacity) {
        size_t capacity = p->capacity ? 2 * p->capacity : 256;
        struct tensor **list = realloc(p->list, capacity * sizeof(struct tensor *));
        if (!list) return false;
        p->list = list;
        p->capacity = capacity;
    }
    p->list[p->count++] = x;
    return true;
}

void nn_initialise(struct engine *e, struct tensor *x, enum parameter_init init, uint64_t seed)
{
    static const double limit = 0.0346410161513775; /* 0.02 sqrt(3) */
    if (init == INIT_WEIGHT) op_random_(e, x, limit, seed);
    else op_fill_(e, x, init == INIT_ONES);
}

struct tensor *nn_parameter(struct engine *e, struct parameters *p, enum parameter_init init,
                            int ndim, const int64_t *shape)
{
    enum plim_memory_class before = engine_set_class(e, PLIM_MEMORY_PARAMETERS);
    struct tensor *x = tensor_keep(tensor_empty(e, p->dtype, ndim, shape));
    engine_set_class(e, before);
    if (e->meta && !e->halted) x->a.data = p->made; /* it has no address yet */
    nn_initialise(e, x, init, p->made++);
    nn_adopt(e, p, x);
    return x;
}

void nn_adopt(struct engine *e, struct parameters *p, struct tensor *x)
{
    if (e->halted) return;
    tensor_classify(e, x, PLIM_MEMORY_PARAMETERS);
    x->is_parameter = true;
    x->layer = p->layer;
    tensor_require_grad(e, x);
    if (!parameters_add(p, x)) engine_fail(e, PLIM_NOMEM);
    p->elements += tensor_elements(x);
    p->trainable_elements += tensor_elements(x);
}

struct tensor *nn_deep_copy(struct engine *e, struct tensor *x)
{
    struct tensor *copy = tensor_keep(op_clone(e, x));
    if (!e->halted)
        tensor_drop(e, tensor_keep(tensor_empty(e, (enum plim_dtype)x->a.dtype, 0, NULL)));
    return copy;
}

void nn_tie(struct engine *e, struct parameters *p, struct tensor **weight, struct tensor *to)
{
    if (e->halted) return;
    p->made--;
    p->elements -= tensor_elements(*weight);
    p->trainable_elements -= tensor_elements(*weight);
    size_t at = 0;
    while (at < p->count && p->list[at] != *weight) at++;
    if (at < p->count) {
        p->count--;
        memmove(&p->list[at], &p->list[at + 1], (p->count - at) * sizeof(struct tensor *));
    }
    tensor_drop(e, *weight);
    *weight = to;
}

struct tensor *nn_buffer(struct engine *e, struct tensor *x)
{
    struct tensor *y = tensor_keep(x);
    tensor_classify(e, y, PLIM_MEMORY_PARAMETERS);
    return y;
}

void nn_move_last(struct parameters *p, size_t index)
{
    if (index >= p->count) return;
    struct tensor *last = p->list[p->count - 1];
    memmove(&p->list[index + 1], &p->list[index], (p->count - 1 - index) * sizeof(struct tensor *));
    p->list[index] = last;
}

struct tensor *nn_run(struct engine *e, struct tensor *const *weights, int kind,
                      struct tensor *(*forward)(struct engine *e, const void *module,
                                                struct tensor *x),
                      const void *module, struct tensor *x)
{
    const struct module_hooks *hooks = e->modules;
    bool is_leaf = kind == NN_LEAF;
    if (!hooks || !hooks->before || (is_leaf && !hooks->inside) || e->halted) return forward(e, module, x);
    bool was = tensor_enter(x);
    struct tensor *input = tensor_hold(hooks->before(e, hooks->context, weights, kind, x));
    if (is_leaf) e->modules = hooks->inside;
    struct tensor *y = tensor_keep(forward(e, module, input));
    e->modules = hooks;
    if (!e->halted) tensor_set(e, &y, hooks->after(e, hooks->context, weights, kind, y));
    tensor_drop(e, input);
    tensor_leave(e, x, was);
    return tensor_yield(y);
}

void nn_access_weight(struct engine *e, struct tensor *first, int kind, struct tensor *weight)
{
    if (nn_in_parts(e) && !e->halted) e->modules->access(e, e->modules->context, first, kind, weight);
}

void nn_begin(struct engine *e)
{
    if (e->modules && e->modules->begin && !e->halted) e->modules->begin(e, e->modules->context);
}

struct tensor *nn_end(struct engine *e, struct tensor *y)
{
    if (!e->modules || !e->modules->end || e->halted) return y;
    bool was = tensor_enter(y);
    struct tensor *end = e->modules->end(e, e->modules->context, y);
    if (end == y)
        y->floating = was;
    else
        tensor_leave(e, y, was);
    return end;
}

struct tensor *nn_product(struct engine *e, struct tensor *x, struct tensor *weight, struct tensor *bias)
{
    if (e->modules && e->modules->own_linear) return op_linear_function(e, x, weight, bias);
    return op_linear(e, x, weight, bias);
}

static struct tensor *product(struct engine *e, const void *module, struct tensor *x)
{
    struct tensor *const *weight = module;
    return nn_product(e, x, *weight, NULL);
}

struct tensor *nn_adapter_product(struct engine *e, struct tensor *const *matrix, struct tensor *x)
{
    if (!nn_in_parts(e)) return product(e, matrix, x);
    return nn_run(e, (struct tensor *const[2]){*matrix, NULL}, NN_LINEAR, product, matrix, x);
}

struct tensor *nn_dropout(struct engine *e, struct tensor *x, double p)
{
    nn_begin(e);
    return nn_end(e, op_dropout(e, x, p));
}

static struct tensor *embedding(struct engine *e, const void *module, struct tensor *rows)
{
    struct tensor *const *weight = module;
    return op_embedding(e, *weight, rows);
}

struct tensor *nn_embedding(struct engine *e, struct tensor *weight, struct tensor *rows)
{
    return nn_run(e, (struct tensor *const[2]){weight, NULL}, NN_EMBEDDING, embedding, &weight, rows);
}

void nn_renew(struct engine *e, struct tensor *parameter)
{
    struct tensor *copy = tensor_keep(op_detached_clone(e, parameter));
    if (e->halted) return;
    tensor_classify(e, copy, PLIM_MEMORY_PARAMETERS);
    tensor_set_data(e, parameter, copy);
}

void nn_cast(struct engine *e, struct tensor *parameter, enum plim_dtype dtype)
{
    if (e->halted || parameter->a.dtype == dtype) return;
    bool grad = e->grad_enabled;
    e->grad_enabled = false;
    struct tensor *copy = tensor_keep(op_to(e, parameter, dtype));
    e->grad_enabled = grad;
    if (e->halted) return;
    tensor_classify(e, copy, PLIM_MEMORY_PARAMETERS);
    tensor_set_data(e, parameter, copy);
}

void nn_freeze(struct engine *e, struct parameters *p, size_t count)
{
    p->frozen = malloc((count ? count : 1) * sizeof(*p->frozen));
    if (!p->frozen) {
        engine_fail(e, PLIM_NOMEM);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        struct tensor *x = p->list[i];
        struct node *accumulator = x->accumulator;
        x->requires_grad = false;
        x->accumulator = NULL;
        node_drop(e, accumulator);
        p->frozen[i] = x;
        p->trainable_elements -= tensor_elements(x);
    }
    p->frozen_count = count;
    p->count -= count;
    if (!p->count) p->trainable_elements = 0; /* quantised weights have fewer codes than elements */
    memmove(p->list, p->list + count, p->count * sizeof(*p->list));
}
