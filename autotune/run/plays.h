/* Plays of a recording that GPUs share.
 *
 * The allocations of a recording depend on the GPU only through their sizes (the scratch memory of a few reductions
 * depends on the number of multiprocessors). So a play without retries has the same result, except for its times
 * (plim_player_retime()), on every GPU with the same sizes and at least as much memory as was reserved.
 *
 * Must be initialised. Thread safety: any number of threads. */
#ifndef PLIM_AUTOTUNE_RUN_PLAYS_H
#define PLIM_AUTOTUNE_RUN_PLAYS_H

#include "autotune/base/array.h"
#include "autotune/search/setting.h"
#include "workloads/train/replay.h"
#include <pthread.h>

struct plim_run_plays {
    pthread_mutex_t lock;
    PLIM_ARRAY(struct plim_run_play {
        struct plim_setting setting;
        uint64_t sizes; /* plim_player_sizes() */
        struct plim_replay replay;
    }) list;
};

void plim_run_plays_init(struct plim_run_plays *plays);
void plim_run_plays_finish(struct plim_run_plays *plays);

/* Keeps a copy of a play, if other GPUs can use it. PLIM_NOMEM is the only error. */
enum plim_status plim_run_plays_store(struct plim_run_plays *plays, const struct plim_setting *setting,
                                      uint64_t sizes, const struct plim_replay *replay) PLIM_MUST_CHECK;

/* Stores the kept play of a setting that is valid on a GPU with this budget, except for its times. Returns false if
 * there is none. */
bool plim_run_plays_find(struct plim_run_plays *plays, const struct plim_setting *setting, uint64_t sizes,
                         int64_t budget_bytes, struct plim_replay *out);

#endif
