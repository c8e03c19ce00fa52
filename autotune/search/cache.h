/* Results that GPUs of one class share, so that a `plan` over many GPUs does not repeat the same replays.
 *
 * The allocations of a training step and their order depend on the GPU only through its compute capability and its
 * number of multiprocessors (devices/needs); GPUs that agree in both are one *class*. The memory limit changes the
 * allocator's behaviour only once it is hit. So, for a run that never hit a limit ("clean": without limit, or to the
 * end without a retry):
 *
 *   - reserved <= budget   it runs the same on every GPU of the class with that budget: it fits, with the same peaks;
 *   - requested > budget   it does not fit: whatever the allocator does, the tensors alone need more (`requested` is
 *     the sum of the requests, before the allocator's rounding);
 *   - in between           only a run under exactly this budget can tell, since the result depends on what the
 *     allocator releases and requests again.
 *
 * Times are not shared: they belong to the GPU on which they were measured.
 *
 * With a memory fraction the allocator acts on the limit before it is hit; then only the second rule holds (runner.h,
 * limit_acts_early). */
#ifndef PLIM_AUTOTUNE_SEARCH_CACHE_H
#define PLIM_AUTOTUNE_SEARCH_CACHE_H

#include "autotune/base/arena.h"
#include "autotune/base/array.h"
#include "setting.h"
#include "trial.h"
#include <stdbool.h>

/* A clean run. */
struct plim_cache_entry {
    struct plim_setting setting;
    struct plim_trial trial;
    const void *runner; /* the runner that measured the time: only compared, never dereferenced */
};

/* The clean runs of one class of GPUs and one question, and the details of all runs. A zeroed cache is empty and ready.
 * Thread safety: one thread at a time. */
struct plim_cache {
    PLIM_ARRAY(struct plim_cache_entry) entries;
    struct plim_arena details; /* owns the `details` of trials */
};

void plim_cache_finish(struct plim_cache *cache); /* NULL or a zeroed cache is allowed */

/* Returns the entry of a setting, or NULL. Valid until the next addition. */
const struct plim_cache_entry *plim_cache_find(const struct plim_cache *cache,
                                               const struct plim_setting *setting);

/* Keeps a clean run; ignores other runs, and those of settings that are kept already. PLIM_NOMEM is the only error. */
enum plim_status plim_cache_add(struct plim_cache *cache, const struct plim_setting *setting,
                                const struct plim_trial *trial, const void *runner) PLIM_MUST_CHECK;

/* Returns the verdict that follows from an entry for a budget: PLIM_OK: it fits; PLIM_OOM: it cannot fit; PLIM_INVALID:
 * undecided. */
enum plim_status plim_cache_verdict(const struct plim_cache_entry *entry, int64_t budget_bytes);

#endif
