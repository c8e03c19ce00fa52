/* Effective batch arithmetic: which micro-batches may be used, and with how many micro-steps.
 *
 *     effective batch = micro_batch x accumulation x world          (samples per optimizer step)
 *
 * A target is met exactly, so that the micro-batch divides it, unless a tolerance is
 * given; then the nearest accumulation is taken and the deviation is reported. Without a
 * target the accumulation is the given one (1 by default) and every micro-batch is allowed.
 *
 * Schedule. {0: 4, 4: 2, 8: 1} means: from epoch 0 on four micro-steps, from epoch 4 on two,
 * ... A target is that of the first phase, and the other phases keep their
 * proportion to it (256, 128, 64), each exactly; every phase's accumulation is recomputed for
 * the new micro-batch. Without a target the schedule is used unchanged. The phase with most
 * micro-steps represents all: it needs the most memory, and it is the one that is replayed and
 * ranked.
 */
#ifndef PLIM_AUTOTUNE_SEARCH_BATCH_H
#define PLIM_AUTOTUNE_SEARCH_BATCH_H

#include "autotune/base/status.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PLIM_PHASES = 64 };

/* From `epoch` on, `accumulation` micro-steps make an optimizer step. */
struct plim_phase_request {
    int64_t epoch, accumulation;
};

/* What was asked for. */
struct plim_batch_request {
    const int64_t *listed;   /* the micro-batches that may be chosen; NULL: all */
    size_t listed_count;     /* 0: all */
    bool only_listed;        /* only those may be run, even to find the edge */
    int64_t first, last;     /* the smallest and the largest that may be run; 0: no limit */
    bool is_unknown;         /* a program that does not say its batch: trials count as one sample */
    int64_t world;           /* data-parallel GPUs; at least 1 */
    int64_t effective_batch; /* samples per optimizer step over all GPUs; 0: not given */
    double effective_batch_tolerance; /* share: 0.02 is 2 %; 0: exact */
    int64_t accumulation;             /* fixed; 0: follows from the effective batch, or is 1 */
    size_t phase_count;               /* accumulation schedule by epoch; 0: none */
    struct plim_phase_request phases[PLIM_PHASES];
};

struct plim_batch_rule {
    const struct plim_batch_request *request; /* outlives the rule */
    int64_t phase_target[PLIM_PHASES];        /* samples per step of each phase; 0: no target */
    size_t phases;                            /* at least 1 */
    size_t leading;                           /* the phase with most micro-steps */
};

/* A micro-batch with what follows from it. `accumulation` and `effective` are those of the leading phase. */
struct plim_batch {
    int64_t micro_batch, accumulation, effective;
    bool exact; /* every phase has exactly its effective batch, or none was asked for */
    int64_t phase_accumulation[PLIM_PHASES];
};

/* PLIM_SPEC when the target cannot be met by any micro-batch (it is not a multiple of the world, or a
 * phase's share of it is not a whole number of samples). */
enum plim_status plim_batch_rule_init(struct plim_batch_rule *rule,
                                      const struct plim_batch_request *request,
                                      struct plim_error *err) PLIM_MUST_CHECK;

/* The target of the leading phase; 0: none. */
int64_t plim_batch_target(const struct plim_batch_rule *rule);

/* May this micro-batch be chosen? A list of micro-batches is respected. Fills `out`; if it may not, with
 * the nearest accumulation, as if the effective batch could change. */
bool plim_batch_allowed(const struct plim_batch_rule *rule, int64_t micro_batch,
                        struct plim_batch *out);

/* May only micro-batches be chosen that keep the effective batch exactly? */
bool plim_batch_is_exact(const struct plim_batch_rule *rule);

/* The largest micro-batch that makes sense: one GPU's share of the target, or PLIM_MICRO_BATCH_MAX. A
 * list of micro-batches lowers it only if nothing else may be run. */
enum { PLIM_MICRO_BATCH_MAX = 1 << 20 };
int64_t plim_batch_limit(const struct plim_batch_rule *rule);

/* The micro-batch that is run instead of this one, and whose verdict counts for it: itself, or the
 * nearest smaller one that a list allows, or the first one allowed. */
int64_t plim_batch_tried(const struct plim_batch_rule *rule, int64_t micro_batch);

/* The next larger micro-batch that may be run; 0: this was the limit. */
int64_t plim_batch_after(const struct plim_batch_rule *rule, int64_t micro_batch);

/* The smallest allowed micro-batch greater than `micro_batch`, or 0 when there is none. */
int64_t plim_batch_next(const struct plim_batch_rule *rule, int64_t micro_batch);

/* The smallest allowed micro-batch of all. PLIM_SPEC: there is none. */
enum plim_status plim_batch_smallest(const struct plim_batch_rule *rule, int64_t *micro_batch,
                                     struct plim_error *err) PLIM_MUST_CHECK;

/* The largest allowed micro-batch up to `from` that is a multiple of `multiple`, or 0. */
int64_t plim_batch_below(const struct plim_batch_rule *rule, int64_t from, int64_t multiple);

/* The largest allowed micro-batch up to `from` that keeps the effective batch exactly, or 0. */
int64_t plim_batch_exact(const struct plim_batch_rule *rule, int64_t from);

#endif
