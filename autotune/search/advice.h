/* Advice on what would make a setting fit: the changes that were tried, with the memory that each would need. */
#ifndef PLIM_AUTOTUNE_SEARCH_ADVICE_H
#define PLIM_AUTOTUNE_SEARCH_ADVICE_H

#include "ask.h"

struct plim_question;

struct plim_advice {
    char change[128]; /* "checkpointing full", "micro-batch 4, accumulation 4" */
    struct plim_setting setting;
    bool fits;
    struct plim_trial trial; /* under the budget if it fits, else without limit */
};

struct plim_advices {
    PLIM_ARRAY(struct plim_advice)
    list; /* changes that fit first; otherwise by how little they change */
};

/* Appends advice for `setting`, which does not fit: changes of the question (question.h), a smaller
 * micro-batch, a shorter sequence, sharding over more GPUs. Single changes come first; only if none of them is
 * enough are they combined, until the combination fits. The effective batch stays the same, unless
 * the change says otherwise. */
enum plim_status plim_advise(const struct plim_question *question, struct plim_asker *asker,
                             const struct plim_setting *setting, struct plim_advices *advices,
                             struct plim_error *err) PLIM_MUST_CHECK;

void plim_advices_finish(struct plim_advices *advices); /* NULL and zeroed are fine */

#endif
