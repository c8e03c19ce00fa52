/* Runs that GPUs of one class share.
 *
 * On GPUs of one class (search/cache.h) a training step makes the same allocations and launches the same work. So a
 * replay without retries has the same result on every other GPU with at least as much memory as it reserved, except for
 * its times. These are computed by playing its score on the other GPU's clock (devices/sim/score.h).
 *
 * A zeroed struct is empty and ready. Thread safety: one thread at a time. */
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

void plim_run_share_finish(struct plim_run_share *share); /* NULL or a zeroed one is allowed */

/* Keeps a copy of a run and of its recorded score, if other GPUs can use it. PLIM_NOMEM is the only error. */
enum plim_status plim_run_share_store(struct plim_run_share *share,
                                      const struct plim_setting *setting,
                                      const struct plim_replay *replay) PLIM_MUST_CHECK;

/* Stores the kept run of a setting that is valid on a device with this budget, with the device's times. Returns false
 * if there is none. */
bool plim_run_share_find(const struct plim_run_share *share, const struct plim_setting *setting,
                         struct plim_device *device, int64_t budget_bytes,
                         struct plim_replay *out);

#endif
