/* Asking about settings on one card, each question at most once.
 *
 * A prober keeps a sample of everything that was asked (the report lists them all, failures
 * included) and replays only what neither it nor the class's memo can answer.
 */
#ifndef PLIM_AUTOTUNE_PROBE_H
#define PLIM_AUTOTUNE_PROBE_H

#include "memo.h"
#include "runner.h"
#include "stop.h"

/* One setting under the budget. `verdict` decides; `replay` says how: PLIM_OK: what happened
 * under the budget. PLIM_OOM: where it ran out (oom_asked_bytes > 0), or, when it was clear
 * without trying, what it would need. */
struct plim_sample {
    struct plim_setting setting;
    enum plim_status verdict; /* of the replay */
    bool timed;               /* replay.step[].seconds are those of this card */
    bool tried;               /* was run under the budget, or needs less than it */
    struct plim_timing timing; /* of the last step's seconds, where they were measured */
    struct plim_replay replay;
};

/* What has to be known besides the verdict. */
enum plim_probe_want {
    PLIM_WANT_VERDICT,
    PLIM_WANT_SECONDS, /* if it fits: the time of a step on this very card */
    PLIM_WANT_REASON,  /* if it does not fit: where it ran out */
};

struct plim_prober {
    const struct plim_runner *runner;
    struct plim_memo *memo;       /* of the card's class; never NULL */
    const struct plim_stop *stop; /* NULL: never stops */
    void (*on_run)(void *user);   /* before every replay; may be NULL */
    void *on_run_user;
    PLIM_ARRAY(struct plim_sample) samples;
    size_t runs;
};

void plim_prober_finish(struct plim_prober *prober); /* NULL and zeroed are fine */

/* The answer in `out`, which is valid until the next question. Fails when the search has to stop
 * (stop.h) or the runner does. */
enum plim_status plim_probe(struct plim_prober *prober, const struct plim_setting *setting,
                            enum plim_probe_want want, const struct plim_sample **out,
                            struct plim_error *err) PLIM_MUST_CHECK;

/* What the setting needs when nothing limits it. `out` is valid until the next question. A
 * setting whose run does not come to its end gives NULL, and its sample has the reason. */
enum plim_status plim_probe_need(struct plim_prober *prober, const struct plim_setting *setting,
                                 const struct plim_memo_entry **out,
                                 struct plim_error *err) PLIM_MUST_CHECK;

/* The sample of a setting, or NULL when it was never asked for. Valid until the next question. */
const struct plim_sample *plim_probe_known(const struct plim_prober *prober,
                                           const struct plim_setting *setting);

#endif
