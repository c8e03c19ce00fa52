/* How long a training step takes: warm-up, then repeats until the median is known well enough.
 *
 * Times of steps are skewed and a GPU's clock needs a while to become steady, hence:
 *
 *   warm-up   at least 3 steps and 1 s, until two windows of 0.5 s in a row differ by less than
 *             1 %; never more than a third of the time given. None for a GPU that has just worked for that
 *             long, on anything: its clock is up
 *   repeats   until the 95 % confidence interval of the median (stats.h) reaches no further than
 *             1 % to either side, or the time given is over
 *
 * A series that is still wider than that, or whose last third is more than 2 % off its first (the
 * GPU throttles, or another process uses it), is noisy.
 */
#ifndef PLIM_AUTOTUNE_RUN_MEASURE_H
#define PLIM_AUTOTUNE_RUN_MEASURE_H

#include "autotune/base/status.h"
#include <stdbool.h>

enum { PLIM_MEASURE_REPEATS = 1000 }; /* at most */

struct plim_timing {
    int repeats; /* 0: nothing was timed */
    double median_seconds;
    double half_width_seconds; /* of the confidence interval; 0: too few repeats for one */
    double drift;              /* plim_stats_drift() */
    bool noisy;
};

/* Runs one step and says how long it took. Anything but PLIM_OK ends the measurement. */
typedef enum plim_status (*plim_measure_step)(void *user, double *seconds);

/* How long a GPU has worked without a pause until now. Zeroed: not at all. */
struct plim_warmth {
    double busy_seconds;
    double until; /* plim_clock_seconds() when it was last seen at work */
};

/* Notes that the GPU has just worked for this long. */
void plim_warmth_note(struct plim_warmth *warmth, double seconds);

/* Times of steps that were run for another purpose; all positive. */
struct plim_measured_steps {
    double seconds[PLIM_MEASURE_REPEATS];
    int count;
};

/* `warmth`: of the GPU, which runs only these steps and work that was noted; these steps are noted, too.
 * `steps` were run just before, and noted: they are the first repeats if the GPU was warm when they began, and the
 * repeats made here are appended to them. `allowed_seconds` is host time and bounds warm-up and repeats together; at
 * least one repeat is made. Fails only as `step` does; PLIM_INVALID for a step time that is not positive and finite. */
enum plim_status plim_measure(plim_measure_step step, void *user, struct plim_warmth *warmth,
                              struct plim_measured_steps *steps, double allowed_seconds,
                              struct plim_timing *out) PLIM_MUST_CHECK;

/* The timing from the times of steps. */
void plim_measure_summarise(const struct plim_measured_steps *steps, struct plim_timing *out);

#endif
