/* Seconds of a recorded step on a device that models time.
 *
 * What a step launches is the same in every step, and allocating takes no time on such a device. So it is
 * launched once, from end to end, and its rounds are repeated until they follow one another as they do
 * in the course of a training.
 */
#ifndef PLIM_WORKLOADS_RECORDING_TIME_H
#define PLIM_WORKLOADS_RECORDING_TIME_H

#include "devices/device.h"
#include "recording.h"

struct plim_recorded_time {
    double seconds;           /* from the end of a step to that of the next */
    double launching_seconds; /* of these, the host's */
    double running_seconds[PLIM_DEVICE_TASKS]; /* the device's */
    bool host_bound; /* launching takes longer than running on the slowest host that this one may be */
};

/* `numbers`: the stream's sizes at `point`; `accumulation`: micro-steps of the step, 2 or more where the
 * stream has loops. All 0 where the stream does not say what is launched, or the device is a real one. */
enum plim_status plim_recorded_step_time(struct plim_device *device,
                                         const struct plim_recorded_stream *stream,
                                         struct plim_recorded_point point, const int64_t *numbers,
                                         int64_t accumulation,
                                         struct plim_recorded_time *out) PLIM_MUST_CHECK;

#endif
