/* Plans the files of one config: recognises them, finds and checks their sizes, and makes the edits. */
#ifndef PLIM_REPORTS_CONFIGS_PLAN_GROUP_H
#define PLIM_REPORTS_CONFIGS_PLAN_GROUP_H

#include "patch_plan.h"

/* The outcome for a group. SIZED: its sizes are correct or edited (or the group was refused because of them); NOTHING:
 * it has none; OVERRIDDEN: they come from elsewhere. */
enum plim_config_outcome {
    PLIM_CONFIG_SIZED,
    PLIM_CONFIG_NOTHING,
    PLIM_CONFIG_OVERRIDDEN,
    PLIM_CONFIG_OPEN, /* it leaves its sizes to other files ("auto") */
};

/* Plans the edits of the files whose places are in the plan. */
enum plim_status plim_config_group_plan(struct plim_config_plan *plan,
                                        const struct plim_config_ask *ask,
                                        enum plim_config_outcome *outcome,
                                        struct plim_error *err) PLIM_MUST_CHECK;

#endif
