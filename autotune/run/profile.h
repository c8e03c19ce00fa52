/* Presets for users who do not want to give numbers; each is a row of a table.
 *
 * A profile sets the objective and how much memory stays free. A tier sets only the latter: `--tiers` answers the same
 * question once for each tier. */
#ifndef PLIM_AUTOTUNE_RUN_PROFILE_H
#define PLIM_AUTOTUNE_RUN_PROFILE_H

#include "allowance.h"
#include "autotune/search/objective.h"

struct plim_profile {
    const char *name;
    enum plim_objective objective;
    double margin_share; /* of the usable memory */
};

enum { PLIM_PROFILES = 3 };
extern const struct plim_profile plim_profiles[PLIM_PROFILES];

struct plim_tier {
    const char *name;
    double margin_share;
};

enum { PLIM_TIERS = 4 };
extern const struct plim_tier plim_tiers[PLIM_TIERS]; /* the largest margin first */

#endif
