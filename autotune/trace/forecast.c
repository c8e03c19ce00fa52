#include "forecast.h"
#include "allocator_options.h"
#include "segments.h"
#include "trace.h"
#include "workloads/recording/join.h"
#include <fcntl.h>
#include <unistd.h>

enum {
    SMALL_BYTES = 1 << 20,         /* larger blocks are not split if the rest is at most this */
    MOST_EVENTS = 4 * 1000 * 1000, /* limit of the events that are played */
};

_Static_assert((int)PLIM_FORECAST_STEPS == (int)PLIM_REPLAY_PROOF_STEPS, "steps that are played");

/* --- the steps of the trial ------------------------------------------------------------------- */

static bool is_large(const struct plim_traced *event)
{
    return event->kind == PLIM_TRACED_ALLOCATION && event->value > SMALL_BYTES;
}

/* Finds the period of the trace in events, ignoring the sizes of large blocks; 0 if it does not repeat. */
static enum plim_status find_period(struct plim_trace *trace, size_t *period)
{
    PLIM_ARRAY(int64_t) bytes = {0};
    size_t count = trace->events.count, start;
    struct plim_error ignored;
    *period = 0;
    if (PLIM_ARRAY_RESERVE(&bytes, count)) return PLIM_NOMEM;
    for (size_t i = 0; i < count; i++) {
        struct plim_traced *event = &trace->events.items[i];
        bytes.items[i] = event->value;
        if (is_large(event)) event->value = SMALL_BYTES + 1;
    }
    enum plim_status st = plim_trace_steady(trace, &start, period, &ignored);
    for (size_t i = 0; i < count; i++) trace->events.items[i].value = bytes.items[i];
    PLIM_ARRAY_FINISH(&bytes);
    return st == PLIM_UNSTABLE ? PLIM_OK : st;
}

/* Returns by how many bytes a large block may exceed the requested size. */
static int64_t most_rest(const struct plim_allocator_config *config)
{
    return config->max_split_size == INT64_MAX ? SMALL_BYTES : config->max_non_split_rounding;
}

/* True if both events may have the same requested size. */
static bool is_near(const struct plim_traced *a, const struct plim_traced *b, int64_t rest)
{
    bool is_same_kind = a->kind == b->kind && a->cuda_stream == b->cuda_stream;
    if (!is_large(a) || !is_large(b)) return is_same_kind && a->value == b->value;
    return is_same_kind && a->value - b->value <= rest && b->value - a->value <= rest;
}

/* Returns the number of steps at the end of the trace that may be equal to the last one. */
static size_t count_near(const struct plim_trace *trace, size_t period, int64_t rest)
{
    const struct plim_traced *end = trace->events.items + trace->events.count, *last = end - period;
    for (size_t steps = 1;; steps++) {
        if ((steps + 1) * period > trace->events.count) return steps;
        const struct plim_traced *step = end - (steps + 1) * period;
        for (size_t i = 0; i < period; i++)
            if (!is_near(&step[i], &last[i], rest)) return steps;
    }
}

/* Sets the size of each block in the last steps to the smallest that it had in any of them. */
static void even_out(struct plim_trace *trace, size_t period, size_t steps)
{
    struct plim_traced *first = trace->events.items + trace->events.count - steps * period;
    for (size_t i = 0; i < period; i++) {
        int64_t least = first[i].value;
        for (size_t k = 1; k < steps; k++)
            if (first[k * period + i].value < least) least = first[k * period + i].value;
        for (size_t k = 0; k < steps; k++) first[k * period + i].value = least;
    }
}

/* --- later steps ------------------------------------------------------------------------------ */

/* Returns the peak of the segments' bytes before a step, counted from 0. Once steps repeat, it does not change. */
static int64_t peak_before(const struct plim_segments *played, size_t step)
{
    size_t count = step < played->before_step.count ? played->before_step.items[step] : played->bytes.count;
    int64_t reserved = 0, peak = 0;
    for (size_t i = 0; i < count; i++) {
        reserved += played->bytes.items[i];
        if (reserved > peak) peak = reserved;
    }
    return peak;
}

