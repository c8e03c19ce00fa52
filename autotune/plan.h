/* The decision on one card or on many.
 *
 * Many cards share work: those of one class share replays (memo.h), all learn from the first
 * where to look for their edges (the lines of search.h). Classes are searched in parallel.
 * What a card shares never changes its answer or what is listed as tried, so the report does
 * not depend on who was faster.
 */
#ifndef PLIM_AUTOTUNE_PLAN_H
#define PLIM_AUTOTUNE_PLAN_H

#include "card.h"
#include "choose.h"
#include "stop.h"

struct plim_plan {
    const struct plim_spec *spec;
    enum plim_objective objective;
    const struct plim_allowance *allowance;
    const struct plim_stop *stop;
    const struct plim_log *log;   /* NULL: nobody listens */
    double timing_seconds;        /* on a real card: for the repeats of one setting */
    /* Told before every replay, from any thread, and after every card; may be NULL. */
    void (*on_run)(void *user);
    void (*on_card)(void *user);
    void *user;
};

/* Appends one result per device URI, in their order. That nothing fits on a card, or that the
 * time ran out, is a result. */
enum plim_status plim_plan_run(const struct plim_plan *plan, const char *const *uris, size_t count,
                               struct plim_report *report, struct plim_error *err) PLIM_MUST_CHECK;

#endif
