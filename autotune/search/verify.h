/* The end of a decision: chooses, verifies the choice, tries the next larger micro-batch, and looks beyond the edge. */
#ifndef PLIM_AUTOTUNE_SEARCH_VERIFY_H
#define PLIM_AUTOTUNE_SEARCH_VERIFY_H

#include "autotune/base/status.h"
#include <stddef.h>

struct plim_search;

/* Chooses among the candidates. Makes the runs that this needs: the choice with all its micro-steps, and the next
 * larger micro-batch. */
enum plim_status plim_verify_choice(struct plim_search *search) PLIM_MUST_CHECK;

/* Finds the largest micro-batch that fits at the point of the choice and tries the one after it; if nothing was found,
 * finds the setting that needs the least memory, and advice. */
enum plim_status plim_verify_bounds(struct plim_search *search) PLIM_MUST_CHECK;

/* Finds the edge of a point and refutes the candidates beyond it. */
enum plim_status plim_verify_below_edge(struct plim_search *search, size_t point) PLIM_MUST_CHECK;

/* Sets the best answer so far, without further runs. */
void plim_verify_so_far(struct plim_search *search);

#endif
