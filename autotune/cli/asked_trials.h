/* How trials of a program are run, according to the command line; shared by exec, record and --prove-with. */
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

/* For how many steps the peak must not have grown; 0: a trial runs as long as --steps or --for say, or until it
 * ends. */
int plim_asked_repetitions(const struct plim_request_program *asked);

/* Fills `out`; finish it in any case. PLIM_INVALID: an assumption is not understood. */
enum plim_status plim_asked_trials_read(const struct plim_request_program *asked,
                                        struct plim_asked_trials *out,
                                        struct plim_error *err) PLIM_MUST_CHECK;

/* Creates the folder that trials need; `is_real`: on a real GPU. Fails as plim_workspace_make() does. */
enum plim_status plim_asked_trials_place(struct plim_asked_trials *trials, bool is_real,
                                         struct plim_error *err) PLIM_MUST_CHECK;

/* Reads the values of --assume into the options. PLIM_INVALID: one is not understood. */
enum plim_status plim_asked_trials_assume(const struct plim_request_program *asked,
                                          struct plim_execution_options *options,
                                          struct plim_error *err) PLIM_MUST_CHECK;

void plim_asked_trials_finish(struct plim_asked_trials *trials); /* NULL is fine */

#endif
