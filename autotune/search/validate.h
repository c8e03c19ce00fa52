/* From a plan to a proof: which of the planned settings are run on the GPU.
 *
 * A plan (a decision made on a simulated GPU) has every candidate's bytes and an estimate of its
 * rate. As few settings as possible run on the GPU: the candidate with the best prediction is run and
 * timed, and its result corrects the predictions of the others; as long as one of them could still
 * win, it is run too. If a candidate does not fit, contrary to the plan, its point is searched again
 * on the GPU. Every verdict and every rate of the decision then comes from the GPU.
 */
#ifndef PLIM_AUTOTUNE_SEARCH_VALIDATE_H
#define PLIM_AUTOTUNE_SEARCH_VALIDATE_H

#include "autotune/base/status.h"

struct plim_search;

/* The uncertainty of a prediction after another setting was measured on the same GPU: between points, which
 * run different operations, and within one point, where only the micro-batch differs. The clock's
 * errors relative to published speeds of one GPU are 2 to 19 % (tests/golden/speed.csv). */
#define PLIM_POINT_DOUBT 0.20
#define PLIM_BATCH_DOUBT 0.03

/* Times candidates of the search's plan on its GPU. The points are the plan's. */
enum plim_status plim_validate(struct plim_search *search) PLIM_MUST_CHECK;

#endif
