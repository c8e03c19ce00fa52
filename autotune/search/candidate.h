/* Candidates for the answer: settings that fit, with their speed. */
#ifndef PLIM_AUTOTUNE_SEARCH_CANDIDATE_H
#define PLIM_AUTOTUNE_SEARCH_CANDIDATE_H

#include "autotune/base/array.h"
#include "batch.h"
#include "setting.h"
#include "trial.h"

/* Rates that differ by less than this fraction are equal within noise. */
#define PLIM_TIE_SHARE 0.01

struct plim_candidate {
    struct plim_setting setting; /* with all its micro-steps */
    struct plim_batch batch;
    struct plim_trial trial;  /* of `setting`, or with fewer micro-steps if not verified */
    size_t point;             /* index in the space */
    int64_t seq;              /* tokens of a sample; 1 without an axis of sequence lengths */
    double step_seconds;      /* of the leading phase */
    double tokens_per_second; /* of all GPUs */
    bool allowed;             /* it keeps the effective batch; others cannot be chosen */
    bool verified;            /* this setting was run with all its micro-steps */
    bool refuted;             /* it does not fit with all its micro-steps, or is beyond the edge of its point */
};

struct plim_candidates {
    PLIM_ARRAY(struct plim_candidate) list;
};

/* True if the candidate may be the answer. */
bool plim_candidate_may_win(const struct plim_candidate *candidate);

/* Returns the candidate with this point and micro-batch, or NULL. Valid until the list grows. */
struct plim_candidate *plim_candidate_find(const struct plim_candidates *candidates, size_t point,
                                           int64_t micro_batch);

/* Returns the highest tokens per second of the candidates that may win; 0 if none was timed. */
double plim_candidates_best_rate(const struct plim_candidates *candidates);

#endif
