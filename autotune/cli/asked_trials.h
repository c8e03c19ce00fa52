/* The options of trials of a program according to the command line, for exec, record and --prove-with. */
#ifndef PLIM_AUTOTUNE_CLI_ASKED_TRIALS_H
#define PLIM_AUTOTUNE_CLI_ASKED_TRIALS_H

#include "autotune/exec/execution.h"
#include "autotune/exec/workspace.h"
#include "request.h"

struct plim_asked_trials {
    const struct plim_request_program *asked;
    struct plim_workspace workspace;
    struct plim_execution_options options; /* without program, GPUs and stop */
};

/* Returns for how many steps the peak must not have grown; 0: a trial lasts as long as --steps or --for say, or until
 * the program ends. */
int plim_asked_repetitions(const struct plim_request_program *asked);

/* Fills in `out`, which the caller finishes in any case. PLIM_INVALID: a value of --assume is invalid. */
enum plim_status plim_asked_trials_read(const struct plim_request_program *asked,
                                        struct plim_asked_trials *out,
                                        struct plim_error *err) PLIM_MUST_CHECK;

/* Creates the workspace of the trials; `is_real`: they run on a real GPU. Fails as plim_workspace_create() does. */
enum plim_status plim_asked_trials_create_workspace(struct plim_asked_trials *trials, bool is_real,
                                                    struct plim_error *err) PLIM_MUST_CHECK;

/* Reads the values of --assume into the options. PLIM_INVALID: a value is invalid. */
enum plim_status plim_asked_trials_assume(const struct plim_request_program *asked,
                                          struct plim_execution_options *options,
                                          struct plim_error *err) PLIM_MUST_CHECK;

void plim_asked_trials_finish(struct plim_asked_trials *trials); /* NULL is allowed */

#endif
