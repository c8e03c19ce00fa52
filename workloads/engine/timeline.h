/* What is allocated during a training step, moment by moment, for a chart.
 *
 * A moment is noted at each allocation and release. There are at most PLIM_TIMELINE_MOMENTS of them:
 * when there is no more room, two neighbours are merged into the one with more bytes. So the
 * timeline is an upper envelope of the allocated bytes, and its largest moment is the peak.
 */
#ifndef PLIM_ENGINE_TIMELINE_H
#define PLIM_ENGINE_TIMELINE_H

#include "memory_class.h"
#include <stddef.h>
#include <stdint.h>

enum { PLIM_TIMELINE_MOMENTS = 256 };

struct plim_moment {
    double seconds;    /* since the step began, by the device's clock */
    const char *phase; /* "forward", "backward", "optimizer" */
    int64_t allocated_bytes, reserved_bytes;
    int64_t class_bytes[PLIM_MEMORY_CLASS_COUNT]; /* they add up to allocated_bytes */
};

struct plim_timeline {
    size_t count;
    struct plim_moment moments[PLIM_TIMELINE_MOMENTS];
    /* while it is recorded: */
    const char *phase;
    double start;        /* of the step, on the device's clock */
    int64_t stride;      /* how many notes make one moment */
    int64_t noted;       /* notes in the last moment */
};

void plim_timeline_begin(struct plim_timeline *timeline, double start_seconds);

/* The next moment; its phase is the timeline's, and its time is that of the device's clock. */
void plim_timeline_note(struct plim_timeline *timeline, const struct plim_moment *moment);

#endif
