/* A question to the search: which settings there are, how micro-batches and micro-steps make a batch, and what
 * "best" means. Made from a spec (run/spec_question.h) or a user's program (exec/program_question.h); the same for
 * every GPU. Everything it points to outlives it.
 */
#ifndef PLIM_AUTOTUNE_SEARCH_QUESTION_H
#define PLIM_AUTOTUNE_SEARCH_QUESTION_H

#include "batch.h"
#include "objective.h"
#include "setting.h"

/* For advice: another value of one axis that may make a setting fit. */
struct plim_change {
    size_t axis;
    uint64_t from; /* bit v: it applies where the axis has the value v (of 0 to 63) */
    int64_t to;
    bool combines;  /* may be part of a combination of changes */
    char text[112]; /* "checkpointing full" */
};

enum { PLIM_CHANGES = 16, PLIM_SPREADS = 4 };

/* For advice: spreading the state over more GPUs; the axes of sharding and of the number of GPUs change together. */
struct plim_spread {
    size_t sharding, world;          /* axes */
    size_t count;                    /* 0: nothing is advised */
    int64_t shardings[PLIM_SPREADS]; /* the first one that can run is advised */
    int64_t reserve_bytes;           /* memory that a GPU needs in addition once it trains with others */
};

struct plim_question {
    struct plim_axes axes; /* in the order of preference: the first varies slowest */
    struct plim_batch_request batch;
    enum plim_objective objective;
    /* No sequence length was given: the one value of its axis is a default, and an objective that
     * wants the longest may go up to seq_most. */
    bool seq_by_default;
    int64_t seq_most;
    bool can_advise;     /* should advice be given when nothing fits? */
    size_t change_count; /* ordered: the changes that cost the user least come first */
    struct plim_change changes[PLIM_CHANGES];
    struct plim_spread spread;
};

#endif
