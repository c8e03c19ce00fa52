/* Autocast: which type an operand runs in, and the cache of cast parameters (torch.autocast). */
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
    int depth;             /* of regions */
    struct tensor **cache; /* parameters whose .cast is set */
    size_t cache_count, cache_capacity;
};

/* Enter and leave a region; leaving the outermost drops the cached casts. */
void autocast_enter(struct engine *e, enum plim_dtype dtype);
void autocast_leave(struct engine *e);
/* `x` in autocast's type, where autocast is on and `x` is of another floating type: the cached copy
 * of a leaf parameter, a fresh one else; `x` itself otherwise. */
struct tensor *autocast_low(struct engine *e, struct tensor *x);
/* `x` in fp32 where autocast is on and `x` is of a lower type. */
struct tensor *autocast_fp32(struct engine *e, struct tensor *x);

#endif
