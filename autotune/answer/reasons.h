/* Why: the sentences of an answer. */
#ifndef PLIM_AUTOTUNE_ANSWER_REASONS_H
#define PLIM_AUTOTUNE_ANSWER_REASONS_H

#include "answer.h"

/* "ok", "oom" ...: a verdict as reports name it. */
const char *plim_verdict_name(enum plim_status verdict);

/* How a trial ended badly: "out of memory when 3.07 GiB more were requested for
 * temporaries (log_softmax ...)". */
void plim_describe_failure(const struct plim_answer *answer, enum plim_status verdict,
                           const struct plim_trial *trial, char *out, size_t size);

/* Append the reasons of a decision, or of an inspection. */
void plim_reasons_decision(const struct plim_answer *answer, const struct plim_decision *decision,
                           struct plim_result *result);
void plim_reasons_inspection(const struct plim_answer *answer,
                             const struct plim_inspection *inspection, struct plim_result *result);

#endif
