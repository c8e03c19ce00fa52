/* A forecast: will a training program's allocator request more memory in a later step, although all steps are alike?
 *
 * A caching allocator may rearrange blocks over many steps, until a block is missing that all earlier steps found: no
 * number of steps with a steady peak is enough. But its further behaviour follows from its past. The
 * blocks that PyTorch's allocator handed out in a trial (devices/virtual/record/stream.h) are played to ours, then
 * its steady step again and again, until the allocator's state repeats or for PLIM_FORECAST_STEPS steps. The
 * forecast is valid if, after playing the trial itself, our segments have as many bytes as PyTorch's.
 *
 * Only the bytes of a block are known, not the bytes requested: they differ where the rest was too small to be
 * split off (1 MiB). For a step's blocks the smallest size in the last steps is used.
 */
#ifndef PLIM_AUTOTUNE_TRACE_FORECAST_H
#define PLIM_AUTOTUNE_TRACE_FORECAST_H

#include "autotune/base/status.h"
#include <stdbool.h>
#include <stdint.h>

enum { PLIM_FORECAST_STEPS = 256 }; /* the most steps that are played */

struct plim_forecast {
    bool is_known;
    int64_t steps;       /* after at most this many more steps, the segments have grown; 0: they never do */
    int64_t grown_bytes; /* by how much in the end; 0 if they never do */
};

/* The allocator of the program, according to its environment and its GPU. */
struct plim_forecast_allocator {
    char *const *environment; /* ends with NULL; its plim_allocator_options() are used */
    bool ascending;           /* each segment lies above all earlier ones (catalogue.h) */
};

/* From the file `name` in `folder`, which may still be written to. If no forecast is possible (steps that differ,
 * several GPUs, another allocator), is_known is false, which is not a failure. Thread-safe. */
enum plim_status plim_forecast_make(const char *folder, const char *name,
                                    const struct plim_forecast_allocator *allocator,
                                    struct plim_forecast *out,
                                    struct plim_error *err) PLIM_MUST_CHECK;

#endif
