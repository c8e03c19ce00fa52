/* Runs that GPUs of one class share, time included.
 *
 * On GPUs of a class (search/cache.h) a training step asks for the same memory and launches the same
 * work. So a replay that never came near a limit is a replay on each of them that has as much memory
 * as it reserved, but for its seconds: those come of its score, played on the other's clock
 * (devices/sim/score.h).
 *
 * Zeroed is empty and ready. Thread safety: one thread at a time.
 */
#ifndef PLIM_AUTOTUNE_RUN_SHARE_H
#define PLIM_AUTOTUNE_RUN_SHARE_H

#include "autotune/base/arena.h"
#include "autotune/search/setting.h"
#include "devices/sim/score.h"
#include "workloads/train/replay.h"

struct plim_run_share {
    PLIM_ARRAY(struct plim_shared_run {
        struct plim_setting setting;
        struct plim_replay replay;
        struct plim_score score;
    }) runs;
    struct plim_score_recorder recorder; /* of the run that goes on */
    struct plim_arena scores;
};

void plim_run_share_finish(struct plim_run_share *share); /* NULL and zeroed are fine */

/* Keeps a run that the recorder wrote down, if it can be one of others. PLIM_NOMEM is the only
 * failure. */
enum plim_status plim_run_share_keep(struct plim_run_share *share,
                                     const struct plim_setting *setting,
                                     const struct plim_replay *replay) PLIM_MUST_CHECK;

/* The run of a setting on a device with so much memory; false: there is none that would be the
 * same. */
bool plim_run_share_take(const struct plim_run_share *share, const struct plim_setting *setting,
                         struct plim_device *device, int64_t budget_bytes,
                         struct plim_replay *out);

#endif
