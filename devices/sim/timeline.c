#include "timeline.h"

#include <math.h>

void plim_timeline_launch(struct plim_timeline *line, double host_seconds, double device_seconds,
                          bool waits)
{
    line->host += host_seconds;
    line->device = fmax(line->device, line->host) + device_seconds;
    if (waits) line->host = line->device;
}

void plim_round_launch(struct plim_round *round, double host_seconds, double device_seconds,
                       bool waits)
{
    plim_timeline_launch(&round->from_host, host_seconds, device_seconds, waits);
    plim_timeline_launch(&round->from_device, host_seconds, device_seconds, waits);
}

/* Returns the timeline after the round. */
static struct plim_timeline after(const struct plim_round *round, struct plim_timeline line)
{
    return (struct plim_timeline){
        fmax(line.host + round->from_host.host, line.device + round->from_device.host),
        fmax(line.host + round->from_host.device, line.device + round->from_device.device)};
}

void plim_timeline_repeat(struct plim_timeline *line, const struct plim_round *round, int64_t times)
{
    struct plim_round power = *round;
    while (times > 0) {
        if (times % 2) *line = after(&power, *line);
        times /= 2;
        if (times)
            power = (struct plim_round){after(&power, power.from_host),
                                        after(&power, power.from_device)};
    }
}

void plim_round_repeat(struct plim_round *outer, const struct plim_round *round, int64_t times)
{
    plim_timeline_repeat(&outer->from_host, round, times);
    plim_timeline_repeat(&outer->from_device, round, times);
}
