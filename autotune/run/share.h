/* Runs that GPUs of one class share, time included.
 *
 * On GPUs of one class (search/cache.h) a training step requests the same memory and launches the same
 * work. So a replay that never came near a limit is also the replay on every other GPU with as much memory
 * as it reserved, except for its seconds: these come from its score, played on the other GPU's clock
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
    struct plim_score_recorder recorder; /* of the current run */
    struct plim_arena scores;
};

void plim_run_share_finish(struct plim_run_share *share); /* NULL and zeroed are fine */

/* Keeps a run that was recorded, if other GPUs can use it. PLIM_NOMEM is the only
 * failure. */
enum plim_status plim_run_share_keep(struct plim_run_share *share,
                                     const struct plim_setting *setting,
                                     const struct plim_replay *replay) PLIM_MUST_CHECK;

/* The run of a setting on a device with this budget; false: no kept run would be the
 * same. */
bool plim_run_share_take(const struct plim_run_share *share, const struct plim_setting *setting,
                         struct plim_device *device, int64_t budget_bytes,
                         struct plim_replay *out);

#endif
