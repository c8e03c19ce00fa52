/* What is asked: which settings there are, how micro-batches and micro-steps make a batch, and what
 * "best" means. Made of a spec (run/spec_question.h) or of a user's program (decide/black_box.h); the same for
 * every GPU. Everything it points to outlives it.
 */
#ifndef PLIM_AUTOTUNE_SEARCH_QUESTION_H
#define PLIM_AUTOTUNE_SEARCH_QUESTION_H

#include "batch.h"
#include "objective.h"
#include "setting.h"

/* Another value of one axis that may make a setting fit, for advice. */
struct plim_change {
    size_t axis;
    uint64_t from; /* bit v: it applies where the axis has the value v (of 0 to 63) */
    int64_t to;
    bool combines;  /* may be part of a combination of changes */
    char text[112]; /* "checkpointing full" */
};

enum { PLIM_CHANGES = 16, PLIM_SPREADS = 4 };

/* Sharing the work among more GPUs: the axis of shardings and that of their number change together. */
struct plim_spread {
    size_t sharding, world;          /* axes */
    size_t count;                    /* 0: nothing is advised */
    int64_t shardings[PLIM_SPREADS]; /* the first that can run is advised */
    int64_t reserve_bytes;           /* what a GPU that trains alone has to give up for the others */
};

struct plim_question {
    struct plim_axes axes; /* the first varies slowest among equals: the order of preference */
    struct plim_batch_request batch;
    enum plim_objective objective;
    /* No sequence length was given: the one value of its axis is a default, and an objective that
     * wants the longest may go up to seq_most. */
    bool seq_by_default;
    int64_t seq_most;
    bool can_advise;     /* is it worth saying what would make it fit? */
    size_t change_count; /* in the order of how little they ask of the user */
    struct plim_change changes[PLIM_CHANGES];
    struct plim_spread spread;
};

#endif
