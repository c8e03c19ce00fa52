/* A recording as a question to the search: its batch, its sequence length and its own axes. */
#ifndef PLIM_AUTOTUNE_RUN_RECORDING_QUESTION_H
#define PLIM_AUTOTUNE_RUN_RECORDING_QUESTION_H

#include "spec_question.h"
#include "workloads/recording/recording.h"

/* `spec` has the micro-batches and sequence lengths that are asked for (none: all recorded
 * ones). Both outlive `out`. */
void plim_recording_question_make(const struct plim_recording *recording,
                                  const struct plim_spec *spec, enum plim_objective objective,
                                  struct plim_spec_question *out);

/* Restricts an axis to the values of a list such as "bf16,fp32", in the list's order. PLIM_INVALID, with what
 * there is: the recording has no such axis, or no such value. `option` is for the message. */
enum plim_status plim_recording_question_choose(struct plim_spec_question *question,
                                                const char *option, const char *name,
                                                const char *list,
                                                struct plim_error *err) PLIM_MUST_CHECK;

/* PLIM_INVALID, with what there is: a listed batch is not covered by the recording, or no combination of the
 * remaining values of the axes is recorded. */
enum plim_status plim_recording_question_check(const struct plim_spec_question *question,
                                               struct plim_error *err) PLIM_MUST_CHECK;

/* The stream and the point to play for a setting; NULL: its combination of values is not recorded, or each batch has a
 * stream of its own and this one is not recorded. */
void plim_recording_question_setting(const struct plim_spec_question *question,
                                     const struct plim_setting *setting,
                                     const struct plim_recorded_stream **stream,
                                     struct plim_recorded_point *point);

#endif
