/* Measures the time of a training step: a warm-up, then repeats until the median is known well enough.
 *
 * Step times have a skewed distribution, and a GPU's clock takes a while to become steady. Hence:
 *
 *   warm-up   at least 3 steps and 1 s, until two consecutive windows of 0.5 s differ by less than 1 %; at most a third
 *             of the allowed time. None if the GPU has just worked for 1 s, on anything: its clock is up
 *   repeats   until the 95 % confidence interval of the median (stats.h) reaches at most 1 % to either side, or the
 *             allowed time is over
 *
 * A series is noisy if its interval is still wider than that, or if its last third differs by more than 2 % from its
 * first (the GPU throttles, or another process uses it). */
#ifndef PLIM_AUTOTUNE_RUN_MEASURE_H
#define PLIM_AUTOTUNE_RUN_MEASURE_H

#include "autotune/base/status.h"
#include <stdbool.h>

enum { PLIM_MEASURE_REPEATS = 1000 }; /* at most */

struct plim_timing {
    int repeats; /* 0: nothing was timed */
    double median_seconds;
    double half_width_seconds; /* of the confidence interval; 0: too few repeats */
    double drift;              /* plim_stats_drift() */
    bool noisy;
};

/* Runs one step and stores its time. Any status but PLIM_OK ends the measurement. */
typedef enum plim_status (*plim_measure_step)(void *user, double *seconds);

/* How long a GPU has been working without a pause. Zeroed: it has not worked yet. */
struct plim_warmth {
    double busy_seconds;
    double until; /* plim_clock_seconds() when it was last seen at work */
};

/* Records that the GPU has just worked for `seconds`. */
void plim_warmth_record(struct plim_warmth *warmth, double seconds);

/* Step times, all positive. */
struct plim_measured_steps {
    double seconds[PLIM_MEASURE_REPEATS];
    int count;
};

/* Measures steps. `warmth` is that of the GPU: all its work must be recorded there; the steps run here are. `steps` has
 * the times of steps that were run just before: they count as the first repeats if the GPU was warm when they began;
 * new repeats are appended. `allowed_seconds` is host time and bounds warm-up and repeats together; at least one repeat
 * is run. Returns the status of `step` if it fails; PLIM_INVALID for a time that is not positive and finite. */
enum plim_status plim_measure(plim_measure_step step, void *user, struct plim_warmth *warmth,
                              struct plim_measured_steps *steps, double allowed_seconds,
                              struct plim_timing *out) PLIM_MUST_CHECK;

/* Computes the timing from step times. */
void plim_measure_summarise(const struct plim_measured_steps *steps, struct plim_timing *out);

#endif
