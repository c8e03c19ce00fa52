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
    int depth;             /* of nested regions */
    struct tensor **cache; /* parameters whose .cast is set */
    size_t cache_count, cache_capacity;
};

/* Enter and leave a region; leaving the outermost drops the cached casts. */
void autocast_enter(struct engine *e, enum plim_dtype dtype);
void autocast_leave(struct engine *e);
/* `x` in autocast's type, if autocast is on and `x` has another floating type: the cached copy
 * for a leaf parameter, else a fresh copy. Otherwise `x` itself. */
struct tensor *autocast_low(struct engine *e, struct tensor *x);
/* `x` in fp32 if autocast is on and `x` has a lower type; otherwise `x` itself. */
struct tensor *autocast_fp32(struct engine *e, struct tensor *x);

#endif
