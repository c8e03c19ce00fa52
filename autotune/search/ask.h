/* Asking about settings on one GPU, each question at most once.
 *
 * An asker keeps a sample of everything that was asked (the report lists them all, failures
 * included) and runs only what neither it nor the class's cache can answer.
 */
#ifndef PLIM_AUTOTUNE_SEARCH_ASK_H
#define PLIM_AUTOTUNE_SEARCH_ASK_H

#include "autotune/base/stop.h"
#include "cache.h"
#include "runner.h"

/* One setting under the budget. `verdict` decides; `trial` says how: PLIM_OK: what happened under
 * the budget. PLIM_OOM: where it ran out (`tried`), or, when it was clear without trying, what it
 * would need. */
struct plim_sample {
    struct plim_setting setting;
    enum plim_status verdict; /* under the budget */
    bool timed;               /* trial.seconds are those of this GPU */
    bool tried;               /* was run under the budget, or needs less than it */
    bool proved;              /* PLIM_OK is for ever, as far as can be known: plim_ask_proof() */
    struct plim_trial trial;
};

/* What has to be known besides the verdict. */
enum plim_want {
    PLIM_WANT_VERDICT,
    PLIM_WANT_SECONDS, /* if it fits: the time of a step on this very GPU */
    PLIM_WANT_REASON,  /* if it does not fit: where it ran out */
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

/* The same, and if it fits, whether it does for ever: its steps were replayed until they repeat.
 * One that does not come to repeat fits only if it never needed cached memory back; else its
 * verdict is PLIM_OOM from now on, as it is where a later step runs out of memory. Of a real GPU
 * the twin's steps are replayed; they decide only where the GPU itself needed cached memory
 * back. A runner that proves nothing leaves the verdict as it is. */
enum plim_status plim_ask_proof(struct plim_asker *asker, const struct plim_setting *setting,
                                const struct plim_sample **out,
                                struct plim_error *err) PLIM_MUST_CHECK;

/* What the setting needs when nothing limits it. `out` is valid until the next question. A
 * setting whose run does not come to its end gives NULL, and its sample has the reason. */
enum plim_status plim_ask_need(struct plim_asker *asker, const struct plim_setting *setting,
                               const struct plim_cache_entry **out,
                               struct plim_error *err) PLIM_MUST_CHECK;

/* The sample of a setting, or NULL when it was never asked for. Valid until the next question. */
const struct plim_sample *plim_ask_known(const struct plim_asker *asker,
                                         const struct plim_setting *setting);

/* Tells the runner what may be asked for next (runner.h, expect); what is known is left out. */
void plim_ask_expect(const struct plim_asker *asker, const struct plim_setting *settings,
                     size_t count);

/* The same of what plim_ask_need() will be asked (runner.h, expect_needs). */
void plim_ask_expect_needs(const struct plim_asker *asker, const struct plim_setting *settings,
                           size_t count);

#endif
