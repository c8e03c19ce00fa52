/* Memory that is not free again after a worker's runs: code that libraries keep, or a leak.
 *
 * A setting that runs for the first time loads kernels and plans for its shapes, and they stay: that is
 * not a leak, whatever has run before it. A setting that has run before has nothing left to load; memory that is
 * missing after it is a leak.
 */
#ifndef PLIM_AUTOTUNE_RUN_LEAKS_H
#define PLIM_AUTOTUNE_RUN_LEAKS_H

#include "autotune/base/array.h"
#include "autotune/search/setting.h"

/* Zeroed, with the two limits set, it is ready. */
struct plim_leaks {
    int64_t may_leak_bytes, may_load_bytes;
    int64_t leaked_bytes; /* after runs of settings that had run before */
    int64_t loaded_bytes; /* after first runs */
    PLIM_ARRAY(struct plim_setting) known;
};

void plim_leaks_finish(struct plim_leaks *leaks);

/* `missing_bytes`: how much less memory is free after a run of the setting than before it; negative: more.
 * PLIM_NOMEM: no host memory. */
enum plim_status plim_leaks_note(struct plim_leaks *leaks, const struct plim_setting *setting,
                                 int64_t missing_bytes) PLIM_MUST_CHECK;

/* Should the next result come from a new process? */
bool plim_leaks_are_too_many(const struct plim_leaks *leaks);

#endif
