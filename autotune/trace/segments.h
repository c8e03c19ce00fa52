/* The segments that PyTorch's allocator takes and gives back when it is played a recording. */
#ifndef PLIM_AUTOTUNE_TRACE_SEGMENTS_H
#define PLIM_AUTOTUNE_TRACE_SEGMENTS_H

#include "workloads/recording/play.h"

/* What is asked of the GPU and given back, one after the other: bytes, negative where given back. */
struct plim_segments {
    PLIM_ARRAY(int64_t) bytes;
    PLIM_ARRAY(size_t) before_step; /* how many there were before each steady step that is played */
    size_t most_steps;              /* the caller's: playing ends with PLIM_CANCELLED before more; 0: it does not */
    bool failed;                    /* no memory: something is missing */
};

void plim_segments_add(struct plim_segments *segments, int64_t bytes);
void plim_segments_finish(struct plim_segments *segments);

/* Plays a stream on a device of its own. `config` NULL: the allocator's defaults. `steps`: so many at least, though
 * they repeat. `out` NULL: the segments are not noted. */
enum plim_status plim_segments_play(const struct plim_recorded_stream *stream,
                                    struct plim_recorded_point point, size_t steps,
                                    const char *device, const struct plim_allocator_config *config,
                                    struct plim_segments *out, struct plim_replay *replay,
                                    struct plim_error *err) PLIM_MUST_CHECK;

#endif
