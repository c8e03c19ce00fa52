/* Notes on what a user should check after a change: values that follow, stale comments, coupled values,
 * checkpoints. */
#ifndef PLIM_REPORTS_CONFIGS_PATCH_NOTES_H
#define PLIM_REPORTS_CONFIGS_PATCH_NOTES_H

#include "config_roles.h"

/* Adds notes on the edits that the plan has for the files of one group. `before`: samples of an optimizer
 * step per GPU until now, 0 where that is not known; `after`: from now on. */
void plim_config_notes(struct plim_config_plan *plan, const struct plim_config_framework *framework,
                       int64_t before, int64_t after);

#endif
