/* Sets the seconds of a replay from clock readings. */
#ifndef PLIM_TRAIN_RETIME_H
#define PLIM_TRAIN_RETIME_H

#include "devices/sim/score.h"
#include "replayed.h"

/* Stores how busy the host and the device were in the step between two readings. */
void plim_replay_record_load(struct plim_replay *replay, const struct plim_device_load *before,
                             const struct plim_device_load *after);

/* Replaces the seconds of a replay by those of another GPU of its class: `readings` has the results of its score there
 * (sim/score.h), `count` of them. Returns false, and changes nothing, if there are not two per step. */
bool plim_replay_retime(struct plim_replay *replay, const struct plim_score_reading *readings,
                        size_t count);

#endif
