/* Which points of the space are searched, one way for each kind of objective (objective.h).
 *
 * For speed most of many points can be left out early. Each is first timed at a micro-batch that
 * surely fits, which bounds its rate at the edge; the one with the highest bound is searched through,
 * and of the others only those whose bound is not below the best rate.
 */
#ifndef PLIM_AUTOTUNE_SEARCH_POINTS_H
#define PLIM_AUTOTUNE_SEARCH_POINTS_H

#include "autotune/base/status.h"

struct plim_search;

/* What can be the fastest. */
enum plim_status plim_points_fastest(struct plim_search *search) PLIM_MUST_CHECK;

/* The best of every point, but not with more than PLIM_PROBED_STEPS micro-steps (space.h); of a point
 * where nothing fits, why. After one of the others. */
enum plim_status plim_points_compare(struct plim_search *search) PLIM_MUST_CHECK;

/* What can need least memory: the smallest micro-batches of every point. */
enum plim_status plim_points_smallest(struct plim_search *search) PLIM_MUST_CHECK;

/* Every point's edge, and of each the largest micro-batch that is allowed. */
enum plim_status plim_points_largest(struct plim_search *search) PLIM_MUST_CHECK;

#endif
