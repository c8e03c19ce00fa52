/* The points of a search: every combination of the values of its axes, without the micro-batch.
 *
 * A waterfall orders them in levels; the first level on which anything fits has the answer. On the first level its axes
 * have their first values. Each further level gives up one more value: first those of the first axis, in order; then,
 * with that axis at its last value, those of the second. Two axes with m and n values have m + n - 1 levels instead of
 * m * n combinations. All other axes vary on every level. */
#ifndef PLIM_AUTOTUNE_SEARCH_SPACE_H
#define PLIM_AUTOTUNE_SEARCH_SPACE_H

#include "autotune/base/array.h"
#include "batch.h"
#include "runner.h"

struct plim_space {
    PLIM_ARRAY(struct plim_setting) points; /* micro_batch and accumulation are 0 */
    PLIM_ARRAY(size_t) level_ends; /* index after the last point of each level; without waterfall: one level */
};

/* Builds the list of points, level by level, the last axis varying fastest. `seqs`, if not NULL, replaces the values of
 * the axis of sequence lengths. PLIM_NOMEM is the only error. */
enum plim_status plim_space_build(struct plim_space *space, const struct plim_axes *axes,
                                  const int64_t *seqs, size_t seq_count,
                                  struct plim_error *err) PLIM_MUST_CHECK;
void plim_space_finish(struct plim_space *space); /* NULL or a zeroed space is allowed */

/* Returns the point with the first value of every axis; if it does not exist, the first point that does, if any. */
struct plim_setting plim_space_first(const struct plim_axes *axes);

/* Returns the setting for a point and a micro-batch, as this runner runs it while searching. */
struct plim_setting plim_space_setting(const struct plim_setting *point,
                                       const struct plim_batch *batch,
                                       const struct plim_runner *runner);

#endif
