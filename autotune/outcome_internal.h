/* What outcome.c and the reasons share. */
#ifndef PLIM_AUTOTUNE_OUTCOME_INTERNAL_H
#define PLIM_AUTOTUNE_OUTCOME_INTERNAL_H

#include "outcome.h"

/* "ok", "oom" ...: a verdict as reports name it. */
const char *plim_verdict_name(enum plim_status verdict);

/* How a replay ran out: "out of memory in log_softmax, forward, step 1: 3.07 GiB more for
 * temporaries". */
void plim_describe_failure(enum plim_status verdict, const struct plim_replay *replay, char *out,
                           size_t size);

/* Appends the reasons of a decision, or of an explanation. */
void plim_reasons_decision(const struct plim_card *card, const struct plim_spec *spec,
                           const struct plim_decision *decision, struct plim_result *result);
void plim_reasons_explanation(const struct plim_card *card,
                              const struct plim_explanation *explanation,
                              struct plim_result *result);

#endif
