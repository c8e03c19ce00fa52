/* Descriptions of trials that failed. */
#ifndef PLIM_AUTOTUNE_ANSWER_FAILURE_H
#define PLIM_AUTOTUNE_ANSWER_FAILURE_H

#include "answer.h"

/* Returns the name of a verdict in reports: "ok", "oom" and so on. */
const char *plim_verdict_name(enum plim_status verdict);

/* Describes how a trial failed: "out of memory when 3.07 GiB more were requested for temporaries (log_softmax ...)". */
void plim_describe_failure(const struct plim_answer *answer, enum plim_status verdict,
                           const struct plim_trial *trial, char *out, size_t size);

#endif
