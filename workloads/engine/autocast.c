/* Autocast: which type an operand runs in, and the cache of cast parameters. */
#include "graph.h"
#include "ops.h"
#include <stdlib.h>

void autocast_enter(struct graph *g, enum plim_dtype dtype)
{
    g->autocast = true;
    g->autocast_dtype = dtype;
    g->autocast_depth++;
}

void autocast_leave(struct graph *g)
{
    if (--g->autocast_depth > 0) return;
    g->autocast = false;
    for (size_t i = 0; i < g->cast_count; i++) {
        struct tensor *cast = g->cast_cache[i]->cast;
        g->cast_cache[i]->cast = NULL;
        tensor_drop(g, cast);
    }
    g->cast_count = 0;
}

static bool is_float(const struct tensor *x)
{
    return x->a.dtype == PLIM_F32 || x->a.dtype == PLIM_BF16 || x->a.dtype == PLIM_F16;
}

static bool remember(struct graph *g, struct tensor *x)
{
    if (g->cast_count == g->cast_capacity) {
        size_t capacity = g->cast_capacity ? 2 * g->cast_capacity : 256;
        struct tensor **cache = realloc(g->cast_cache, capacity * sizeof(struct tensor *));
        if (!cache) return false;
        g->cast_cache = cache;
        g->cast_capacity = capacity;
    }
    g->cast_cache[g->cast_count++] = x;
    return true;
}

struct tensor *autocast_low(struct graph *g, struct tensor *x)
{
    if (!g->autocast || g->halted || !is_float(x) || x->a.dtype == g->autocast_dtype) return x;
    bool cached = x->a.dtype == PLIM_F32 && x->requires_grad && !x->grad_fn && !x->is_view;
    if (cached && x->cast) return x->cast;
    struct tensor *y = op_to(g, x, g->autocast_dtype);
    if (!cached || y == g->poison) return y;
    if (remember(g, x)) x->cast = tensor_keep(y);
    else graph_fail(g, PLIM_NOMEM);
    return y;
}

struct tensor *autocast_fp32(struct graph *g, struct tensor *x)
{
    if (!g->autocast || g->halted || !is_float(x) || x->a.dtype == PLIM_F32) return x;
    return op_to(g, x, PLIM_F32);
}
