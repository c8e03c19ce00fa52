/* The end of a decision: choose, run the choice and the next larger micro-batch, look beyond the
 * edge. */
#ifndef PLIM_AUTOTUNE_SEARCH_VERIFY_H
#define PLIM_AUTOTUNE_SEARCH_VERIFY_H

#include "autotune/base/status.h"
#include <stddef.h>

struct plim_search;

/* Chooses among the candidates, adding the runs that the choice needs: itself with all its
 * micro-steps, and the next larger micro-batch. */
enum plim_status plim_verify_choice(struct plim_search *search) PLIM_MUST_CHECK;

/* Finds the bounds of the choice: the largest micro-batch that fits and the one after it; or, if
 * nothing was found, what would be needed, and advice. */
enum plim_status plim_verify_bounds(struct plim_search *search) PLIM_MUST_CHECK;

/* Finds the edge of a point and refutes the candidates beyond it. */
enum plim_status plim_verify_below_edge(struct plim_search *search, size_t point) PLIM_MUST_CHECK;

/* The best answer so far, without running anything more. */
void plim_verify_so_far(struct plim_search *search);

#endif
