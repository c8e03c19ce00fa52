/* Trials of a program as the runs of a search (autotune/search/runner.h).
 *
 * Each setting is tried once. While the search waits for one answer, others that it said it may ask
 * for next run beside it. What a setting would need if nothing limited it is only tried where it does
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
/* Ends trials that are not waited for any more. */
void plim_executor_destroy(struct plim_executor **executor);

/* The first trial, where it is over and fitted; NULL where not. */
const struct plim_execution *plim_executor_first(struct plim_executor *executor);

/* A program that compiles takes other memory at its first launch than at those that find what it compiled: tries a
 * setting that fits as both, once, and keeps what takes more as its trial, which is returned (NULL: there was none).
 * Where it does not fit then, each setting that is asked for from then on is tried as both. Other programs are left
 * alone, and so is what there is no time for. */
const struct plim_execution *plim_executor_confirm(struct plim_executor *executor, const struct plim_setting *setting);

/* A program that takes the same memory whatever its batch is ends the search: PLIM_INVALID says so. */
struct plim_runner plim_executor_runner(struct plim_executor *executor);

#endif
