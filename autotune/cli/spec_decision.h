/* The decision about a spec on one device or many, as a report, for plan, tune and env. */
#ifndef PLIM_AUTOTUNE_CLI_SPEC_DECISION_H
#define PLIM_AUTOTUNE_CLI_SPEC_DECISION_H

#include "asked_question.h"
#include "common.h"
#include "kept.h"

/* Too large for the stack. */
struct plim_decide {
    const struct plim_request *request;
    const struct plim_io *io;
    const struct plim_log *log;
    struct plim_asked_question asked;
    struct plim_allowance allowance;
    struct plim_stop stop;
    struct plim_kept kept;
    bool is_silent; /* no progress */
    const struct plim_proving *proving; /* --prove-with; NULL: none */
};

/* Loads the request's spec and makes the question. All arguments must outlive `d`, which the caller finishes in any
 * case. / */
enum plim_status plim_decide_init(struct plim_decide *d, const struct plim_request *request,
                                  const struct plim_io *io, const struct plim_log *log,
                                  struct plim_error *err) PLIM_MUST_CHECK;

void plim_decide_finish(struct plim_decide *d); /* NULL or a zeroed one is allowed */

/* Fills in the store's question about this spec on this GPU; `question` must be zeroed. */
void plim_decide_store_question(const struct plim_decide *d, const struct plim_store_gpu *gpu,
                                struct plim_store_question *question);

/* Plans, and validates the plan on a real GPU. Adds a result for each URI, in order. Proven answers are kept; for a
 * single real GPU a kept answer is used. */
enum plim_status plim_decide_report(struct plim_decide *d, const char *const *uris, size_t count,
                                    struct plim_report *report,
                                    struct plim_error *err) PLIM_MUST_CHECK;

#endif
