/* Seconds of a recorded step on a device that models time.
 *
 * The launches are the same in every step, and allocating takes no time on such a device. So a step is launched once
 * completely, and its rounds are repeated until they overlap as in continuous training. */
#ifndef PLIM_WORKLOADS_RECORDING_TIME_H
#define PLIM_WORKLOADS_RECORDING_TIME_H

#include "devices/device.h"
#include "recording.h"

struct plim_recorded_time {
    double seconds;           /* from the end of a step to the end of the next */
    double launching_seconds; /* the host's time */
    double running_seconds[PLIM_DEVICE_TASKS]; /* the device's time */
    bool host_bound; /* on the slowest host to expect, launching takes longer than running */
};

/* Computes the time of a step. `numbers`: the stream's sizes at `point`; `accumulation`: micro-steps of the step, 2 or
 * more if the stream has loops. All 0 if the stream has no launches, or on a real device. */
enum plim_status plim_recorded_step_time(struct plim_device *device,
                                         const struct plim_recorded_stream *stream,
                                         struct plim_recorded_point point, const int64_t *numbers,
                                         int64_t accumulation,
                                         struct plim_recorded_time *out) PLIM_MUST_CHECK;

#endif
