/* An answer in a framework's own words (reports/configs/emission.h), in the place of a report. */
#ifndef PLIM_AUTOTUNE_CLI_EMIT_H
#define PLIM_AUTOTUNE_CLI_EMIT_H

#include "cli.h"
#include "options.h"
#include "reports/result.h"

/* Is --emit a form that is known, for one device? Asked before a long search; without --emit yes. */
enum plim_status plim_emit_check(const struct plim_request *request,
                                 struct plim_error *err) PLIM_MUST_CHECK;

/* The text of --emit for a choice of `result`, malloc'd; what it leaves out is noted on io->err. */
enum plim_status plim_emit_text(const struct plim_request *request, const struct plim_io *io,
                                const struct plim_result *result,
                                const struct plim_result_choice *choice, char **text,
                                struct plim_error *err) PLIM_MUST_CHECK;

/* The same, written to io->out. */
enum plim_status plim_emit_result(const struct plim_request *request, const struct plim_io *io,
                                  const struct plim_result *result,
                                  struct plim_error *err) PLIM_MUST_CHECK;

#endif
