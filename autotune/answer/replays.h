/* Reads the engine's replays (workloads/train/replay.h) for an answer. */
#ifndef PLIM_AUTOTUNE_ANSWER_REPLAYS_H
#define PLIM_AUTOTUNE_ANSWER_REPLAYS_H

#include "answer.h"

extern const struct plim_details_reader plim_details_replay;

#endif
