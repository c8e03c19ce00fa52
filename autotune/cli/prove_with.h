/* --prove-with: a spec's plan, proven with a program of the user's. */
#ifndef PLIM_AUTOTUNE_CLI_PROVE_WITH_H
#define PLIM_AUTOTUNE_CLI_PROVE_WITH_H

#include "asked_trials.h"
#include "autotune/decide/prover.h"
#include "autotune/run/spec_question.h"

/* Do not copy or move it once it is read. */
struct plim_prove_with {
    char *command[4]; /* of a shell, that runs the request's */
    struct plim_program program;
    struct plim_asked_trials trials;
    struct plim_proving proving;
};

/* Fills `out`, which is to be finished in any case, for the device of this URI. PLIM_INVALID: the command
 * cannot be told what the question varies, or the question is none for it. */
enum plim_status plim_prove_with_read(const struct plim_request *request,
                                      const struct plim_spec_question *question, const char *uri,
                                      struct plim_prove_with *out,
                                      struct plim_error *err) PLIM_MUST_CHECK;
void plim_prove_with_finish(struct plim_prove_with *prove_with); /* NULL is fine */

#endif
