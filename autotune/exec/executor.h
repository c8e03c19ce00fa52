/* A runner of a search (autotune/search/runner.h) whose runs are trials of a program.
 *
 * Each setting is tried once. While the search waits for one trial, settings that it announced as possible next ones
 * run at the same time. A setting is tried on a GPU without a limit only if it does not fit. The `details` of a trial
 * are a `struct plim_execution`. */
#ifndef PLIM_AUTOTUNE_EXEC_EXECUTOR_H
#define PLIM_AUTOTUNE_EXEC_EXECUTOR_H

#include "autotune/search/runner.h"
#include "execution.h"

struct plim_executor;

/* `options` must outlive the executor. `jobs`: the most trials at a time, at least 1. */
enum plim_status plim_executor_create(const struct plim_execution_options *options, int jobs,
                                      struct plim_executor **out,
                                      struct plim_error *err) PLIM_MUST_CHECK;
/* Cancels running trials and waits for them. */
void plim_executor_destroy(struct plim_executor **executor);

/* Returns the first trial if it has ended and fitted, otherwise NULL. Owned by the executor. */
const struct plim_execution *plim_executor_first(struct plim_executor *executor);

/* A program that uses torch.compile may take different amounts of memory at its first launch and at later ones, which
 * find compiled code. Tries a setting that fitted in both ways and keeps the trial with the larger peak. If a launch
 * does not fit, every later setting is tried in both ways too. Does nothing for other programs, or when time is up.
 * Returns the setting's trial, owned by the executor; NULL if it was never tried. */
const struct plim_execution *plim_executor_confirm(struct plim_executor *executor, const struct plim_setting *setting);

/* Returns the runner, valid as long as the executor. Its runs fail with PLIM_INVALID if the program takes the same
 * memory with every batch. */
struct plim_runner plim_executor_runner(struct plim_executor *executor);

#endif
