/* The user's program according to the command line: what exec and record run, and what they vary. */
#ifndef PLIM_AUTOTUNE_CLI_ASKED_PROGRAM_H
#define PLIM_AUTOTUNE_CLI_ASKED_PROGRAM_H

#include "autotune/exec/program_question.h"
#include "autotune/exec/user_program.h"
#include "request.h"
#include "workloads/spec/spec.h"
#include <limits.h>

/* Do not copy or move it once it is read. */
struct plim_asked_program {
    const struct plim_request *request;
    struct plim_program program;
    struct plim_program_question question;
    bool uses_seq, uses_precision;
    struct plim_spec options; /* only to read the keys that are options of exec too */
    char(*names)[PATH_MAX];   /* names of templates */
};

/* Fills the zeroed `out`; finish it in any case. PLIM_INVALID: placeholders and options
 * do not match, or an option is not understood. */
enum plim_status plim_asked_program_read(const struct plim_request *request,
                                         struct plim_asked_program *out,
                                         struct plim_error *err) PLIM_MUST_CHECK;
void plim_asked_program_finish(struct plim_asked_program *asked); /* NULL and zeroed are fine */

#endif
