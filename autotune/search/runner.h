/* What the search asks of the world: run one setting.
 *
 * Behind it stands the engine on a simulated or a real GPU (run/device.h), a program of the user's
 * (exec/runner.h), or in tests a formula. Nothing in the search knows which.
 */
#ifndef PLIM_AUTOTUNE_SEARCH_RUNNER_H
#define PLIM_AUTOTUNE_SEARCH_RUNNER_H

#include "setting.h"
#include "trial.h"

enum plim_run_mode {
    PLIM_RUN_LIMITED,   /* under the budget: does it fit, and how long does a step take? */
    PLIM_RUN_UNLIMITED, /* with memory without end: what would it need? */
    PLIM_RUN_PROOF,     /* under the budget, simulated until it repeats: does it fit for ever? */
};

/* Micro-steps of a step that are run while searching where each takes its time. */
enum { PLIM_PROBED_MICRO_STEPS = 4 };

/* Settings that may be asked for. */
typedef void plim_runner_expect(void *user, const struct plim_setting *settings, size_t count);

struct plim_runner {
    /* That a setting does not fit, or cannot run, is a verdict in `out` and PLIM_OK. The same
     * setting gives the same answer every time. Anything else ends the search. */
    enum plim_status (*run)(void *user, const struct plim_setting *setting, enum plim_run_mode mode,
                            struct plim_trial *out, struct plim_error *err);
    /* Told before a LIMITED run what the search may ask for after it, the likelier first, so that
     * it can be started beside it; NULL: the runner makes no use of that. */
    plim_runner_expect *expect;
    /* Told which UNLIMITED runs will be asked for, in their order, so that some can be made beside each
     * other; NULL: the runner makes no use of that. */
    plim_runner_expect *expect_needs;
    void *user;
    /* Size of what `details` of a trial points to: plain data, valid until the next run. The search
     * keeps copies. */
    size_t details_bytes;
    int64_t budget_bytes; /* of the LIMITED runs */
    bool proves;          /* answers PROOF runs: of a real GPU, its twin does */
    /* While searching no more micro-steps than these are run, and each further one is taken to
     * last as long as the last and to need no more memory; what is reported is run with all. 0:
     * all are. */
    int64_t probed_micro_steps;
    /* The allocator heeds the limit before it is hit (a memory fraction is set): then only a
     * run under the budget shows what happens there (cache.h). */
    bool limit_acts_early;
    /* LIMITED runs are those of a real GPU, or of a program; UNLIMITED ones are predictions. Of so many
     * times the budget a prediction is beyond doubt and believed, all else is run. Implies
     * limit_acts_early. */
    bool measured;
    double beyond_doubt;
    /* A run takes so long that the edge is looked for first where the lines put it. Then the path
     * of the search depends on the budget (edge.h). */
    bool costly;
};

/* The accumulation of a setting as it is searched. */
static inline int64_t plim_runner_probed(const struct plim_runner *runner, int64_t accumulation)
{
    int64_t most = runner->probed_micro_steps;
    return most && accumulation > most ? most : accumulation;
}

#endif
