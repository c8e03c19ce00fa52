/* Advice on changes that would make a setting fit: those that were tried, with the memory that each needs. */
#ifndef PLIM_AUTOTUNE_SEARCH_ADVICE_H
#define PLIM_AUTOTUNE_SEARCH_ADVICE_H

#include "probe.h"

struct plim_question;

struct plim_advice {
    char change[128]; /* "checkpointing full", "micro-batch 4, accumulation 4" */
    struct plim_setting setting;
    bool fits;
    struct plim_trial trial; /* under the budget if it fits, otherwise without limit */
};

struct plim_advices {
    PLIM_ARRAY(struct plim_advice)
    list; /* changes that fit come first; otherwise in the order of the question, least intrusive first */
};

/* Appends advice for `setting`, which does not fit: a smaller micro-batch, the changes of the question (question.h), a
 * shorter sequence, sharding over more GPUs. Changes are combined only if no single one suffices. The effective batch
 * stays the same, unless the advice says otherwise. */
enum plim_status plim_advise(const struct plim_question *question, struct plim_prober *prober,
                             const struct plim_setting *setting, struct plim_advices *advices,
                             struct plim_error *err) PLIM_MUST_CHECK;

void plim_advices_finish(struct plim_advices *advices); /* NULL or a zeroed list is allowed */

#endif
