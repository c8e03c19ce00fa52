/* A recording as a question to the search: its batch, its sequence length and its other axes. */
#ifndef PLIM_AUTOTUNE_RUN_RECORDING_QUESTION_H
#define PLIM_AUTOTUNE_RUN_RECORDING_QUESTION_H

#include "spec_question.h"
#include "workloads/recording/recording.h"

/* Makes the question of a recording. `spec` lists the micro-batches and sequence lengths of the question (none: all
 * recorded ones). Both must outlive `out`. */
void plim_recording_question_make(const struct plim_recording *recording,
                                  const struct plim_spec *spec, enum plim_objective objective,
                                  struct plim_spec_question *out);

/* Restricts an axis to the values of a list such as "bf16,fp32", in the list's order. `option` names the option in
 * error messages. PLIM_INVALID: the recording has no such axis or value. */
enum plim_status plim_recording_question_choose(struct plim_spec_question *question,
                                                const char *option, const char *name,
                                                const char *list,
                                                struct plim_error *err) PLIM_MUST_CHECK;

/* PLIM_INVALID if a listed batch is not covered by the recording, or no combination of the remaining values of the axes
 * is recorded; the message lists what is recorded. */
enum plim_status plim_recording_question_check(const struct plim_spec_question *question,
                                               struct plim_error *err) PLIM_MUST_CHECK;

/* Finds the stream and the point to play for a setting. *stream is NULL if its combination of values is not recorded,
 * or if each batch has its own stream and that of this batch is not recorded. */
void plim_recording_question_setting(const struct plim_spec_question *question,
                                     const struct plim_setting *setting,
                                     const struct plim_recorded_stream **stream,
                                     struct plim_recorded_point *point);

#endif
