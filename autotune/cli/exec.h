/* The decision of exec about a program as a report, for other commands. */
#ifndef PLIM_AUTOTUNE_CLI_EXEC_H
#define PLIM_AUTOTUNE_CLI_EXEC_H

#include "autotune/exec/execution.h"
#include "cli.h"
#include "kept.h"

/* Tries the request's program on the device of this URI, or takes a kept answer. `chosen`, zeroed, receives the trial
 * of the choice if it was made now; may be NULL. */
enum plim_status plim_exec_report(const struct plim_request *request, const struct plim_io *io,
                                  const struct plim_log *log, const char *uri,
                                  struct plim_report *report, struct plim_execution *chosen,
                                  struct plim_error *err) PLIM_MUST_CHECK;

/* Fills in the store's question about the request's program on this GPU; `question` must be zeroed. */
enum plim_status plim_exec_store_question(const struct plim_request *request,
                                          const struct plim_io *io, const struct plim_log *log,
                                          const struct plim_kept *kept,
                                          const struct plim_store_gpu *gpu,
                                          struct plim_store_question *question,
                                          struct plim_error *err) PLIM_MUST_CHECK;

#endif
