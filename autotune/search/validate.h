/* Validates a plan on a real GPU, with as few runs as possible.
 *
 * A plan (a decision made on a simulated GPU) has the memory of every candidate and an estimate of its rate. The
 * candidate with the best prediction is run and timed on the GPU, and its result corrects the predictions of the
 * others; while another could still win, it is run too. If a candidate does not fit, contrary to the plan, its point is
 * searched again on the GPU. All verdicts and rates of the decision then come from the GPU. */
#ifndef PLIM_AUTOTUNE_SEARCH_VALIDATE_H
#define PLIM_AUTOTUNE_SEARCH_VALIDATE_H

#include "autotune/base/status.h"

struct plim_search;

/* The uncertainty of a predicted rate after another setting was measured on the same GPU: between points, which run
 * different operations, and within a point, where only the micro-batch differs. The simulated clock's errors relative
 * to published speeds of one GPU are 2 to 19 % (tests/golden/speed.csv). */
#define PLIM_POINT_DOUBT 0.20
#define PLIM_BATCH_DOUBT 0.03

/* Times candidates of the search's plan on its GPU. The points are the plan's. */
enum plim_status plim_validate(struct plim_search *search) PLIM_MUST_CHECK;

#endif
