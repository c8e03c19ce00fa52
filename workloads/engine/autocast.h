/* Autocast: the type in which an operand is used, and the cache of cast parameters (torch.autocast). */
#ifndef PLIM_ENGINE_AUTOCAST_H
#define PLIM_ENGINE_AUTOCAST_H

#include "devices/op.h"
#include <stdbool.h>
#include <stddef.h>

struct engine;
struct tensor;

struct autocast {
    bool on;
    enum plim_dtype dtype;
    int depth;             /* nesting depth of regions */
    struct tensor **cache; /* parameters whose .cast is set */
    size_t cache_count, cache_capacity;
};

/* Enter and leave a region; leaving the outermost one drops the cached casts. */
void autocast_enter(struct engine *e, enum plim_dtype dtype);
void autocast_leave(struct engine *e);
/* Returns `x` in autocast's type, if autocast is enabled and `x` has another floating-point type: the cached copy for a
 * leaf parameter, otherwise a new copy. Otherwise returns `x` itself. */
struct tensor *autocast_low(struct engine *e, struct tensor *x);
/* Returns `x` in fp32 if autocast is enabled and `x` has a lower type; otherwise `x` itself. */
struct tensor *autocast_fp32(struct engine *e, struct tensor *x);

#endif
