/* Answers a spec's question for one device or for many.
 *
 * GPUs of one class share runs (search/cache.h), and all start from the edges of the first (the lines of
 * search/edge.h). Classes are searched in parallel. Sharing changes neither the answer for a GPU nor the list of what
 * was tried, so the report does not depend on which search was faster. */
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
    double timing_seconds;      /* on a real GPU: time for the repeats of one setting */
    const struct plim_proving *proving; /* for a single device: the user's program proves the plan */
    const struct plim_ring *ring; /* for a single real GPU: the all-reduce among GPUs of its kind; NULL: not known */
    bool with_timeline;         /* add the timeline of a step of the choice; if nothing fits, of the smallest setting */
    /* Called before every run, from any thread, and after every device; may be NULL. */
    void (*on_run)(void *user);
    void (*on_device)(void *user);
    void *user;
};

/* Appends one result per device URI, in their order. That nothing fits on a GPU, or that time ran out, is a result. */
enum plim_status plim_fleet_tune(const struct plim_fleet *fleet, const char *const *uris,
                                 size_t count, struct plim_report *report,
                                 struct plim_error *err) PLIM_MUST_CHECK;

/* Adds the timeline of a step of `setting` on an open device to a result whose limit is set. */
enum plim_status plim_fleet_timeline(struct plim_run_device *device,
                                     const struct plim_setting *setting, bool fits,
                                     struct plim_result *result,
                                     struct plim_error *err) PLIM_MUST_CHECK;

/* Inspects one setting on an open device and fills in the zeroed result. PLIM_SPEC: the setting cannot run at all;
 * `err` has the reason. */
enum plim_status plim_fleet_inspect(struct plim_run_device *device,
                                    const struct plim_setting *setting, bool with_timeline,
                                    struct plim_result *result,
                                    struct plim_error *err) PLIM_MUST_CHECK;

#endif
