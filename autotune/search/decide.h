/* The decision for one GPU: searches the points, chooses, verifies, and tries the next larger micro-batches. */
#ifndef PLIM_AUTOTUNE_SEARCH_DECIDE_H
#define PLIM_AUTOTUNE_SEARCH_DECIDE_H

#include "advice.h"
#include "probe.h"
#include "candidate.h"
#include "edge.h"
#include "question.h"
#include "space.h"

/* The result of the next larger micro-batch. */
struct plim_beyond {
    int64_t micro_batch; /* 0: there is none */
    bool tried;
    enum plim_status verdict;
    struct plim_trial trial;
    double tokens_per_second; /* 0: it did not fit */
};

/* The `details` of its trials are owned by the prober's cache. */
struct plim_decision {
    const struct plim_question *question;
    struct plim_batch_rule rule;
    struct plim_space space;
    PLIM_ARRAY(struct plim_edge) edges; /* by point */
    size_t searched; /* number of points searched, from the first; a waterfall may end early */
    struct plim_candidates candidates;
    bool found;
    struct plim_candidate choice;
    struct plim_beyond after_choice; /* the next larger allowed micro-batch */
    bool has_largest;
    struct plim_candidate largest; /* the largest micro-batch at the point of `choice` */
    struct plim_beyond after_largest;
    /* The plan's values for the choice and for the edge of its point. */
    bool was_planned;
    double planned_seconds;
    int64_t planned_reserved_bytes, planned_edge;
    /* If nothing fits: the setting that needs the least memory; `advices` says how to make it fit. */
    bool has_smallest;
    struct plim_setting smallest;
    int64_t smallest_reserved_bytes; /* the memory that it needs */
    struct plim_sample smallest_sample;
    /* Nothing was found for a reason other than memory: a smallest setting crashed, hung or lost the device; see
     * `smallest_sample`. */
    bool failed;
    struct plim_advices advices;
    /* PLIM_OK; PLIM_CANCELLED, PLIM_TIMEOUT, PLIM_LOST, PLIM_NODEVICE: the search ended early, with the best answer so
     * far */
    enum plim_status ended;
    char ended_why[200]; /* one line */
};

/* Knowledge before the search starts. Zeroed: none. */
struct plim_known {
    /* The edges on another GPU, by point of the same space. */
    const struct plim_edge *hints;
    size_t hint_count;
    /* The decision on a simulated GPU with the same budget, to be validated on this one (validate.h); NULL: none. */
    const struct plim_decision *plan;
    /* Find the best setting of every point, not only the best overall. */
    bool compares;
};

/* Fills in the zeroed `decision`. It is no error if nothing fits, if the search has to end early, or if the device is
 * lost after first results. `question` must outlive the decision; `known` may be NULL. PLIM_SPEC: no micro-batch leads
 * to the effective batch. */
enum plim_status plim_decide(const struct plim_question *question, const struct plim_known *known,
                             struct plim_prober *prober, struct plim_decision *decision,
                             struct plim_error *err) PLIM_MUST_CHECK;
void plim_decision_finish(struct plim_decision *decision); /* NULL or a zeroed decision is allowed */

#endif
