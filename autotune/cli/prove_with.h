/* --prove-with: proves a spec's plan with the user's program. */
#ifndef PLIM_AUTOTUNE_CLI_PROVE_WITH_H
#define PLIM_AUTOTUNE_CLI_PROVE_WITH_H

#include "asked_trials.h"
#include "autotune/decide/prover.h"
#include "autotune/run/spec_question.h"

/* Must not be copied or moved once it is read. */
struct plim_prove_with {
    char *command[4]; /* a shell that runs the request's command */
    struct plim_program program;
    struct plim_asked_trials trials;
    struct plim_proving proving;
};

/* Fills in `out` for the device of this URI; the caller finishes it in any case. PLIM_INVALID: the command lacks a
 * placeholder for an axis that the question varies, or the question cannot be proven by a program. */
enum plim_status plim_prove_with_read(const struct plim_request *request,
                                      const struct plim_spec_question *question, const char *uri,
                                      struct plim_prove_with *out,
                                      struct plim_error *err) PLIM_MUST_CHECK;
void plim_prove_with_finish(struct plim_prove_with *prove_with); /* NULL is allowed */

#endif
