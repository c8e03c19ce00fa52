/* A spec's question, put to one device or to many.
 *
 * Many GPUs share work: those of one class share runs (search/cache.h), all learn from the first
 * where to look for their edges (the lines of search/edge.h). Classes are searched in parallel.
 * What a GPU shares never changes its answer or what is listed as tried, so the report does
 * not depend on who was faster.
 */
#ifndef PLIM_AUTOTUNE_DECIDE_FLEET_H
#define PLIM_AUTOTUNE_DECIDE_FLEET_H

#include "prover.h"
#include "autotune/run/run_device.h"
#include "reports/result.h"

struct plim_fleet {
    const struct plim_spec_question *question;
    const struct plim_allowance *allowance;
    const struct plim_stop *stop;
    const struct plim_log *log; /* NULL: notes are dropped */
    double timing_seconds;      /* on a real GPU: for the repeats of one setting */
    const struct plim_proving *proving; /* on one device: the user's program runs what was planned */
    const struct plim_ring *ring; /* on one real GPU: those of its kind here; NULL: nothing is known */
    bool with_timeline;         /* of a step of the choice; where nothing fits, of what needs least */
    /* Told before every run, from any thread, and after every device; may be NULL. */
    void (*on_run)(void *user);
    void (*on_device)(void *user);
    void *user;
};

/* Appends one result per device URI, in their order. That nothing fits on a GPU, or that the
 * time ran out, is a result. */
enum plim_status plim_fleet_tune(const struct plim_fleet *fleet, const char *const *uris,
                                 size_t count, struct plim_report *report,
                                 struct plim_error *err) PLIM_MUST_CHECK;

/* Adds a step of `setting` on a device that is open to a result, whose limit is known. */
enum plim_status plim_fleet_timeline(struct plim_run_device *device,
                                     const struct plim_setting *setting, bool fits,
                                     struct plim_result *result,
                                     struct plim_error *err) PLIM_MUST_CHECK;

/* One setting on one device that is open: fills the zeroed result. PLIM_SPEC, with the reason, for a
 * setting that cannot run at all. */
enum plim_status plim_fleet_inspect(struct plim_run_device *device,
                                    const struct plim_setting *setting, bool with_timeline,
                                    struct plim_result *result,
                                    struct plim_error *err) PLIM_MUST_CHECK;

#endif
