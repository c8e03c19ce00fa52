/* The interface through which the search runs settings.
 *
 * It is implemented by the engine on a simulated or a real GPU (run/run_device.h), by a user's program
 * (exec/executor.h), and in tests by a formula. The search does not know which. */
#ifndef PLIM_AUTOTUNE_SEARCH_RUNNER_H
#define PLIM_AUTOTUNE_SEARCH_RUNNER_H

#include "setting.h"
#include "trial.h"

enum plim_run_mode {
    PLIM_RUN_LIMITED,   /* under the budget: shows whether it fits, and the time of a step */
    PLIM_RUN_UNLIMITED, /* without a limit: shows how much memory it needs */
    PLIM_RUN_PROOF,     /* under the budget, simulated until steps repeat: shows whether any number of steps fits */
};

/* Micro-steps per step that are run while searching, for runners to which every micro-step costs time. */
enum { PLIM_PROBED_MICRO_STEPS = 4 };

/* Announces settings that may be run. */
typedef void plim_runner_expect(void *user, const struct plim_setting *settings, size_t count);

struct plim_runner {
    /* Runs a setting. Returns PLIM_OK even if the setting does not fit or cannot run, which is the verdict in `out`.
     * The same setting gives the same result every time. Any other status ends the search. */
    enum plim_status (*run)(void *user, const struct plim_setting *setting, enum plim_run_mode mode,
                            struct plim_trial *out, struct plim_error *err);
    /* Called before a LIMITED run with the settings that the search may run next, the most likely first, so that they
     * can be started in parallel; NULL: not used by this runner. */
    plim_runner_expect *expect;
    /* Called with the settings of the UNLIMITED runs that will follow, in their order, so that some can be made in
     * parallel; NULL: not used by this runner. */
    plim_runner_expect *expect_needs;
    void *user;
    /* Size of the `details` of a trial, plain data that is valid until the next run. The search keeps copies. */
    size_t details_bytes;
    int64_t budget_bytes; /* of the LIMITED runs */
    bool proves;          /* PROOF runs are supported; for a real GPU its simulated twin makes them */
    /* While searching, at most this many micro-steps per step are run; each further one is assumed to take as long as
     * the last and to need no more memory. Reported settings are run with all. 0: no limit. */
    int64_t probed_micro_steps;
    /* The allocator acts on the limit before it is hit (a memory fraction is set), so only a run under the budget shows
     * what happens (cache.h). */
    bool limit_acts_early;
    /* LIMITED runs are made by a real GPU or a program; UNLIMITED ones are predictions of a plan. A prediction of at
     * least beyond_doubt times the budget counts as PLIM_OOM without a run. Implies limit_acts_early. */
    bool measured;
    double beyond_doubt;
    /* A run takes so long that the edge is first searched where the lines predict it. The path of the search then
     * depends on the budget (edge.h). */
    bool costly;
};

/* Returns the accumulation with which a setting is run while searching. */
static inline int64_t plim_runner_probed(const struct plim_runner *runner, int64_t accumulation)
{
    int64_t most = runner->probed_micro_steps;
    return most && accumulation > most ? most : accumulation;
}

#endif
