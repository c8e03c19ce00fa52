/* Tries settings on one GPU, each at most once.
 *
 * A prober keeps a sample of every setting that was probed (the report lists them all, including failures), and runs
 * only settings that neither its samples nor the cache of the GPU's class can answer. */
#ifndef PLIM_AUTOTUNE_SEARCH_PROBE_H
#define PLIM_AUTOTUNE_SEARCH_PROBE_H

#include "autotune/base/stop.h"
#include "cache.h"
#include "runner.h"

/* The result of a setting under the budget. If `verdict` is PLIM_OK, `trial` is the run under the budget. If it is
 * PLIM_OOM, `trial` is the run that ran out of memory (`tried`), or, if the result was clear without it, the run
 * without limit. */
struct plim_sample {
    struct plim_setting setting;
    enum plim_status verdict; /* under the budget */
    bool timed;               /* trial.seconds is the time on this GPU */
    bool tried;               /* it was run under the budget, or needs less than the budget */
    bool proved;              /* the verdict holds for any number of steps: plim_probe_proof() */
    struct plim_trial trial;
};

/* What the caller needs. */
enum plim_want {
    PLIM_WANT_VERDICT,
    PLIM_WANT_SECONDS, /* also, if it fits, the time of a step on this GPU */
    PLIM_WANT_REASON,  /* also, if it does not fit, where it ran out of memory */
};

struct plim_prober {
    const struct plim_runner *runner;
    struct plim_cache *cache;     /* of the GPU's class; not NULL; must outlive the prober */
    const struct plim_stop *stop; /* NULL: never stops */
    void (*on_run)(void *user);   /* called before every run; may be NULL */
    void *on_run_user;
    PLIM_ARRAY(struct plim_sample) samples;
    size_t runs; /* number of runs so far */
};

void plim_prober_finish(struct plim_prober *prober); /* NULL or a zeroed prober is allowed */

/* Gets the sample of a setting, running it if necessary. *out is valid until the next call. Fails if the search has to
 * stop (stop.h) or the runner fails. */
enum plim_status plim_probe(struct plim_prober *prober, const struct plim_setting *setting,
                            enum plim_want want, const struct plim_sample **out,
                            struct plim_error *err) PLIM_MUST_CHECK;

/* Same, and if the setting fits, proves that it does for any number of steps, by replaying steps until they repeat. If
 * they never repeat, the setting fits only if it never had to release cached memory; otherwise its verdict becomes
 * PLIM_OOM, as it does if a later step runs out of memory. For a real GPU the simulated twin's steps are replayed; they
 * decide only if the GPU itself had to release cached memory. A runner without proofs leaves the verdict unchanged. */
enum plim_status plim_probe_proof(struct plim_prober *prober, const struct plim_setting *setting,
                                  const struct plim_sample **out,
                                  struct plim_error *err) PLIM_MUST_CHECK;

/* Finds out how much memory the setting needs without a limit. *out is valid until the next call. If the run does not
 * finish, *out is NULL, and the setting's sample has the reason. */
enum plim_status plim_probe_need(struct plim_prober *prober, const struct plim_setting *setting,
                                 const struct plim_cache_entry **out,
                                 struct plim_error *err) PLIM_MUST_CHECK;

/* Returns the sample of a setting, NULL if there is none yet. Runs nothing. Valid until the next call of
 * plim_probe*(). */
const struct plim_sample *plim_probe_known(const struct plim_prober *prober,
                                           const struct plim_setting *setting);

/* Announces settings that may be asked for next to the runner (runner.h, expect), except those that have a sample. */
void plim_probe_expect(const struct plim_prober *prober, const struct plim_setting *settings,
                       size_t count);

/* Same for plim_probe_need() (runner.h, expect_needs). */
void plim_probe_expect_needs(const struct plim_prober *prober, const struct plim_setting *settings,
                             size_t count);

#endif
