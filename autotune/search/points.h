/* Searches the points of the space, in one way for each kind of objective (objective.h).
 *
 * For speed most points can be excluded early. Each is first timed at a micro-batch that certainly fits, which bounds
 * its rate at the edge. The point with the highest bound is searched completely, and of the others only those whose
 * bound is not below the best rate. */
#ifndef PLIM_AUTOTUNE_SEARCH_POINTS_H
#define PLIM_AUTOTUNE_SEARCH_POINTS_H

#include "autotune/base/status.h"

struct plim_search;

/* Searches the points that can be the fastest. */
enum plim_status plim_points_fastest(struct plim_search *search) PLIM_MUST_CHECK;

/* Finds the best setting of every point, with at most PLIM_PROBED_MICRO_STEPS micro-steps (runner.h), or the reason why
 * nothing fits there. To be called after one of the others. */
enum plim_status plim_points_compare(struct plim_search *search) PLIM_MUST_CHECK;

/* Tries the settings that may need the least memory: the smallest micro-batches of every point, and a step without
 * accumulation. */
enum plim_status plim_points_smallest(struct plim_search *search) PLIM_MUST_CHECK;

/* Finds every point's edge, and tries the largest allowed micro-batch of each. */
enum plim_status plim_points_largest(struct plim_search *search) PLIM_MUST_CHECK;

#endif
