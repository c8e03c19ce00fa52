/* Parameters, Linear, Conv1D, and LoRA around them. */
#include "nn.h"
#include <stdlib.h>

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

static void initialise(struct graph *g, struct tensor *x, enum parameter_init init, uint64_t seed)
{
    static const double limit = 0.0346410161513775; /* 0.02 sqrt(3) */
    if (init == INIT_WEIGHT) op_random_(g, x, limit, seed);
    else op_fill_(g, x, init == INIT_ONES);
}

struct tensor *nn_parameter(struct graph *g, struct parameters *p, enum parameter_init init,
                            int ndim, const int64_t *shape)
{
    enum plim_memory_class fresh = g->fresh_class;
    g->fresh_class = PLIM_MEMORY_PARAMETERS;
    struct tensor *x = tensor_keep(tensor_empty(g, p->dtype, ndim, shape));
    g->fresh_class = fresh;
    initialise(g, x, init, p->made++);
    if (g->halted) return x;
    tensor_classify(g, x, PLIM_MEMORY_PARAMETERS);
    x->is_parameter = true;
    tensor_require_grad(g, x);
    if (!parameters_add(p, x)) graph_fail(g, PLIM_NOMEM);
    p->elements += tensor_elements(x);
    p->trainable_elements += tensor_elements(x);
    return x;
}

void nn_tie(struct graph *g, struct parameters *p, struct tensor **weight, struct tensor *to)
{
    if (g->halted) return;
    p->made--;
    p->elements -= tensor_elements(*weight);
    p->trainable_elements -= tensor_elements(*weight);
    for (size_t i = 0; i < p->count; i++)
        if (p->list[i] == *weight) p->list[i] = p->list[--p->count];
    tensor_drop(g, *weight);
    *weight = to;
}

void nn_renew(struct graph *g, struct tensor *parameter)
{
    bool grad = g->grad_enabled;
    g->grad_enabled = false;
    struct tensor *copy = tensor_keep(op_clone(g, parameter));
    g->grad_enabled = grad;
    if (g->halted) return;
    tensor_classify(g, copy, PLIM_MEMORY_PARAMETERS);
    struct storage *old = parameter->storage;
    parameter->storage = copy->storage;
    parameter->a.data = copy->a.data;
    copy->storage = old;
    tensor_drop(g, copy);
}

void nn_linear_create(struct graph *g, struct parameters *p, struct linear *l, int64_t in,
                      int64_t out, bool bias)
{
    *l = (struct linear){.in = in, .out = out};
    l->weight = nn_parameter(g, p, INIT_WEIGHT, SHAPE(out, in));
    if (bias) l->bias = nn_parameter(g, p, INIT_ZEROS, SHAPE(out));
}

void nn_conv1d_create(struct graph *g, struct parameters *p, struct linear *l, int64_t in,
                      int64_t out)
{
    *l = (struct linear){.in = in, .out = out, .conv1d = true};
    l->weight = nn_parameter(g, p, INIT_WEIGHT, SHAPE(in, out));
    l->bias = nn_parameter(g, p, INIT_ZEROS, SHAPE(out));
}

static struct tensor *base(struct graph *g, const struct linear *l, struct tensor *x)
{
    if (!l->conv1d) return op_linear(g, x, l->weight, l->bias);
    int64_t shape[PLIM_MAX_DIMS];
    int ndim = x->a.ndim;
    for (int i = 0; i < ndim - 1; i++) shape[i] = x->a.shape[i];
    shape[ndim - 1] = l->out;
    int64_t rows = tensor_elements(x) / l->in;
    struct tensor *flat = op_view(g, x, SHAPE(rows, l->in));
    return op_view(g, op_addmm(g, l->bias, flat, l->weight), ndim, shape);
}

struct tensor *nn_linear(struct graph *g, const struct linear *l, struct tensor *x)
{
    if (g->halted) return op_halted(g, 1, &x);
    if (!l->lora) return base(g, l, x);
    bool was = tensor_enter(x);
    struct tensor *y = nn_lora(g, l->lora, base(g, l, x), x);
    tensor_leave(g, x, was);
    return y;
}
