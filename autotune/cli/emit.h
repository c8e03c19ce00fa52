/* Writes an answer in the format of a framework (reports/configs/emission.h) instead of a report. */
#ifndef PLIM_AUTOTUNE_CLI_EMIT_H
#define PLIM_AUTOTUNE_CLI_EMIT_H

#include "cli.h"
#include "options.h"
#include "reports/result.h"

/* Checks that --emit names a known format, and that there is a single device. To be called before a long search;
 * PLIM_OK without --emit. */
enum plim_status plim_emit_check(const struct plim_request *request,
                                 struct plim_error *err) PLIM_MUST_CHECK;

/* Makes the text of --emit for a choice of `result`, which the caller frees. Notes on io->err list what it omits. */
enum plim_status plim_emit_text(const struct plim_request *request, const struct plim_io *io,
                                const struct plim_result *result,
                                const struct plim_result_choice *choice, char **text,
                                struct plim_error *err) PLIM_MUST_CHECK;

/* Writes that text for the result's choice to io->out. */
enum plim_status plim_emit_result(const struct plim_request *request, const struct plim_io *io,
                                  const struct plim_result *result,
                                  struct plim_error *err) PLIM_MUST_CHECK;

#endif
