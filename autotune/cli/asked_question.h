/* The SPEC of the command line as a question: a spec for the engine, or a recording (NAME.plim). */
#ifndef PLIM_AUTOTUNE_CLI_ASKED_QUESTION_H
#define PLIM_AUTOTUNE_CLI_ASKED_QUESTION_H

#include "autotune/run/spec_question.h"
#include "common.h"
#include "workloads/recording/recording.h"

/* Too large for the stack. Must not be copied or moved once it is read. */
struct plim_asked_question {
    struct plim_spec spec; /* for a recording: only the requested batches and sequence lengths */
    struct plim_recording recording;
    struct plim_spec_question question;
};

/* Fills in the zeroed `out`, which the caller finishes in any case. */
enum plim_status plim_asked_question_read(const struct plim_request *request,
                                          const struct plim_log *log, const struct plim_stop *stop,
                                          struct plim_asked_question *out,
                                          struct plim_error *err) PLIM_MUST_CHECK;
void plim_asked_question_finish(struct plim_asked_question *asked); /* a zeroed one is allowed */

#endif
