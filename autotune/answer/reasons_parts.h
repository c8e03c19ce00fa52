/* Parts of the reasons of a decision (reasons.h); each function appends sentences to the result. */
#ifndef PLIM_AUTOTUNE_ANSWER_REASONS_PARTS_H
#define PLIM_AUTOTUNE_ANSWER_REASONS_PARTS_H

#include "answer.h"

/* How several GPUs train, and what is included in their rates; nothing for a single GPU. */
void plim_reasons_world(const struct plim_answer *answer, const struct plim_setting *setting,
                        const struct plim_trial *trial, struct plim_result *result);

/* Why nothing fits. */
void plim_reasons_none(const struct plim_answer *answer, const struct plim_decision *decision,
                       struct plim_result *result);

/* How the sample of the preceding sentence ended; `failure` is from plim_describe_failure(). */
void plim_reasons_end(const struct plim_sample *sample, const char *failure, struct plim_result *result);

#endif
