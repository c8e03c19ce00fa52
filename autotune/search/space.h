/* The points of a search: every combination of what is open, without the micro-batch.
 *
 * A waterfall orders them in levels, of which the first with something that fits is the answer. On the
 * first, its axes have their first values; each further level gives up one value more: those of the
 * first axis in their order, then, while that stays at its last, those of the second. Of two axes with
 * m and n values m + n - 1 levels are left of m x n combinations. All other axes are open on each. */
#ifndef PLIM_AUTOTUNE_SEARCH_SPACE_H
#define PLIM_AUTOTUNE_SEARCH_SPACE_H

#include "autotune/base/array.h"
#include "batch.h"
#include "runner.h"

struct plim_space {
    PLIM_ARRAY(struct plim_setting) points; /* micro_batch and accumulation are 0 */
    PLIM_ARRAY(size_t) level_ends; /* index behind the last point of each level; without waterfall: one */
};

/* All points, level by level, the last axis varying fastest. `seqs` takes the place of the axis of
 * sequence lengths where it is not NULL. PLIM_NOMEM is the only failure. */
enum plim_status plim_space_build(struct plim_space *space, const struct plim_axes *axes,
                                  const int64_t *seqs, size_t seq_count,
                                  struct plim_error *err) PLIM_MUST_CHECK;
void plim_space_finish(struct plim_space *space); /* NULL and zeroed are fine */

/* The first value of every axis; where there is no such point the first one that there is, if any. */
struct plim_setting plim_space_first(const struct plim_axes *axes);

/* A point with a micro-batch, as this runner is asked about it while searching. */
struct plim_setting plim_space_setting(const struct plim_setting *point,
                                       const struct plim_batch *batch,
                                       const struct plim_runner *runner);

#endif
