#include "clock.h"

#include <assert.h>
#include <string.h>

void plim_sim_clock_launch(struct plim_sim_clock *c, double host_seconds, enum plim_device_task task,
                           double device_seconds, bool waits)
{
    plim_timeline_launch(&c->line, host_seconds, device_seconds, waits);
    c->load.launching_seconds += host_seconds;
    c->load.running_seconds[task] += device_seconds;
    for (int i = 0; i < c->depth; i++)
        plim_round_launch(&c->rounds[i], host_seconds, device_seconds, waits);
}

void plim_sim_clock_drive(struct plim_sim_clock *c, double driver_seconds, bool waits)
{
    if (waits) c->line.host = fmax(c->line.host, c->line.device);
    c->line.host += driver_seconds;
    c->load.driver_seconds += driver_seconds;
}

void plim_sim_clock_begin_round(struct plim_sim_clock *c)
{
    assert(c->depth < PLIM_DEVICE_ROUNDS);
    c->load_before[c->depth] = c->load;
    c->rounds[c->depth++] = PLIM_ROUND_EMPTY;
}

void plim_sim_clock_end_round(struct plim_sim_clock *c, struct plim_device_round *out)
{
    assert(c->depth > 0);
    const struct plim_round *round = &c->rounds[--c->depth];
    const struct plim_device_load load = plim_device_load_between(&c->load_before[c->depth], &c->load);
    *out = (struct plim_device_round){.seconds = {round->from_host.host, round->from_host.device,
                                                  round->from_device.host, round->from_device.device},
                                      .launching_seconds = load.launching_seconds,
                                      .number = c->rounds_ended++};
    memcpy(out->running_seconds, load.running_seconds, sizeof(out->running_seconds));
}

void plim_sim_clock_repeat(struct plim_sim_clock *c, const struct plim_device_round *from,
                           int64_t times)
{
    const struct plim_round round = {{from->seconds[0], from->seconds[1]},
                                     {from->seconds[2], from->seconds[3]}};
    plim_timeline_repeat(&c->line, &round, times);
    c->load.launching_seconds += from->launching_seconds * (double)times;
    for (int i = 0; i < PLIM_DEVICE_TASKS; i++)
        c->load.running_seconds[i] += from->running_seconds[i] * (double)times;
    for (int i = 0; i < c->depth; i++) plim_round_repeat(&c->rounds[i], &round, times);
}
