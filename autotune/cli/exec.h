/* The decision about a program as a report, for env: exec without its output. */
#ifndef PLIM_AUTOTUNE_CLI_EXEC_H
#define PLIM_AUTOTUNE_CLI_EXEC_H

#include "autotune/exec/execution.h"
#include "cli.h"
#include "kept.h"

/* Tries the request's program on the device of this URI, or takes a kept answer. `chosen`: zeroed before; receives
 * the choice's trial, if it was made now; NULL: not wanted. */
enum plim_status plim_exec_report(const struct plim_request *request, const struct plim_io *io,
                                  const struct plim_log *log, const char *uri,
                                  struct plim_report *report, struct plim_execution *chosen,
                                  struct plim_error *err) PLIM_MUST_CHECK;

/* The store's question about the request's program on this GPU, into the zeroed `question`. */
enum plim_status plim_exec_store_question(const struct plim_request *request,
                                          const struct plim_io *io, const struct plim_log *log,
                                          const struct plim_kept *kept,
                                          const struct plim_store_gpu *gpu,
                                          struct plim_store_question *question,
                                          struct plim_error *err) PLIM_MUST_CHECK;

#endif
