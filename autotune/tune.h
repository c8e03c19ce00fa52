/* The decision for one card: search every point, choose, prove, and say why.
 *
 * Of many points most can be left out early. Each is first timed at a micro-batch that surely
 * fits, which bounds its rate at the edge; the one with the highest bound is searched through,
 * and of the others only those whose bound is not below the best rate.
 */
#ifndef PLIM_AUTOTUNE_TUNE_H
#define PLIM_AUTOTUNE_TUNE_H

#include "advice.h"
#include "choose.h"
#include "rank.h"
#include "search.h"

struct plim_decision;

struct plim_tuning {
    const struct plim_spec *spec;
    enum plim_objective objective;
    struct plim_prober *prober;
    /* Where another card's edges were, by point of the same space; NULL or empty: not known. */
    const struct plim_edge *hints;
    size_t hint_count;
    /* The same question answered on a simulated card with the same budget, to be proven on this one
     * (confirm.h); NULL: none. */
    const struct plim_decision *plan;
};

/* What the next larger micro-batch did. */
struct plim_beyond {
    int64_t micro_batch; /* 0: there is none */
    bool tried;
    enum plim_status verdict;
    struct plim_replay replay;
    double tokens_per_second; /* 0: did not fit */
};

struct plim_decision {
    enum plim_objective objective;
    struct plim_batch_rule rule;
    struct plim_space space;
    PLIM_ARRAY(struct plim_edge) edges; /* by point */
    struct plim_candidates candidates;
    bool found;
    struct plim_candidate choice;
    struct plim_beyond after_choice;   /* the next larger allowed micro-batch */
    bool has_largest;
    struct plim_candidate largest;     /* largest micro-batch with the other settings of `choice` */
    struct plim_beyond after_largest;
    /* What the plan had said of the choice and of its point's edge, where there was a plan. */
    bool was_planned;
    double planned_seconds;
    int64_t planned_reserved_bytes, planned_edge;
    /* When nothing fits: what needs least, and how to make it fit. */
    bool has_smallest;
    struct plim_setting smallest;
    int64_t smallest_reserved_bytes;   /* what it would need */
    struct plim_sample smallest_sample;
    /* Nothing was found, but not for lack of memory: the smallest settings crashed, hung or were
     * lost, as `smallest_sample` says. */
    bool failed;
    struct plim_advices advices;
    /* PLIM_OK; PLIM_CANCELLED, PLIM_TIMEOUT, PLIM_LOST, PLIM_NODEVICE: the best answer so far */
    enum plim_status ended;
    char ended_why[200]; /* one line */
};

/* Fills the zeroed `decision`. That nothing fits, or that the search had to end early, is an
 * answer; so is a device that went away after something was found out on it. */
enum plim_status plim_tune(const struct plim_tuning *tuning, struct plim_decision *decision,
                           struct plim_error *err) PLIM_MUST_CHECK;
void plim_decision_finish(struct plim_decision *decision); /* NULL and zeroed are fine */

#endif
