/* The decision for one GPU: search the points, choose, verify, and try the next larger micro-batches. */
#ifndef PLIM_AUTOTUNE_SEARCH_DECIDE_H
#define PLIM_AUTOTUNE_SEARCH_DECIDE_H

#include "advice.h"
#include "ask.h"
#include "candidate.h"
#include "edge.h"
#include "question.h"
#include "space.h"

/* The outcome of the next larger micro-batch. */
struct plim_beyond {
    int64_t micro_batch; /* 0: there is none */
    bool tried;
    enum plim_status verdict;
    struct plim_trial trial;
    double tokens_per_second; /* 0: did not fit */
};

/* `details` of its trials live as long as the asker's cache. */
struct plim_decision {
    const struct plim_question *question;
    struct plim_batch_rule rule;
    struct plim_space space;
    PLIM_ARRAY(struct plim_edge) edges; /* by point */
    size_t searched; /* how many points were searched, from the first; a waterfall may end early */
    struct plim_candidates candidates;
    bool found;
    struct plim_candidate choice;
    struct plim_beyond after_choice; /* the next larger allowed micro-batch */
    bool has_largest;
    struct plim_candidate largest; /* largest micro-batch with the other settings of `choice` */
    struct plim_beyond after_largest;
    /* If there was a plan: its values for the choice and for the edge of its point. */
    bool was_planned;
    double planned_seconds;
    int64_t planned_reserved_bytes, planned_edge;
    /* When nothing fits: the setting that needs least, and how to make it fit. */
    bool has_smallest;
    struct plim_setting smallest;
    int64_t smallest_reserved_bytes; /* what it would need */
    struct plim_sample smallest_sample;
    /* Nothing was found for another reason than memory: the smallest settings crashed, hung or lost the
     * device; see `smallest_sample`. */
    bool failed;
    struct plim_advices advices;
    /* PLIM_OK; PLIM_CANCELLED, PLIM_TIMEOUT, PLIM_LOST, PLIM_NODEVICE: the best answer so far */
    enum plim_status ended;
    char ended_why[200]; /* one line */
};

/* What is known before the search starts. Zeroed: nothing. */
struct plim_known {
    /* Where another GPU's edges were, by point of the same space. */
    const struct plim_edge *hints;
    size_t hint_count;
    /* The same question answered on a simulated GPU with the same budget, to be validated on this
     * one (validate.h); NULL: none. */
    const struct plim_decision *plan;
    /* Is the best setting of every point wanted, not only the best overall? */
    bool compares;
};

/* Fills the zeroed `decision`. It is also an answer that nothing fits, that the search had to end early, or
 * that the device was lost after first results. `question` outlives the
 * decision. PLIM_SPEC: no micro-batch leads to the effective batch. */
enum plim_status plim_decide(const struct plim_question *question, const struct plim_known *known,
                             struct plim_asker *asker, struct plim_decision *decision,
                             struct plim_error *err) PLIM_MUST_CHECK;
void plim_decision_finish(struct plim_decision *decision); /* NULL and zeroed are fine */

#endif
