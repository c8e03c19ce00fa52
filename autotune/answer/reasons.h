/* The reasons of an answer, as sentences. */
#ifndef PLIM_AUTOTUNE_ANSWER_REASONS_H
#define PLIM_AUTOTUNE_ANSWER_REASONS_H

#include "answer.h"

/* Append the reasons of a decision or of an inspection to the result. */
void plim_reasons_decision(const struct plim_answer *answer, const struct plim_decision *decision,
                           struct plim_result *result);
void plim_reasons_inspection(const struct plim_answer *answer,
                             const struct plim_inspection *inspection, struct plim_result *result);

#endif
