/* Records the segments that PyTorch's allocator requests and returns when a recording is played to it. */
#ifndef PLIM_AUTOTUNE_TRACE_SEGMENTS_H
#define PLIM_AUTOTUNE_TRACE_SEGMENTS_H

#include "workloads/recording/play.h"

/* The requested and returned segments in order, in bytes, negative if returned. */
struct plim_segments {
    PLIM_ARRAY(int64_t) bytes;
    PLIM_ARRAY(size_t) before_step; /* number of them before each steady step */
    size_t most_steps;              /* set by the caller: limit after which playing is cancelled; 0: none */
    bool failed;                    /* host memory ran out: the list is incomplete */
};

void plim_segments_add(struct plim_segments *segments, int64_t bytes);
void plim_segments_finish(struct plim_segments *segments);

/* Plays a stream on a new device, whose URI is `device`. `config`: the allocator's options, NULL for the defaults.
 * `steps`: play at least so many steps, even if they repeat earlier. `out`: NULL if the segments are not wanted. */
enum plim_status plim_segments_play(const struct plim_recorded_stream *stream,
                                    struct plim_recorded_point point, size_t steps,
                                    const char *device, const struct plim_allocator_config *config,
                                    struct plim_segments *out, struct plim_replay *replay,
                                    struct plim_error *err) PLIM_MUST_CHECK;

#endif
