/* What would make a setting fit: each change tried, with what it would need. */
#ifndef PLIM_AUTOTUNE_SEARCH_ADVICE_H
#define PLIM_AUTOTUNE_SEARCH_ADVICE_H

#include "ask.h"

struct plim_question;

struct plim_advice {
    char change[128]; /* "checkpointing full", "micro-batch 4, accumulation 4" */
    struct plim_setting setting;
    bool fits;
    struct plim_trial trial; /* under the budget if it fits, else what it would need */
};

struct plim_advices {
    PLIM_ARRAY(struct plim_advice)
    list; /* what fits first; else in the order of how little it changes */
};

/* Appends advice for `setting`, which does not fit: changes of the question (question.h), a smaller
 * micro-batch, a shorter sequence, sharding over more GPUs. Single changes come first; only when none of them is
 * enough are they combined, until the sum fits. The effective batch stays as it is, where
 * the change does not say another. */
enum plim_status plim_advise(const struct plim_question *question, struct plim_asker *asker,
                             const struct plim_setting *setting, struct plim_advices *advices,
                             struct plim_error *err) PLIM_MUST_CHECK;

void plim_advices_finish(struct plim_advices *advices); /* NULL and zeroed are fine */

#endif
