/* One setting on one card: does it fit, what does it need, and what would make it fit? */
#ifndef PLIM_AUTOTUNE_EXPLAIN_H
#define PLIM_AUTOTUNE_EXPLAIN_H

#include "advice.h"

struct plim_explanation {
    struct plim_setting setting;
    bool fits;
    struct plim_sample under_budget; /* how it went under the budget */
    struct plim_replay replay;       /* complete figures: without limit where it does not fit */
    struct plim_advices advices;     /* where it does not fit */
};

/* Fills the zeroed `explanation`. PLIM_SPEC, with the reason, for a setting that cannot run at
 * all. */
enum plim_status plim_explain(struct plim_prober *prober, const struct plim_spec *spec,
                              const struct plim_setting *setting,
                              struct plim_explanation *explanation,
                              struct plim_error *err) PLIM_MUST_CHECK;
void plim_explanation_finish(struct plim_explanation *explanation); /* NULL and zeroed are fine */

#endif
