/* Accounts for GPU memory that is not free again after a worker's runs: code that libraries keep, or a leak.
 *
 * The first run of a setting loads kernels and plans for its shapes, which stay: that is not a leak. A setting that has
 * run before has nothing left to load: memory that is missing after it is a leak. */
#ifndef PLIM_AUTOTUNE_RUN_LEAKS_H
#define PLIM_AUTOTUNE_RUN_LEAKS_H

#include "autotune/base/array.h"
#include "autotune/search/setting.h"

/* Ready when zeroed, with the two limits set. */
struct plim_leaks {
    int64_t may_leak_bytes, may_load_bytes;
    int64_t leaked_bytes; /* missing after runs of settings that had run before */
    int64_t loaded_bytes; /* missing after first runs */
    PLIM_ARRAY(struct plim_setting) known; /* settings that have run */
};

void plim_leaks_finish(struct plim_leaks *leaks);

/* Adds a run of a setting, after which `missing_bytes` less memory is free than before (negative: more). PLIM_NOMEM: no
 * host memory. */
enum plim_status plim_leaks_add(struct plim_leaks *leaks, const struct plim_setting *setting,
                                int64_t missing_bytes) PLIM_MUST_CHECK;

/* True if a limit is exceeded, so that a new worker should run the next setting. */
bool plim_leaks_are_too_many(const struct plim_leaks *leaks);

#endif
