/* Notes on what the user should check after a change: values that follow, stale comments, related values,
 * checkpoints. */
#ifndef PLIM_REPORTS_CONFIGS_PATCH_NOTES_H
#define PLIM_REPORTS_CONFIGS_PATCH_NOTES_H

#include "config_roles.h"

/* Adds notes on the planned edits of the files of one group. `before`: samples per optimizer step and GPU before the
 * change, 0 if unknown; `after`: after it. */
void plim_config_notes(struct plim_config_plan *plan, const struct plim_config_framework *framework,
                       int64_t before, int64_t after);

#endif
