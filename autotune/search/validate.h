/* From a plan to a proof: which of the planned settings are run on the GPU.
 *
 * A plan (a decision made on a simulated GPU) knows every candidate's bytes and a guess of its
 * rate. The GPU is asked for as little as decides: the candidate that promises most is run and
 * timed, and with it the promises of the others are corrected; as long as one of them could still
 * win, it is run too. A candidate that does not fit, against the plan, has its point searched anew
 * on the GPU. Every verdict and every rate of the decision is then the GPU's.
 */
#ifndef PLIM_AUTOTUNE_SEARCH_VALIDATE_H
#define PLIM_AUTOTUNE_SEARCH_VALIDATE_H

#include "autotune/base/status.h"

struct plim_search;

/* How far a prediction may be off once another of the same GPU was measured: between points that
 * differ in what they run, and within one point, where only the micro-batch does. The clock's
 * errors against published speeds of one GPU are 2 to 19 % (tests/golden/speed.csv). */
#define PLIM_POINT_DOUBT 0.20
#define PLIM_BATCH_DOUBT 0.03

/* Times candidates of the search's plan on its GPU. The points are the plan's. */
enum plim_status plim_validate(struct plim_search *search) PLIM_MUST_CHECK;

#endif
