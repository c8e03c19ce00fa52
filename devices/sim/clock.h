/* The clock of a simulated device: the work launched so far, and rounds of it that repeat. */
#ifndef PLIM_DEVICES_SIM_CLOCK_H
#define PLIM_DEVICES_SIM_CLOCK_H

#include "devices/device.h"
#include "timeline.h"

/* Zeroed: at 0, and idle. */
struct plim_sim_clock {
    struct plim_timeline line;
    struct plim_device_load load;
    struct plim_round rounds[PLIM_DEVICE_ROUNDS]; /* the open ones, nested */
    struct plim_device_load load_before[PLIM_DEVICE_ROUNDS];
    int depth;
    uint32_t rounds_ended;
};

void plim_sim_clock_launch(struct plim_sim_clock *clock, double host_seconds, enum plim_device_task task,
                           double device_seconds, bool waits);
/* The host spends this time in the driver; if it `waits`, it starts after the device is idle. */
void plim_sim_clock_drive(struct plim_sim_clock *clock, double driver_seconds, bool waits);
void plim_sim_clock_begin_round(struct plim_sim_clock *clock);
void plim_sim_clock_end_round(struct plim_sim_clock *clock, struct plim_device_round *round);
void plim_sim_clock_repeat(struct plim_sim_clock *clock, const struct plim_device_round *round,
                           int64_t times);

#endif
