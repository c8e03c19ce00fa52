/* The end of a decision: choose, run what was chosen and its larger neighbour, look beyond the
 * edge. */
#ifndef PLIM_AUTOTUNE_PROVE_H
#define PLIM_AUTOTUNE_PROVE_H

#include "tune.h"

/* Chooses among the candidates, adding the runs that the answer needs: the choice with all its
 * micro-steps, the next larger micro-batch, the largest that fits and the one after it; or,
 * when nothing fits, what would be needed and advice. */
enum plim_status plim_prove(const struct plim_tuning *tuning, struct plim_decision *decision,
                            struct plim_ranker *ranker, struct plim_error *err) PLIM_MUST_CHECK;

/* The best answer so far, without running anything more. */
void plim_take_choice(const struct plim_tuning *tuning, struct plim_decision *decision);

#endif
