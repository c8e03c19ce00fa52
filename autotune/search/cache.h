/* Runs that GPUs share.
 *
 * A `plan` over many GPUs would replay the same thing again and again. The events of a training
 * step (what is allocated, in which order) depend on the GPU only through its compute capability
 * and its number of multiprocessors (devices/needs); GPUs that agree in both are one *class*. And
 * the GPU's limit changes the allocator's behaviour only once it is hit. So, for a run that never
 * hit one ("clean": without limit, or to the end without a retry):
 *
 *   - reserved <= budget   it runs the same on every GPU of the class with that budget: it fits, and
 *     its peaks are the peaks there;
 *   - requested > budget   it fits on none: whatever the allocator does, the tensors alone need more
 *     (`requested` is the sum of the requests, before any rounding of the allocator);
 *   - in between           only a run under exactly this budget can tell, because it depends on what the
 *     allocator releases and requests again.
 *
 * Times are not shared: seconds belong to the GPU that they were measured on.
 *
 * The allocator's memory fraction makes it act on the limit before it is hit; then only the second
 * rule holds (runner.h, limit_acts_early).
 */
#ifndef PLIM_AUTOTUNE_SEARCH_CACHE_H
#define PLIM_AUTOTUNE_SEARCH_CACHE_H

#include "autotune/base/arena.h"
#include "autotune/base/array.h"
#include "setting.h"
#include "trial.h"
#include <stdbool.h>

/* The clean runs of one class of GPUs and one question, and the details of all runs. Zeroed is empty
 * and ready. Thread safety: one thread at a time. */
struct plim_cache_entry {
    struct plim_setting setting;
    struct plim_trial trial;
    const void *runner; /* the runner that measured the seconds: only compared, never dereferenced */
};

struct plim_cache {
    PLIM_ARRAY(struct plim_cache_entry) entries;
    struct plim_arena details; /* what `details` of trials point to; lives as long as the cache */
};

void plim_cache_finish(struct plim_cache *cache); /* NULL and zeroed are fine */

/* The entry of a setting, or NULL. Valid until the next addition. */
const struct plim_cache_entry *plim_cache_find(const struct plim_cache *cache,
                                               const struct plim_setting *setting);

/* Keeps a run that never hit a limit; one that did, or whose setting is kept already, is ignored. PLIM_NOMEM
 * is the only failure. */
enum plim_status plim_cache_add(struct plim_cache *cache, const struct plim_setting *setting,
                                const struct plim_trial *trial, const void *runner) PLIM_MUST_CHECK;

/* What an entry says about a budget: PLIM_OK: it fits; PLIM_OOM: it cannot fit; PLIM_INVALID: not
 * decided. */
enum plim_status plim_cache_verdict(const struct plim_cache_entry *entry, int64_t budget_bytes);

#endif
