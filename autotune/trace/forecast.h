/* Forecasts whether a training program's allocator will request more memory in a later step, although all steps are the
 * same.
 *
 * A caching allocator may rearrange blocks over many steps, until it lacks a free block that all earlier steps found:
 * no number of steps with a steady peak rules that out. But its behaviour is deterministic. The blocks that PyTorch's
 * allocator handed out in a trial (devices/virtual/record/stream.h) are played to plimsoll's allocator, then the steady
 * step again and again, until the allocator's state repeats or for PLIM_FORECAST_STEPS steps. The forecast is valid if,
 * after the trial was played, its segments have as many bytes as PyTorch's.
 *
 * Only the size of a block is known, not the requested size: they differ if the rest was too small to be split off
 * (1 MiB). For each block of a step the smallest size in the last steps is used. */
#ifndef PLIM_AUTOTUNE_TRACE_FORECAST_H
#define PLIM_AUTOTUNE_TRACE_FORECAST_H

#include "autotune/base/status.h"
#include <stdbool.h>
#include <stdint.h>

enum { PLIM_FORECAST_STEPS = 256 }; /* the most steps that are played */

struct plim_forecast {
    bool is_known;
    int64_t steps;       /* the segments will have grown after at most this many more steps; 0: they do not grow */
    int64_t grown_bytes; /* total growth; 0 if they do not grow */
};

/* The allocator of the program, according to its environment and its GPU. */
struct plim_forecast_allocator {
    char *const *environment; /* ends with NULL; its plim_allocator_options() are used */
    bool ascending;           /* each new segment is placed above all earlier ones (catalogue.h) */
};

/* Makes a forecast from the file `name` in `folder`, which may still be written to. If none is possible (steps that
 * differ, several GPUs, another allocator), is_known is false, which is no error. Thread-safe. */
enum plim_status plim_forecast_make(const char *folder, const char *name,
                                    const struct plim_forecast_allocator *allocator,
                                    struct plim_forecast *out,
                                    struct plim_error *err) PLIM_MUST_CHECK;

#endif
