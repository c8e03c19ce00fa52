/* --prove: checks the plan of a recording with trials of its program. */
#ifndef PLIM_AUTOTUNE_CLI_PROVE_H
#define PLIM_AUTOTUNE_CLI_PROVE_H

#include "common.h"
#include "workloads/recording/recording.h"

/* Runs the recorded program, as exec does, at the choice of `result` and at the next larger planned micro-batch, on the
 * device of this URI. Sets `verified` of the choice if the first fits and the second, if there is one, does not; adds a
 * reason with the outcome in any case. A result without a choice is left unchanged. Fails as exec does: PLIM_INVALID if
 * the program cannot be run. */
enum plim_status plim_prove_recording(const struct plim_request *request, const struct plim_io *io,
                                      const struct plim_log *log,
                                      const struct plim_recording *recording, const char *uri,
                                      struct plim_result *result,
                                      struct plim_error *err) PLIM_MUST_CHECK;

#endif
