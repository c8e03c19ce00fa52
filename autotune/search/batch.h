/* Effective batch arithmetic: which micro-batches may be used, and with how many micro-steps.
 *
 *     effective batch = micro_batch x accumulation x world          (samples per optimizer step)
 *
 * A target effective batch is met exactly, so the micro-batch must divide it, unless a tolerance is given; then the
 * nearest accumulation is used and the deviation is reported. Without a target the accumulation is the given one (1 by
 * default) and every micro-batch is allowed.
 *
 * Schedule. {0: 4, 4: 2, 8: 1} means four micro-steps from epoch 0 on, two from epoch 4 on, and so on. A target is that
 * of the first phase; the other phases keep their ratio to it (256, 128, 64), each exactly, and every phase's
 * accumulation is computed for the micro-batch. Without a target the schedule is used unchanged. The phase with the
 * most micro-steps, the leading phase, represents all: it needs the most memory, and it is replayed and ranked. */
#ifndef PLIM_AUTOTUNE_SEARCH_BATCH_H
#define PLIM_AUTOTUNE_SEARCH_BATCH_H

#include "autotune/base/status.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PLIM_PHASES = 64 };

/* From `epoch` on, an optimizer step has `accumulation` micro-steps. */
struct plim_phase_request {
    int64_t epoch, accumulation;
};

/* The user's request. */
struct plim_batch_request {
    const int64_t *listed;   /* the micro-batches that may be chosen; NULL: all */
    size_t listed_count;     /* 0: all */
    bool only_listed;        /* only listed ones may be run, even to find the edge */
    int64_t first, last;     /* the smallest and the largest that may be run; 0: no limit */
    bool is_unknown;         /* a program whose batch is not known: a trial counts as one sample */
    int64_t world;           /* data-parallel GPUs; at least 1 */
    int64_t effective_batch; /* samples per optimizer step over all GPUs; 0: not given */
    double effective_batch_tolerance; /* as a fraction: 0.02 is 2 %; 0: exact */
    int64_t accumulation;             /* 0: computed from the effective batch, or 1 */
    size_t phase_count;               /* accumulation schedule by epoch; 0: none */
    struct plim_phase_request phases[PLIM_PHASES];
};

struct plim_batch_rule {
    const struct plim_batch_request *request; /* must outlive the rule */
    int64_t phase_target[PLIM_PHASES];        /* samples per step of each phase; 0: no target */
    size_t phases;                            /* at least 1 */
    size_t leading;                           /* the phase with most micro-steps */
};

/* A micro-batch with its accumulation and effective batch, both of the leading phase. */
struct plim_batch {
    int64_t micro_batch, accumulation, effective;
    bool exact; /* every phase has exactly its target, or there is no target */
    int64_t phase_accumulation[PLIM_PHASES];
};

/* Initialises the rule of a request. PLIM_SPEC: no micro-batch can meet the target (it is not a multiple of the number
 * of GPUs, or a phase's part of it is not a whole number of samples). */
enum plim_status plim_batch_rule_init(struct plim_batch_rule *rule,
                                      const struct plim_batch_request *request,
                                      struct plim_error *err) PLIM_MUST_CHECK;

/* Returns the target of the leading phase; 0 if there is none. */
int64_t plim_batch_target(const struct plim_batch_rule *rule);

/* True if this micro-batch may be chosen; a list of micro-batches is respected. Fills in `out` in any case: if it may
 * not be chosen, with the nearest accumulation. */
bool plim_batch_allowed(const struct plim_batch_rule *rule, int64_t micro_batch,
                        struct plim_batch *out);

/* True if there is a target that must be met exactly. */
bool plim_batch_is_exact(const struct plim_batch_rule *rule);

/* Returns the largest micro-batch that makes sense: one GPU's share of the target, or PLIM_MICRO_BATCH_MAX. A list of
 * micro-batches lowers it only if no others may be run. */
enum { PLIM_MICRO_BATCH_MAX = 1 << 20 };
int64_t plim_batch_limit(const struct plim_batch_rule *rule);

/* Returns the micro-batch that is run instead of this one, with a verdict for both: itself, the nearest smaller one of
 * a list, or the first one that may be run. */
int64_t plim_batch_tried(const struct plim_batch_rule *rule, int64_t micro_batch);

/* Returns the next larger micro-batch that may be run; 0 if there is none up to the limit. */
int64_t plim_batch_after(const struct plim_batch_rule *rule, int64_t micro_batch);

/* Returns the smallest allowed micro-batch greater than `micro_batch`, 0 if there is none. */
int64_t plim_batch_next(const struct plim_batch_rule *rule, int64_t micro_batch);

/* Finds the smallest allowed micro-batch. PLIM_SPEC: there is none. */
enum plim_status plim_batch_smallest(const struct plim_batch_rule *rule, int64_t *micro_batch,
                                     struct plim_error *err) PLIM_MUST_CHECK;

/* Returns the largest allowed micro-batch up to `from` that is a multiple of `multiple`, 0 if there is none. */
int64_t plim_batch_below(const struct plim_batch_rule *rule, int64_t from, int64_t multiple);

/* Returns the largest allowed micro-batch up to `from` that keeps the effective batch exactly, 0 if there is none. */
int64_t plim_batch_exact(const struct plim_batch_rule *rule, int64_t from);

#endif
