/* The segments that PyTorch's allocator requests and returns when a recording is played to it. */
#ifndef PLIM_AUTOTUNE_TRACE_SEGMENTS_H
#define PLIM_AUTOTUNE_TRACE_SEGMENTS_H

#include "workloads/recording/play.h"

/* The requests to the GPU and the returns, in order: bytes, negative if returned. */
struct plim_segments {
    PLIM_ARRAY(int64_t) bytes;
    PLIM_ARRAY(size_t) before_step; /* how many there were before each steady step */
    size_t most_steps;              /* set by the caller: playing ends with PLIM_CANCELLED after these; 0: no limit */
    bool failed;                    /* no memory: the list is incomplete */
};

void plim_segments_add(struct plim_segments *segments, int64_t bytes);
void plim_segments_finish(struct plim_segments *segments);

/* Plays a stream on a device of its own. `config` NULL: the allocator's defaults. `steps`: the least number of steps,
 * even if they repeat. `out` NULL: the segments are not recorded. */
enum plim_status plim_segments_play(const struct plim_recorded_stream *stream,
                                    struct plim_recorded_point point, size_t steps,
                                    const char *device, const struct plim_allocator_config *config,
                                    struct plim_segments *out, struct plim_replay *replay,
                                    struct plim_error *err) PLIM_MUST_CHECK;

#endif
