/* Asks about settings on one GPU, running each at most once.
 *
 * An asker keeps a sample of everything that was asked (the report lists them all, failures
 * included) and runs only what neither it nor the class's cache can answer.
 */
#ifndef PLIM_AUTOTUNE_SEARCH_ASK_H
#define PLIM_AUTOTUNE_SEARCH_ASK_H

#include "autotune/base/stop.h"
#include "cache.h"
#include "runner.h"

/* One setting under the budget. `verdict` is the result; `trial` has the details. PLIM_OK: the run under
 * the budget. PLIM_OOM: the run that ran out of memory (`tried`), or, if that was clear without a run, what
 * the setting would need. */
struct plim_sample {
    struct plim_setting setting;
    enum plim_status verdict; /* under the budget */
    bool timed;               /* trial.seconds are those of this GPU */
    bool tried;               /* was run under the budget, or needs less than the budget */
    bool proved;              /* PLIM_OK was proven for any number of steps: plim_ask_proof() */
    struct plim_trial trial;
};

/* What is wanted besides the verdict. */
enum plim_want {
    PLIM_WANT_VERDICT,
    PLIM_WANT_SECONDS, /* if it fits: the time of a step on this GPU itself */
    PLIM_WANT_REASON,  /* if it does not fit: where it ran out of memory */
};

struct plim_asker {
    const struct plim_runner *runner;
    struct plim_cache *cache;     /* of the GPU's class; never NULL; outlives the asker */
    const struct plim_stop *stop; /* NULL: never stops */
    void (*on_run)(void *user);   /* before every run; may be NULL */
    void *on_run_user;
    PLIM_ARRAY(struct plim_sample) samples;
    size_t runs;
};

void plim_asker_finish(struct plim_asker *asker); /* NULL and zeroed are fine */

/* The answer in `out`, which is valid until the next question. Fails when the search has to stop
 * (stop.h) or the runner does. */
enum plim_status plim_ask(struct plim_asker *asker, const struct plim_setting *setting,
                          enum plim_want want, const struct plim_sample **out,
                          struct plim_error *err) PLIM_MUST_CHECK;

/* The same, and if the setting fits, proves it for any number of steps: its steps are replayed until they repeat.
 * A setting that never repeats fits only if it never had to release cached memory; else its
 * verdict becomes PLIM_OOM, as it does if a later step runs out of memory. For a real GPU
 * the twin's steps are replayed; they decide only if the GPU itself had to release cached
 * memory. A runner without proofs leaves the verdict unchanged. */
enum plim_status plim_ask_proof(struct plim_asker *asker, const struct plim_setting *setting,
                                const struct plim_sample **out,
                                struct plim_error *err) PLIM_MUST_CHECK;

/* What the setting needs without a limit. `out` is valid until the next question. If the run does not
 * finish, it is NULL, and the setting's sample has the reason. */
enum plim_status plim_ask_need(struct plim_asker *asker, const struct plim_setting *setting,
                               const struct plim_cache_entry **out,
                               struct plim_error *err) PLIM_MUST_CHECK;

/* The sample of a setting, or NULL when it was never asked for. Valid until the next question. */
const struct plim_sample *plim_ask_known(const struct plim_asker *asker,
                                         const struct plim_setting *setting);

/* Tells the runner what may be asked for next (runner.h, expect), without what is known already. */
void plim_ask_expect(const struct plim_asker *asker, const struct plim_setting *settings,
                     size_t count);

/* The same for plim_ask_need() (runner.h, expect_needs). */
void plim_ask_expect_needs(const struct plim_asker *asker, const struct plim_setting *settings,
                           size_t count);

#endif
