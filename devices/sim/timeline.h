/* The clocks of host and device, and rounds of work that repeat.
 *
 * The host runs ahead; the device starts an operation when it is free and the launch has arrived. So the
 * effect of a round of operations on the two clocks is a linear map in the algebra of maximum and sum:
 * with h, d the clocks before the round and h', d' after it,
 *
 *     h' = max(h + hh, d + dh)      d' = max(h + hd, d + dd)
 *
 * hh and hd are the clocks after a round that began with the host at 0 and the device long idle,
 * dh and dd those after one that began with the device at 0. The map of n equal rounds is its n-th
 * power, so that many rounds are as cheap to compute as one, whether host or device is the slower.
 */
#ifndef PLIM_DEVICES_SIM_TIMELINE_H
#define PLIM_DEVICES_SIM_TIMELINE_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

/* Seconds since the device was opened. */
struct plim_timeline {
    double host;   /* when the host has launched everything so far */
    double device; /* when the device will have finished it */
};

/* The map above, for the operations since the start of the round. */
struct plim_round {
    struct plim_timeline from_host, from_device;
};

#define PLIM_ROUND_EMPTY                                                                           \
    (struct plim_round){.from_host = {0, -HUGE_VAL}, .from_device = {-HUGE_VAL, 0}}

/* Adds one operation with its times to launch and to run; `waits`: the host continues when it is finished. */
void plim_timeline_launch(struct plim_timeline *line, double host_seconds, double device_seconds,
                          bool waits);
void plim_round_launch(struct plim_round *round, double host_seconds, double device_seconds,
                       bool waits);

/* Advances the clocks as if the round had run `times` more times. */
void plim_timeline_repeat(struct plim_timeline *line, const struct plim_round *round,
                          int64_t times);
/* The same for a round that contains it. */
void plim_round_repeat(struct plim_round *outer, const struct plim_round *round, int64_t times);

#endif
