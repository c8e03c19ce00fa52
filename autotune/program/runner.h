/* Trials of a program as the runs of a search (autotune/runner.h).
 *
 * Each setting is tried once. While the search waits for one answer, other trials that it is likely
 * to ask for next may run beside it. What a setting would need if nothing limited it is only tried
 * where it does not fit.
 */
#ifndef PLIM_AUTOTUNE_PROGRAM_RUNNER_H
#define PLIM_AUTOTUNE_PROGRAM_RUNNER_H

#include "autotune/runner.h"
#include "trial.h"

struct plim_program_runner;

/* `order` outlives the runner. `jobs`: trials at once, at least 1. */
enum plim_status plim_program_runner_create(const struct plim_trial_order *order, int jobs,
                                            struct plim_program_runner **out,
                                            struct plim_error *err) PLIM_MUST_CHECK;
/* Ends trials that nobody waits for any more. */
void plim_program_runner_destroy(struct plim_program_runner **runner);

/* A plim_runner's `run`; `user` is the runner. A program that takes the same memory whatever its
 * batch is ends the search: PLIM_INVALID says so. */
enum plim_status plim_program_runner_run(void *user, const struct plim_setting *setting,
                                         enum plim_run_mode mode, struct plim_replay *out,
                                         struct plim_error *err) PLIM_MUST_CHECK;

/* The trial of a setting that was run; NULL: it was not. */
const struct plim_trial *plim_program_runner_trial(const struct plim_program_runner *runner,
                                                   const struct plim_setting *setting);

/* The trials that are over, in the order in which they were begun. */
size_t plim_program_runner_count(const struct plim_program_runner *runner);
const struct plim_trial *plim_program_runner_at(const struct plim_program_runner *runner, size_t i);

#endif
