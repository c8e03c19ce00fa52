/* The objectives: one table that decides which of the settings that fit is the answer.
 *
 * Each objective gives a candidate one number, its worth; more is better. Candidates
 * whose worth is within tie_share of the best are equal, and of those the one with most free memory wins
 * (or the faster one, if the worth is memory). Both rules compare with the best only, so the
 * order of the candidates does not matter.
 */
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
    double tie_share;   /* of the best worth */
    bool by_time;       /* the worth is a rate: candidates have to be timed */
    enum plim_objective untimed; /* the objective that replaces it if no times are known */
    bool wants_longest; /* first finds the longest sequence; only its candidates count */
    /* Breaks a tie: negative when `a` wins, positive when `b` does, 0 when they are equal. */
    int (*compare_ties)(const struct plim_candidate *a, const struct plim_candidate *b);
    /* Searches the space: creates candidates for the points that can win (search.h). */
    enum plim_status (*search)(struct plim_search *search);
};

extern const struct plim_objective_row plim_objectives[PLIM_OBJECTIVE_COUNT];

/* The index of the answer, or -1 when no candidate may be chosen. */
int plim_choose(const struct plim_candidates *candidates, enum plim_objective objective);

/* The same among the candidates of one point. */
int plim_choose_of_point(const struct plim_candidates *candidates, enum plim_objective objective,
                         size_t point);

#endif
