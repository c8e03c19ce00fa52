/* The objectives: a table that decides which of the settings that fit is the answer.
 *
 * Each objective assigns a number to a candidate, its worth; more is better. Candidates whose worth is within tie_share
 * of the best are tied; among them compare_ties decides, mostly for the one with the most free memory. Candidates are
 * compared only with the best, so their order does not matter. */
#ifndef PLIM_AUTOTUNE_SEARCH_OBJECTIVE_H
#define PLIM_AUTOTUNE_SEARCH_OBJECTIVE_H

#include "candidate.h"

#define PLIM_OBJECTIVE_MAP(X)                                                                      \
    X(THROUGHPUT, "throughput")             /* tokens per second of a whole optimizer step */      \
    X(BALANCED, "balanced")                 /* within 10 % of the fastest, the least memory */      \
    X(LONGEST_SEQUENCE, "longest-sequence") /* then throughput */                                  \
    X(LEAST_MEMORY, "least-memory")         /* ties within 1 % go to the faster one */             \
    X(LARGEST_BATCH, "largest-batch")       /* most tokens in a micro-step, regardless of time */

enum plim_objective {
#define PLIM_OBJECTIVE_ENUM(name, text) PLIM_OBJECTIVE_##name,
    PLIM_OBJECTIVE_MAP(PLIM_OBJECTIVE_ENUM)
#undef PLIM_OBJECTIVE_ENUM
        PLIM_OBJECTIVE_COUNT
};

struct plim_search;

struct plim_objective_row {
    const char *name;
    double (*worth)(const struct plim_candidate *candidate);
    double tie_share;   /* fraction of the best worth */
    bool by_time;       /* the worth is a rate, so candidates must be timed */
    enum plim_objective untimed; /* the objective that is used instead if times are not known */
    bool wants_longest; /* the longest sequence is found first, and only its candidates count */
    /* Breaks a tie: returns a negative number if `a` wins, positive if `b` does, 0 if they are equal. */
    int (*compare_ties)(const struct plim_candidate *a, const struct plim_candidate *b);
    /* Searches the space: adds candidates for the points that can win (search.h). */
    enum plim_status (*search)(struct plim_search *search);
};

extern const struct plim_objective_row plim_objectives[PLIM_OBJECTIVE_COUNT];

/* Returns the index of the best candidate, or -1 if none may be chosen. */
int plim_choose(const struct plim_candidates *candidates, enum plim_objective objective);

/* Same among the candidates of one point. */
int plim_choose_of_point(const struct plim_candidates *candidates, enum plim_objective objective,
                         size_t point);

#endif
