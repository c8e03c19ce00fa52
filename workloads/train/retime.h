/* Sets the seconds of a replay from readings of a clock. */
#ifndef PLIM_TRAIN_RETIME_H
#define PLIM_TRAIN_RETIME_H

#include "devices/sim/score.h"
#include "replayed.h"

/* Notes how busy host and device were in the step between two readings. */
void plim_replay_note_load(struct plim_replay *replay, const struct plim_device_load *before,
                           const struct plim_device_load *after);

/* Makes the seconds of a replay those of another GPU of its class: `readings`, `count` of them, are the
 * results of its score there (sim/score.h). False: they are not two per step, and nothing is changed. */
bool plim_replay_retime(struct plim_replay *replay, const struct plim_score_reading *readings,
                        size_t count);

#endif
