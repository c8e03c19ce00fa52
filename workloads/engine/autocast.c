#include "autocast.h"
#include "engine.h"
#include "ops.h"
#include <stdlib.h>

void autocast_enter(struct engine *e, enum plim_dtype dtype)
{
    e->autocast.on = true;
    e->autocast.dtype = dtype;
    e->autocast.depth++;
}

void autocast_leave(struct engine *e)
{
    struct autocast *a = &e->autocast;
    if (--a->depth > 0) return;
    a->on = false;
    for (size_t i = 0; i < a->cache_count; i++) {
        struct tensor *cast = a->cache[i]->cast;
        a->cache[i]->cast = NULL;
        tensor_drop(e, cast);
    }
    a->cache_count = 0;
}

static bool is_float(const struct tensor *x)
{
    return plim_dtype_is_float(x->a.dtype);
}

static bool remember(struct autocast *a, struct tensor *x)
{
    if (a->cache_count == a->cache_capacity) {
        size_t capacity = a->cache_capacity ? 2 * a->cache_capacity : 256;
        struct tensor **cache = realloc(a->cache, capacity * sizeof(struct tensor *));
        if (!cache) return false;
        a->cache = cache;
        a->cache_capacity = capacity;
    }
    a->cache[a->cache_count++] = x;
    return true;
}

struct tensor *autocast_low(struct engine *e, struct tensor *x)
{
    struct autocast *a = &e->autocast;
    if (!a->on || e->halted || !is_float(x) || x->a.dtype == a->dtype) return x;
    bool cached = x->a.dtype == PLIM_F32 && x->requires_grad && !x->grad_fn && !x->is_view;
    if (cached && x->cast) return x->cast;
    bool grad = e->grad_enabled;
    e->grad_enabled |= cached; /* a later use of the cached copy may need a graph */
    if (cached) tensor_require_input_grad(e, x);
    struct tensor *y = op_to(e, x, a->dtype);
    e->grad_enabled = grad;
    if (!cached || y == e->poison) return y;
    if (remember(a, x))
        x->cast = tensor_keep(y);
    else
        engine_fail(e, PLIM_NOMEM);
    return y;
}

struct tensor *autocast_fp32(struct engine *e, struct tensor *x)
{
    if (!e->autocast.on || e->halted || !is_float(x) || x->a.dtype == PLIM_F32) return x;
    return op_to(e, x, PLIM_F32);
}