/* Returns the number of training steps of a period. */
static size_t steps_of(const struct plim_trace *trace, size_t period)
{
    size_t first = trace->events.count - period, steps = 0;
    for (size_t i = 0; i < trace->timed.count; i++)
        steps += trace->timed.items[i].events > first &&
                 trace->timed.items[i].events <= trace->events.count;
    return steps ? steps : 1;
}

/* Compares the played segments with the trial, which has done `done` periods and is within the next. */
static void compare(const struct plim_trace *trace, const struct plim_recorded_stream *stream,
                    const struct plim_segments *played, struct plim_forecast *out)
{
    size_t period = stream->events.count - stream->before;
    size_t done = (trace->events.count - stream->before) / period;
    int64_t reserved = trace->timed.items[trace->timed.count - 1].reserved_bytes;
    int64_t most = peak_before(played, SIZE_MAX);
    size_t step = done + (peak_before(played, done) != reserved);
    out->is_known = peak_before(played, step) == reserved;
    if (!out->is_known || most == reserved) return;
    while (peak_before(played, step + 1) == reserved) step++;
    out->steps = (int64_t)((step + 1 - done) * steps_of(trace, period));
    out->grown_bytes = most - reserved;
}

static enum plim_status forecast_growth(struct plim_trace *trace,
                                        const struct plim_allocator_config *config, bool ascending,
                                        struct plim_forecast *out, struct plim_error *err)
{
    struct plim_recorded_stream stream = {0};
    struct plim_segments played = {0};
    struct plim_replay replay;
    size_t period, steps;
    enum plim_status st = find_period(trace, &period);
    if (st || !period) return st ? plim_no_memory(err) : PLIM_OK;
    steps = count_near(trace, period, most_rest(config));
    if (steps < PLIM_TRACE_REPEATS) return PLIM_OK;
    even_out(trace, period, steps);
    played.most_steps = MOST_EVENTS / period;
    st = plim_trace_join(trace, 1, &stream, err);
    /* A GPU of unlimited size: the trial itself will show if a later step does not fit. */
    const char *gpu = ascending ? "sim:1024GiB,placement=ascending" : "sim:1024GiB";
    if (!st) st = plim_segments_play(&stream, trace->point, 0, gpu, config, &played, &replay, err);
    if (!st && played.failed) st = plim_no_memory(err);
    if (!st) compare(trace, &stream, &played, out);
    plim_segments_finish(&played);
    plim_recorded_stream_finish(&stream);
    return st == PLIM_NOMEM ? st : PLIM_OK; /* after any other error the forecast is not known */
}

/* Reads the allocator's options. Returns false if they are invalid. */
static bool read_options(char *const *environment, struct plim_allocator_config *out)
{
    struct plim_error ignored;
    const char *variable;
    return plim_allocator_config_parse(plim_allocator_options(environment, &variable), out, &ignored) == PLIM_OK;
}

enum plim_status plim_forecast_make(const char *folder, const char *name,
                                    const struct plim_forecast_allocator *allocator,
                                    struct plim_forecast *out, struct plim_error *err)
{
    struct plim_trace trace = {.point = {1, 1}};
    struct plim_allocator_config config;
    uint64_t lost;
    *out = (struct plim_forecast){0};
    int directory = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (directory < 0 || !read_options(allocator->environment, &config)) {
        if (directory >= 0) close(directory);
        return PLIM_OK;
    }
    enum plim_status st = plim_trace_read_file(directory, name, &trace, &lost);
    if (st)
        st = plim_no_memory(err);
    else if (!lost && trace.events.count && trace.timed.count)
        st = forecast_growth(&trace, &config, allocator->ascending, out, err);
    plim_trace_finish(&trace);
    close(directory);
    return st;
}
