/* Reads the details of the engine's replays (workloads/train/replay.h). */
#ifndef PLIM_AUTOTUNE_ANSWER_REPLAYS_H
#define PLIM_AUTOTUNE_ANSWER_REPLAYS_H

#include "answer.h"
#include "workloads/train/replay.h"

extern const struct plim_details_reader plim_details_replay;

/* For plays of a recording, for which the model is not known. */
extern const struct plim_details_reader plim_details_recording;

/* Adds the recorded timeline of an optimizer step, of which `micro_steps` micro-steps were run, to the result, whose
 * limit must be set. PLIM_NOMEM is the only error. */
enum plim_status plim_replays_timeline(const struct plim_timeline *timeline, int64_t micro_steps,
                                       struct plim_result *result) PLIM_MUST_CHECK;

#endif
