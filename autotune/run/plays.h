/* Plays of a recording that GPUs share.
 *
 * What a recording allocates depends on the GPU through its sizes alone (a few are of reductions, which need scratch by
 * the multiprocessors). So a play that never came near a limit is the play of each GPU where the sizes are the same
 * and that has as much memory as was reserved, but for its seconds (plim_player_retime()).
 *
 * Zeroed is not ready. Thread safety: any number of threads.
 */
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

/* Keeps a play, if it can be one of others. PLIM_NOMEM is the only failure. */
enum plim_status plim_run_plays_keep(struct plim_run_plays *plays, const struct plim_setting *setting,
                                     uint64_t sizes, const struct plim_replay *replay) PLIM_MUST_CHECK;

/* The play of a setting with so much memory, but for its seconds; false: none that is kept would be the same. */
bool plim_run_plays_find(struct plim_run_plays *plays, const struct plim_setting *setting, uint64_t sizes,
                         int64_t budget_bytes, struct plim_replay *out);

#endif
