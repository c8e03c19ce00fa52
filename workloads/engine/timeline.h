/* What is allocated during a training step over time, for a chart.
 *
 * A moment is recorded at each allocation and release. There are at most PLIM_TIMELINE_MOMENTS of them: when there is
 * no more room, adjacent moments are merged into the one with more bytes. So the timeline is an upper envelope of the
 * allocated bytes, and its largest moment is the peak. */
#ifndef PLIM_ENGINE_TIMELINE_H
#define PLIM_ENGINE_TIMELINE_H

#include "memory_class.h"
#include <stddef.h>
#include <stdint.h>

enum { PLIM_TIMELINE_MOMENTS = 256 };

struct plim_moment {
    double seconds;    /* since the start of the step, by the device's clock */
    const char *phase; /* "forward", "backward", "optimizer" */
    int64_t allocated_bytes, reserved_bytes;
    int64_t class_bytes[PLIM_MEMORY_CLASS_COUNT]; /* their sum is allocated_bytes */
};

struct plim_timeline {
    size_t count;
    struct plim_moment moments[PLIM_TIMELINE_MOMENTS];
    /* while recording: */
    const char *phase;
    double start;        /* of the step, on the device's clock */
    int64_t stride;      /* number of notes that are merged into one moment */
    int64_t noted;       /* notes in the last moment so far */
};

void plim_timeline_begin(struct plim_timeline *timeline, double start_seconds);

/* Adds a moment; its phase is the timeline's. */
void plim_timeline_add(struct plim_timeline *timeline, const struct plim_moment *moment);

#endif
