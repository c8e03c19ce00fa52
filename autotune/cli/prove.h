/* --prove: checks the plan from a recording against trials of its program. */
#ifndef PLIM_AUTOTUNE_CLI_PROVE_H
#define PLIM_AUTOTUNE_CLI_PROVE_H

#include "common.h"
#include "workloads/recording/recording.h"

/* Runs the program of the recording, as exec does, at the choice of `result` and at the next larger
 * micro-batch that was planned, on the device of this URI. `verified` of the choice is set if the first
 * fits and the second, if there is one, does not; a reason reports the outcome in any case. A result
 * without a choice is left unchanged. Fails as exec does: PLIM_INVALID where the program cannot be run. */
enum plim_status plim_prove_recording(const struct plim_request *request, const struct plim_io *io,
                                      const struct plim_log *log,
                                      const struct plim_recording *recording, const char *uri,
                                      struct plim_result *result,
                                      struct plim_error *err) PLIM_MUST_CHECK;

#endif
