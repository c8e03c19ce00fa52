/* A question to the search: the settings, how micro-batches and micro-steps make a batch, and the objective. Made from
 * a spec (run/spec_question.h), a recording or a user's program (exec/program_question.h); the same for every GPU. All
 * its pointers must outlive it. */
#ifndef PLIM_AUTOTUNE_SEARCH_QUESTION_H
#define PLIM_AUTOTUNE_SEARCH_QUESTION_H

#include "batch.h"
#include "objective.h"
#include "setting.h"

/* For advice: another value of one axis, with which a setting may fit. */
struct plim_change {
    size_t axis;
    uint64_t from; /* bit v: it applies if the axis has the value v (0 to 63) */
    int64_t to;
    bool combines;  /* it may be part of a combination of changes */
    char text[112]; /* "checkpointing full" */
};

enum { PLIM_CHANGES = 16, PLIM_SPREADS = 4 };

/* For advice: sharding the state over more GPUs. The axes of sharding and of the number of GPUs change together. */
struct plim_spread {
    size_t sharding, world;          /* axes */
    size_t count;                    /* of shardings; 0: nothing is advised */
    int64_t shardings[PLIM_SPREADS]; /* the first that can run is advised */
    int64_t reserve_bytes;           /* additional memory of a GPU that trains with others */
};

struct plim_question {
    struct plim_axes axes; /* in order of preference: the first varies slowest */
    struct plim_batch_request batch;
    enum plim_objective objective;
    /* No sequence length was given: the only value of its axis is a default, and an objective that wants the longest
     * sequence may use up to seq_most tokens. */
    bool seq_by_default;
    int64_t seq_most;
    bool can_advise;     /* give advice if nothing fits */
    size_t change_count; /* the least intrusive changes come first */
    struct plim_change changes[PLIM_CHANGES];
    struct plim_spread spread;
};

#endif
