/* Will the allocator of a program that trains ask for more memory in a later step, though all its steps are alike?
 *
 * A caching allocator may lay blocks out anew for many steps, until a piece is missing that all steps before had: no
 * number of steps with a steady peak is enough. But what it does from here on follows from what it did so far. The
 * blocks that PyTorch's allocator handed out in a trial (devices/virtual/record/stream.h) are played to ours, then
 * its steady step again and again, until the allocator's state repeats or for PLIM_FORECAST_STEPS steps. The
 * forecast counts where what is played of the trial itself ends with segments of as many bytes as PyTorch's had.
 *
 * What is known of a block are its bytes, not those that were asked for: they differ where a rest was too small to be
 * split off (1 MiB). A step's blocks are taken for the smallest that they were in the last steps.
 */
#ifndef PLIM_AUTOTUNE_TRACE_FORECAST_H
#define PLIM_AUTOTUNE_TRACE_FORECAST_H

#include "autotune/base/status.h"
#include <stdbool.h>
#include <stdint.h>

enum { PLIM_FORECAST_STEPS = 256 }; /* and more are not looked at */

struct plim_forecast {
    bool is_known;
    int64_t steps;       /* after so many more at the latest, segments are more than they were; 0: they never are */
    int64_t grown_bytes; /* by how much in the end; 0 then */
};

/* The allocator of the program, as far as its environment and its GPU tell. */
struct plim_forecast_allocator {
    char *const *environment; /* ends with NULL; plim_allocator_options() of it count */
    bool ascending;           /* each segment lies above those before (catalogue.h) */
};

/* Of the file `name` in `folder`, which may still be written to. What cannot be told (steps that differ, several GPUs,
 * another allocator) is not known, and no failure. Thread-safe. */
enum plim_status plim_forecast_make(const char *folder, const char *name,
                                    const struct plim_forecast_allocator *allocator,
                                    struct plim_forecast *out,
                                    struct plim_error *err) PLIM_MUST_CHECK;

#endif
