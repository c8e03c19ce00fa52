/* The user's program according to the command line: what exec and record run, and the axes that they vary. */
#ifndef PLIM_AUTOTUNE_CLI_ASKED_PROGRAM_H
#define PLIM_AUTOTUNE_CLI_ASKED_PROGRAM_H

#include "autotune/exec/program_question.h"
#include "autotune/exec/user_program.h"
#include "request.h"
#include "workloads/spec/spec.h"
#include <limits.h>

/* Must not be copied or moved once it is read. */
struct plim_asked_program {
    const struct plim_request *request;
    struct plim_program program;
    struct plim_program_question question;
    bool uses_seq, uses_precision;
    struct plim_spec options; /* only for reading keys of specs that are options of exec too */
    char(*names)[PATH_MAX];   /* paths of templates */
};

/* Fills in the zeroed `out`, which the caller finishes in any case. PLIM_INVALID: placeholders and options do not
 * match, or an option is invalid. */
enum plim_status plim_asked_program_read(const struct plim_request *request,
                                         struct plim_asked_program *out,
                                         struct plim_error *err) PLIM_MUST_CHECK;
void plim_asked_program_finish(struct plim_asked_program *asked); /* NULL or a zeroed one is allowed */

#endif
