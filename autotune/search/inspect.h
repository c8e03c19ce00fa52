/* Inspects one setting on one GPU: whether it fits, the memory that it needs, and changes that would make it fit. */
#ifndef PLIM_AUTOTUNE_SEARCH_INSPECT_H
#define PLIM_AUTOTUNE_SEARCH_INSPECT_H

#include "advice.h"

struct plim_inspection {
    struct plim_setting setting;
    bool fits;
    struct plim_sample under_budget; /* the run under the budget */
    struct plim_trial trial;         /* the run under the budget; without limit if it does not fit */
    struct plim_advices advices;     /* if it does not fit */
};

/* Fills in the zeroed `inspection`. PLIM_SPEC: the setting cannot run at all; the message has the reason. */
enum plim_status plim_inspect(const struct plim_question *question, struct plim_prober *prober,
                              const struct plim_setting *setting,
                              struct plim_inspection *inspection,
                              struct plim_error *err) PLIM_MUST_CHECK;
void plim_inspection_finish(struct plim_inspection *inspection); /* NULL or a zeroed one is allowed */

#endif
