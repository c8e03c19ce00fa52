#include "time.h"

enum { SETTLING_STEPS = 3 }; /* as many as the engine's replays run before the one that counts */

struct timing {
    struct plim_device *device;
    const struct plim_recorded_stream *stream;
    const int64_t *numbers;
    int64_t accumulation;
    double host_work; /* seconds of a micro-step */
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

static enum plim_status launch_events(const struct timing *t, size_t from, size_t to)
{
    enum plim_status st = PLIM_OK;
    for (size_t i = from; i < to && !st; i++) {
        uint32_t work = t->stream->events.items[i].work;
        if (work) st = launch_work(t, &t->stream->works.items[work - 1]);
    }
    return st;
}

/* The micro-steps between the first and the last. */
static enum plim_status launch_loop(const struct timing *t, const struct plim_recorded_loop *loop)
{
    struct plim_device_round round;
    int64_t times = t->accumulation - PLIM_RECORDED_OUTSIDE;
    if (times <= 0) return PLIM_OK;
    plim_device_begin_round(t->device);
    plim_device_host_work(t->device, t->host_work);
    enum plim_status st = launch_events(t, loop->first, loop->first + loop->count);
    plim_device_end_round(t->device, &round);
    if (!st) plim_device_repeat(t->device, &round, times - 1);
    return st;
}

static enum plim_status launch_step(const struct timing *t)
{
    const struct plim_recorded_stream *stream = t->stream;
    size_t at = stream->before;
    enum plim_status st = PLIM_OK;
    int outside = t->accumulation < PLIM_RECORDED_OUTSIDE ? 1 : PLIM_RECORDED_OUTSIDE;
    plim_device_host_work(t->device, outside * t->host_work);
    for (size_t i = 0; i < stream->loops.count && !st; i++) {
        const struct plim_recorded_loop *loop = &stream->loops.items[i];
        if (loop->first < stream->before) continue;
        st = launch_events(t, at, loop->first);
        if (!st) st = launch_loop(t, loop);
        at = loop->first + loop->count;
    }
    return st ? st : launch_events(t, at, stream->events.count);
}

enum plim_status plim_recorded_step_time(struct plim_device *device,
                                         const struct plim_recorded_stream *stream,
                                         struct plim_recorded_point point, const int64_t *numbers,
                                         int64_t accumulation, struct plim_recorded_time *out)
{
    const struct timing timing = {device, stream, numbers, accumulation,
                                  plim_recorded_host_work(stream, point)};
    struct plim_device_load before, after;
    struct plim_device_round round;
    double start, end;
    *out = (struct plim_recorded_time){0};
    if (!stream->works.count || !plim_device_can_repeat(device)) return PLIM_OK;
    plim_device_load(device, &before);
    plim_device_begin_round(device);
    enum plim_status st = launch_step(&timing);
    plim_device_end_round(device, &round);
    plim_device_load(device, &after);
    if (st) return st;
    plim_device_repeat(device, &round, SETTLING_STEPS - 1);
    st = plim_device_now(device, &start);
    plim_device_repeat(device, &round, 1);
    if (!st) st = plim_device_now(device, &end);
    if (st) return st;
    out->seconds = end - start;
    out->launching_seconds = after.launching_seconds - before.launching_seconds;
    out->launching_at_most_seconds =
        after.launching_at_most_seconds - before.launching_at_most_seconds;
    out->running_seconds = after.running_seconds - before.running_seconds;
    return PLIM_OK;
}
