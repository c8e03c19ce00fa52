/* The interface through which the search runs a setting.
 *
 * It is implemented by the engine on a simulated or a real GPU (run/run_device.h), by a user's program
 * (exec/executor.h), or in tests by a formula. The search does not know which.
 */
#ifndef PLIM_AUTOTUNE_SEARCH_RUNNER_H
#define PLIM_AUTOTUNE_SEARCH_RUNNER_H

#include "setting.h"
#include "trial.h"

enum plim_run_mode {
    PLIM_RUN_LIMITED,   /* under the budget: does it fit, and how long does a step take? */
    PLIM_RUN_UNLIMITED, /* with unlimited memory: what would it need? */
    PLIM_RUN_PROOF,     /* under the budget, simulated until it repeats: does it fit for any number of steps? */
};

/* The micro-steps of a step that are run while searching, where every micro-step costs time. */
enum { PLIM_PROBED_MICRO_STEPS = 4 };

/* Settings that may be asked for. */
typedef void plim_runner_expect(void *user, const struct plim_setting *settings, size_t count);

struct plim_runner {
    /* A setting that does not fit, or cannot run, is a verdict in `out`, and PLIM_OK is returned. The same
     * setting gives the same answer every time. Any other status ends the search. */
    enum plim_status (*run)(void *user, const struct plim_setting *setting, enum plim_run_mode mode,
                            struct plim_trial *out, struct plim_error *err);
    /* Called before a LIMITED run with the settings that the search may ask for next, the likeliest first, so that
     * they can be started in parallel; NULL: not used by this runner. */
    plim_runner_expect *expect;
    /* Called with the UNLIMITED runs that will be asked for, in their order, so that some can be made in
     * parallel; NULL: not used by this runner. */
    plim_runner_expect *expect_needs;
    void *user;
    /* Size of what `details` of a trial points to: plain data, valid until the next run. The search
     * keeps copies. */
    size_t details_bytes;
    int64_t budget_bytes; /* of the LIMITED runs */
    bool proves;          /* answers PROOF runs: for a real GPU, its twin does */
    /* While searching, at most this many micro-steps are run; each further one is assumed to
     * take as long as the last and to need no more memory. Reported settings are run with all. 0:
     * all are run. */
    int64_t probed_micro_steps;
    /* The allocator acts on the limit before it is hit (a memory fraction is set): then only a
     * run under the budget shows what happens (cache.h). */
    bool limit_acts_early;
    /* LIMITED runs are those of a real GPU, or of a program; UNLIMITED ones are predictions. A prediction of at least
     * beyond_doubt times the budget is believed without a run. Implies
     * limit_acts_early. */
    bool measured;
    double beyond_doubt;
    /* A run takes so long that the edge is first looked for where the lines predict it. Then the path
     * of the search depends on the budget (edge.h). */
    bool costly;
};

/* The accumulation with which a setting is run while searching. */
static inline int64_t plim_runner_probed(const struct plim_runner *runner, int64_t accumulation)
{
    int64_t most = runner->probed_micro_steps;
    return most && accumulation > most ? most : accumulation;
}

#endif
