/* Reads the engine's replays (workloads/train/replay.h) for an answer. */
#ifndef PLIM_AUTOTUNE_ANSWER_REPLAYS_H
#define PLIM_AUTOTUNE_ANSWER_REPLAYS_H

#include "answer.h"
#include "workloads/train/replay.h"

extern const struct plim_details_reader plim_details_replay;

/* Of what was played from a recording: no model, and no classes of memory, are known. */
extern const struct plim_details_reader plim_details_recording;

/* Appends what was recorded of an optimizer step, of which so many micro-steps were run, to the
 * result, whose limit is known. PLIM_NOMEM is the only failure. */
enum plim_status plim_replays_timeline(const struct plim_timeline *timeline, int64_t micro_steps,
                                       struct plim_result *result) PLIM_MUST_CHECK;

#endif
