/* Which of the settings that fit is the answer.
 *
 * Objective: tokens per second of a whole optimizer step, all its micro-steps and the
 * optimizer included. Differences within 1 % are noise: of the candidates that close to the
 * best the one with most free memory wins. Both rules look at the best only, so the order of
 * the candidates does not matter.
 */
#ifndef PLIM_AUTOTUNE_CHOOSE_H
#define PLIM_AUTOTUNE_CHOOSE_H

#include "accumulate.h"
#include "autotune/base/array.h"
#include "workloads/train/replay.h"

enum plim_objective {
    PLIM_OBJECTIVE_THROUGHPUT,
    PLIM_OBJECTIVE_LONGEST_SEQUENCE, /* then throughput */
    PLIM_OBJECTIVE_LEAST_MEMORY,     /* ties within 1 % go to the faster one */
    PLIM_OBJECTIVE_LARGEST_BATCH,    /* most tokens in a micro-step; time does not matter */
    PLIM_OBJECTIVE_COUNT
};

extern const char *const plim_objective_names[PLIM_OBJECTIVE_COUNT];

#define PLIM_TIE_SHARE 0.01

/* A setting that fits. */
struct plim_candidate {
    struct plim_setting setting; /* with all its micro-steps */
    struct plim_batch batch;
    struct plim_replay replay;   /* of `setting`, or with fewer micro-steps where not verified */
    size_t point;                /* index in the space */
    double step_seconds;         /* of the leading phase */
    double tokens_per_second;    /* of all GPUs; communication between them is not counted */
    bool allowed;                /* keeps the effective batch; only such a one can be chosen */
    bool verified;               /* this very setting was run */
    bool refuted;                /* not with all its micro-steps, or beyond the edge of its point */
};

struct plim_candidates {
    PLIM_ARRAY(struct plim_candidate) list;
};

/* The index of the answer, or -1 when no candidate may be chosen. */
int plim_choose(const struct plim_candidates *candidates, enum plim_objective objective);

/* The candidate with this point and micro-batch, or NULL. Valid until the list grows. */
struct plim_candidate *plim_candidate_find(const struct plim_candidates *candidates, size_t point,
                                           int64_t micro_batch);

#endif
