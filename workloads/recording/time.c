#include "time.h"
#include <string.h>

enum { SETTLING_STEPS = 3 }; /* as many as the engine's replays run before the step that is reported */

struct timing {
    struct plim_device *device;
    const struct plim_recorded_stream *stream;
    const int64_t *numbers;
    int64_t accumulation;
    double host_work; /* seconds per micro-step */
    PLIM_ARRAY(struct plim_device_round) works; /* the effect of each work of the stream on the clock */
};

static enum plim_status launch_work(const struct timing *t, const struct plim_recorded_work *work)
{
    enum plim_status st = PLIM_OK;
    for (size_t i = 0; i < work->count && !st; i++) {
        const struct plim_cost *launch =
            &t->stream->launches.items[t->stream->launched.items[work->first + i]];
        struct plim_cost cost = *launch;
        for (int k = 0; k < plim_cost_rows[cost.kind].numbers; k++) {
            int64_t number = t->numbers[launch->number[k]];
            cost.number[k] = number > 0 ? number : 1;
        }
        st = plim_cost_launch(t->device, &cost);
    }
    return st;
}

/* Launches each work once: a step has a few hundred, and repeats each of them many times. */
static enum plim_status launch_works(struct timing *t)
{
    const struct plim_recorded_stream *stream = t->stream;
    enum plim_status st = PLIM_ARRAY_RESERVE(&t->works, stream->works.count);
    for (size_t i = 0; i < stream->works.count && !st; i++) {
        plim_device_begin_round(t->device);
        st = launch_work(t, &stream->works.items[i]);
        plim_device_end_round(t->device, &t->works.items[i]);
    }
    return st;
}

static void launch_events(const struct timing *t, size_t from, size_t to)
{
    const struct plim_recorded_event *events = t->stream->events.items;
    for (size_t i = from; i < to; i++)
        if (events[i].work) plim_device_repeat(t->device, &t->works.items[events[i].work - 1], 1);
}

/* Adds the time of the micro-steps between the first and the last. */
static void launch_loop(const struct timing *t, const struct plim_recorded_loop *loop)
{
    struct plim_device_round round;
    int64_t times = t->accumulation - PLIM_RECORDED_OUTSIDE;
    if (times <= 0) return;
    plim_device_begin_round(t->device);
    plim_device_host_work(t->device, t->host_work);
    launch_events(t, loop->first, loop->first + loop->count);
    plim_device_end_round(t->device, &round);
    plim_device_repeat(t->device, &round, times - 1);
}

static void launch_step(const struct timing *t)
{
    const struct plim_recorded_stream *stream = t->stream;
    size_t at = stream->before;
    int outside = t->accumulation < PLIM_RECORDED_OUTSIDE ? 1 : PLIM_RECORDED_OUTSIDE;
    plim_device_host_work(t->device, outside * t->host_work);
    for (size_t i = 0; i < stream->loops.count; i++) {
        const struct plim_recorded_loop *loop = &stream->loops.items[i];
        if (loop->first < stream->before) continue;
        launch_events(t, at, loop->first);
        launch_loop(t, loop);
        at = loop->first + loop->count;
    }
    launch_events(t, at, stream->events.count);
}

static enum plim_status time_step(const struct timing *timing, struct plim_recorded_time *out)
{
    struct plim_device *device = timing->device;
    struct plim_device_load before, after;
    struct plim_device_round round;
    double start, end;
    plim_device_load(device, &before);
    plim_device_begin_round(device);
    launch_step(timing);
    plim_device_end_round(device, &round);
    plim_device_load(device, &after);
    plim_device_repeat(device, &round, SETTLING_STEPS - 1);
    enum plim_status st = plim_device_now(device, &start);
    plim_device_repeat(device, &round, 1);
    if (!st) st = plim_device_now(device, &end);
    if (st) return st;
    out->seconds = end - start;
    const struct plim_device_load load = plim_device_load_between(&before, &after);
    out->launching_seconds = load.launching_seconds;
    memcpy(out->running_seconds, load.running_seconds, sizeof(out->running_seconds));
    out->host_bound = load.launching_at_most_seconds > plim_device_running_seconds(&load);
    return PLIM_OK;
}

enum plim_status plim_recorded_step_time(struct plim_device *device,
                                         const struct plim_recorded_stream *stream,
                                         struct plim_recorded_point point, const int64_t *numbers,
                                         int64_t accumulation, struct plim_recorded_time *out)
{
    struct timing timing = {.device = device,
                            .stream = stream,
                            .numbers = numbers,
                            .accumulation = accumulation,
                            .host_work = plim_recorded_host_work(stream, point)};
    *out = (struct plim_recorded_time){0};
    if (!stream->works.count || !plim_device_can_repeat(device)) return PLIM_OK;
    enum plim_status st = launch_works(&timing);
    if (!st) st = time_step(&timing, out);
    PLIM_ARRAY_FINISH(&timing.works);
    return st;
}
