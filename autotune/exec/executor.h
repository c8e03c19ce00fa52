/* Trials of a program as the runs of a search (autotune/search/runner.h).
 *
 * Each setting is tried once. While the search waits for one answer, settings that it announced as
 * possible next ones run at the same time. What a setting would need without a limit is only tried if it does
 * not fit. `details` of the trials are a `struct plim_execution`.
 */
#ifndef PLIM_AUTOTUNE_EXEC_EXECUTOR_H
#define PLIM_AUTOTUNE_EXEC_EXECUTOR_H

#include "autotune/search/runner.h"
#include "execution.h"

struct plim_executor;

/* `options` outlives the executor. `jobs`: trials at once, at least 1. */
enum plim_status plim_executor_create(const struct plim_execution_options *options, int jobs,
                                      struct plim_executor **out,
                                      struct plim_error *err) PLIM_MUST_CHECK;
/* Also ends trials that still run. */
void plim_executor_destroy(struct plim_executor **executor);

/* The first trial, if it is over and fitted; else NULL. */
const struct plim_execution *plim_executor_first(struct plim_executor *executor);

/* A program that compiles takes different memory at its first launch than at later ones, which find the compiled code:
 * tries a setting that fits in both ways, once, and keeps the larger as its trial, which is returned (NULL: there was
 * none). If it then does not fit, every later setting is tried in both ways. Does nothing for other programs, or when
 * there is no time. */
const struct plim_execution *plim_executor_confirm(struct plim_executor *executor, const struct plim_setting *setting);

/* The runner. A program that takes the same memory whatever its batch ends the search with PLIM_INVALID. */
struct plim_runner plim_executor_runner(struct plim_executor *executor);

#endif
