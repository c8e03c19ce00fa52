/* Autocast: which type an operand runs in, and the cache of cast parameters. */
#include "engine.h"
#include "ops.h"
#include <stdlib.h>

void autocast_enter(struct engine *e, enum plim_dtype dtype)
{
    e->autocast = true;
    e->autocast_dtype = dtype;
    e->autocast_depth++;
}

void autocast_leave(struct engine *e)
{
    if (--e->autocast_depth > 0) return;
    e->autocast = false;
    for (size_t i = 0; i < e->cast_count; i++) {
        struct tensor *cast = e->cast_cache[i]->cast;
        e->cast_cache[i]->cast = NULL;
        tensor_drop(e, cast);
    }
    e->cast_count = 0;
}

static bool is_float(const struct tensor *x)
{
    return x->a.dtype == PLIM_F32 || x->a.dtype == PLIM_BF16 || x->a.dtype == PLIM_F16;
}

static bool remember(struct engine *e, struct tensor *x)
{
    if (e->cast_count == e->cast_capacity) {
        size_t capacity = e->cast_capacity ? 2 * e->cast_capacity : 256;
        struct tensor **cache = realloc(e->cast_cache, capacity * sizeof(struct tensor *));
        if (!cache) return false;
        e->cast_cache = cache;
        e->cast_capacity = capacity;
    }
    e->cast_cache[e->cast_count++] = x;
    return true;
}

struct tensor *autocast_low(struct engine *e, struct tensor *x)
{
    if (!e->autocast || e->halted || !is_float(x) || x->a.dtype == e->autocast_dtype) return x;
    bool cached = x->a.dtype == PLIM_F32 && x->requires_grad && !x->grad_fn && !x->is_view;
    if (cached && x->cast) return x->cast;
    struct tensor *y = op_to(e, x, e->autocast_dtype);
    if (!cached || y == e->poison) return y;
    if (remember(e, x)) x->cast = tensor_keep(y);
    else engine_fail(e, PLIM_NOMEM);
    return y;
}

struct tensor *autocast_fp32(struct engine *e, struct tensor *x)
{
    if (!e->autocast || e->halted || !is_float(x) || x->a.dtype == PLIM_F32) return x;
    return op_to(e, x, PLIM_F32);
}
