/* The decision for one GPU: search the points, choose, verify, and say what lies beyond. */
#ifndef PLIM_AUTOTUNE_SEARCH_DECIDE_H
#define PLIM_AUTOTUNE_SEARCH_DECIDE_H

#include "advice.h"
#include "ask.h"
#include "candidate.h"
#include "edge.h"
#include "question.h"
#include "space.h"

/* What the next larger micro-batch did. */
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
    size_t searched; /* points before this one were; a waterfall may end before the others */
    struct plim_candidates candidates;
    bool found;
    struct plim_candidate choice;
    struct plim_beyond after_choice; /* the next larger allowed micro-batch */
    bool has_largest;
    struct plim_candidate largest; /* largest micro-batch with the other settings of `choice` */
    struct plim_beyond after_largest;
    /* What the plan had said of the choice and of its point's edge, where there was a plan. */
    bool was_planned;
    double planned_seconds;
    int64_t planned_reserved_bytes, planned_edge;
    /* When nothing fits: what needs least, and how to make it fit. */
    bool has_smallest;
    struct plim_setting smallest;
    int64_t smallest_reserved_bytes; /* what it would need */
    struct plim_sample smallest_sample;
    /* Nothing was found, but not for lack of memory: the smallest settings crashed, hung or were
     * lost, as `smallest_sample` says. */
    bool failed;
    struct plim_advices advices;
    /* PLIM_OK; PLIM_CANCELLED, PLIM_TIMEOUT, PLIM_LOST, PLIM_NODEVICE: the best answer so far */
    enum plim_status ended;
    char ended_why[200]; /* one line */
};

/* What is known before the search starts. Zeroed is nothing. */
struct plim_known {
    /* Where another GPU's edges were, by point of the same space. */
    const struct plim_edge *hints;
    size_t hint_count;
    /* The same question answered on a simulated GPU with the same budget, to be validated on this
     * one (validate.h); NULL: none. */
    const struct plim_decision *plan;
    /* Is the best of every point wanted, and not only the best of all? */
    bool compares;
};

/* Fills the zeroed `decision`. That nothing fits, or that the search had to end early, is an
 * answer; so is a device that went away after something was found out on it. `question` outlives the
 * decision. PLIM_SPEC: no micro-batch leads to the effective batch. */
enum plim_status plim_decide(const struct plim_question *question, const struct plim_known *known,
                             struct plim_asker *asker, struct plim_decision *decision,
                             struct plim_error *err) PLIM_MUST_CHECK;
void plim_decision_finish(struct plim_decision *decision); /* NULL and zeroed are fine */

#endif
