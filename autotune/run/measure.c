#include "measure.h"
#include "autotune/base/clock.h"
#include "autotune/base/stats.h"
#include <math.h>
#include <string.h>

enum { WARM_STEPS = 3, INTERVAL_REPEATS = 6 };

static const double WARM_SECONDS = 1, WINDOW_SECONDS = 0.5, WARM_SHARE = 1.0 / 3;
/* After work a GPU keeps its high clock for longer than this, which is enough to build the next run. */
static const double PAUSE_SECONDS = 1;
static const double STEADY_SHARE = 0.01, WIDTH_SHARE = 0.01, DRIFT_SHARE = 0.02;

struct measurement {
    plim_measure_step step;
    void *user;
    struct plim_warmth *warmth;
    double start, allowed;
};

static bool time_is_over(const struct measurement *m, double share)
{
    return plim_clock_seconds() - m->start >= m->allowed * share;
}

static bool has_paused(const struct plim_warmth *warmth, double at)
{
    return at - warmth->until > PAUSE_SECONDS;
}

void plim_warmth_record(struct plim_warmth *warmth, double seconds)
{
    double now = plim_clock_seconds();
    if (has_paused(warmth, now - seconds)) warmth->busy_seconds = 0;
    warmth->busy_seconds += seconds;
    warmth->until = now;
}

static bool is_warm(const struct plim_warmth *warmth)
{
    return warmth->busy_seconds >= WARM_SECONDS && !has_paused(warmth, plim_clock_seconds());
}

/* True if the GPU was warm before the steps, which must be its last work. */
static bool began_warm(const struct plim_measured_steps *steps, const struct plim_warmth *warmth)
{
    struct plim_warmth before = *warmth;
    for (int i = 0; i < steps->count; i++) before.busy_seconds -= steps->seconds[i];
    return is_warm(&before);
}

static enum plim_status run_step(const struct measurement *m, double *seconds)
{
    enum plim_status st = m->step(m->user, seconds);
    if (st) return st;
    if (!(isfinite(*seconds) && *seconds > 0)) return PLIM_INVALID;
    plim_warmth_record(m->warmth, *seconds);
    return PLIM_OK;
}

static enum plim_status warm_up(const struct measurement *m)
{
    double window = 0, before = 0;
    int steps = 0, in_window = 0;
    if (is_warm(m->warmth)) return PLIM_OK;
    while (steps < PLIM_MEASURE_REPEATS && !time_is_over(m, WARM_SHARE)) {
        double seconds;
        enum plim_status st = run_step(m, &seconds);
        if (st) return st;
        steps++;
        in_window++;
        window += seconds;
        if (window < WINDOW_SECONDS) continue;
        double mean = window / in_window;
        bool steady = before > 0 && fabs(mean / before - 1) < STEADY_SHARE;
        if (steady && steps >= WARM_STEPS && is_warm(m->warmth)) break;
        before = mean;
        window = 0;
        in_window = 0;
    }
    return PLIM_OK;
}

void plim_measure_summarise(const struct plim_measured_steps *steps, struct plim_timing *out)
{
    double sorted[PLIM_MEASURE_REPEATS];
    struct plim_stats stats;
    size_t count = (size_t)steps->count;
    out->repeats = steps->count;
    out->drift = plim_stats_drift(steps->seconds, count, sorted);
    memcpy(sorted, steps->seconds, count * sizeof(*sorted));
    plim_stats_compute(sorted, count, &stats);
    out->median_seconds = stats.median;
    out->half_width_seconds =
        stats.has_interval ? fmax(stats.median_high - stats.median, stats.median - stats.median_low)
                           : 0;
    out->noisy = out->half_width_seconds > WIDTH_SHARE * out->median_seconds ||
                 fabs(out->drift) > DRIFT_SHARE;
}

enum plim_status plim_measure(plim_measure_step step, void *user, struct plim_warmth *warmth,
                              struct plim_measured_steps *steps, double allowed_seconds,
                              struct plim_timing *out)
{
    struct measurement m = {.step = step,
                            .user = user,
                            .warmth = warmth,
                            .start = plim_clock_seconds(),
                            .allowed = allowed_seconds};
    *out = (struct plim_timing){0};
    if (!began_warm(steps, warmth)) steps->count = 0;
    enum plim_status st = warm_up(&m);
    while (!st && steps->count < PLIM_MEASURE_REPEATS) {
        st = run_step(&m, &steps->seconds[steps->count]);
        if (st) break;
        steps->count++;
        plim_measure_summarise(steps, out);
        bool known = steps->count >= INTERVAL_REPEATS &&
                     out->half_width_seconds <= WIDTH_SHARE * out->median_seconds;
        if (known || time_is_over(&m, 1)) break;
    }
    if (st) *out = (struct plim_timing){0};
    return st;
}
