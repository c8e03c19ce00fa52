/* Hydra configs: several files that form one config, in the order of their defaults lists. */
#ifndef PLIM_REPORTS_CONFIGS_HYDRA_H
#define PLIM_REPORTS_CONFIGS_HYDRA_H

#include "patch_plan.h"

/* Sets `composed` if the files are parts of one config: if the defaults list of one selects another. Then their places
 * are added in the order of composition, below their packages, and those that a later file overrides are hidden.
 * `select`: group=name, a choice of the command line. */
enum plim_status plim_config_compose(struct plim_config_plan *plan, const char *select,
                                     bool *composed, struct plim_error *err) PLIM_MUST_CHECK;

#endif
