/* What the search asks of the world: run one setting.
 *
 * The command line hands in the engine on a device (card.h); tests hand in a model of memory
 * and time of their own. Nothing in the search knows which.
 */
#ifndef PLIM_AUTOTUNE_RUNNER_H
#define PLIM_AUTOTUNE_RUNNER_H

#include "measure.h"
#include "workloads/train/replay.h"

enum plim_run_mode {
    PLIM_RUN_LIMITED,   /* under the budget: does it fit, and how long does a step take? */
    PLIM_RUN_UNLIMITED, /* with memory without end: what would it need? */
};

struct plim_runner {
    /* As plim_replay_run(): that it does not fit is a verdict in `out`. The same setting gives
     * the same answer every time. */
    enum plim_status (*run)(void *user, const struct plim_setting *setting, enum plim_run_mode mode,
                            struct plim_replay *out, struct plim_error *err);
    void *user;
    int64_t budget_bytes; /* of the LIMITED runs */
    /* The allocator heeds the limit before it is hit (a memory fraction is set): then only a
     * run under the budget shows what happens there (memo.h). */
    bool limit_acts_early;
    /* LIMITED runs are those of a real card, UNLIMITED ones are predictions: what follows from a
     * prediction without doubt is believed, all else is run. Implies limit_acts_early. */
    bool measured;
    /* A run takes so long that the edge is looked for first where the lines put it. Then the path
     * of the search depends on the budget (search.h). */
    bool costly;
    /* How well the time of the last run is known; NULL: exactly, as on a simulated card. */
    const struct plim_timing *(*timing)(void *user);
};

#endif
