/* From a plan to a proof: which of the planned settings are run on the card.
 *
 * A plan (a decision made on a simulated card) knows every candidate's bytes and a guess of its
 * rate. The card is asked for as little as decides: the candidate that promises most is run and
 * timed, and with it the promises of the others are corrected; as long as one of them could still
 * win, it is run too. A candidate that does not fit, against the plan, has its point searched anew
 * on the card. Every verdict and every rate of the decision is then the card's.
 */
#ifndef PLIM_AUTOTUNE_CONFIRM_H
#define PLIM_AUTOTUNE_CONFIRM_H

#include "tune.h"

/* How far a prediction may be off once another of the same card was measured: between points that
 * differ in what they run, and within one point, where only the micro-batch does. The clock's
 * errors against published speeds of one card are 2 to 19 % (tests/golden/speed.csv). */
#define PLIM_POINT_DOUBT 0.20
#define PLIM_BATCH_DOUBT 0.03

/* Times candidates of `tuning->plan` on the prober's card into the ranker's candidates, whose
 * space is the plan's. */
enum plim_status plim_confirm(const struct plim_tuning *tuning, struct plim_decision *decision,
                              struct plim_ranker *ranker, struct plim_error *err) PLIM_MUST_CHECK;

#endif
