/* Effective batch arithmetic: which micro-batches may be used, and with how many micro-steps.
 *
 *     effective batch = micro_batch x accumulation x world          (samples per optimizer step)
 *
 * With a target it is met exactly, so that the micro-batch divides it, unless a tolerance is
 * given; then the nearest accumulation is taken and the deviation is reported. Without a
 * target the accumulation is the given one (1 by default) and every micro-batch is allowed.
 *
 * Schedule. {0: 4, 4: 2, 8: 1} means: from epoch 0 on four micro-steps, from epoch 4 on two,
 * ... With a target, the target is that of the first phase and the others keep their
 * proportion to it (256, 128, 64), each exactly; every phase's accumulation is rewritten for
 * the new micro-batch. Without one the schedule is used as it stands. The phase with most
 * micro-steps stands for the whole: it needs the most memory, and it is what is replayed and
 * ranked.
 */
#ifndef PLIM_AUTOTUNE_ACCUMULATE_H
#define PLIM_AUTOTUNE_ACCUMULATE_H

#include "autotune/base/status.h"
#include "workloads/spec/spec.h"

struct plim_batch_rule {
    const struct plim_spec *spec;         /* outlives the rule */
    int64_t phase_target[PLIM_MAX_PHASES]; /* samples per step of each phase; 0: no target */
    size_t phases;                        /* at least 1 */
    size_t leading;                       /* the phase with most micro-steps */
};

/* What a micro-batch leads to. `accumulation` and `effective` are those of the leading phase. */
struct plim_batch {
    int64_t micro_batch, accumulation, effective;
    int64_t phase_accumulation[PLIM_MAX_PHASES];
};

/* PLIM_SPEC when the target cannot be met by any micro-batch (it is no multiple of the world, or a
 * phase's share of it is no whole number of samples). */
enum plim_status plim_batch_rule_init(struct plim_batch_rule *rule, const struct plim_spec *spec,
                                      struct plim_error *err) PLIM_MUST_CHECK;

/* The target of the leading phase; 0: none. */
int64_t plim_batch_target(const struct plim_batch_rule *rule);

/* May this micro-batch be chosen? Fills `out`; when not, with the nearest accumulation, as it
 * would be if the effective batch might change. A list of micro-batches in the spec is
 * respected. */
bool plim_batch_allowed(const struct plim_batch_rule *rule, int64_t micro_batch,
                        struct plim_batch *out);

/* No larger micro-batch makes sense: the target's share of one GPU, or PLIM_MICRO_BATCH_MAX. A
 * list of micro-batches in the spec only lowers it where nothing else may be run. */
enum { PLIM_MICRO_BATCH_MAX = 1 << 20 };
int64_t plim_batch_limit(const struct plim_batch_rule *rule);

/* The micro-batch that is run in place of this one, whose verdict counts for it: itself, or the
 * nearest below it that a list lets run, or the first that may. */
int64_t plim_batch_tried(const struct plim_batch_rule *rule, int64_t micro_batch);

/* The next larger one that may be run, or 0: that was the limit. */
int64_t plim_batch_after(const struct plim_batch_rule *rule, int64_t micro_batch);

/* The smallest allowed micro-batch greater than `micro_batch`, or 0 when there is none. */
int64_t plim_batch_next(const struct plim_batch_rule *rule, int64_t micro_batch);

/* The largest allowed micro-batch up to `from` that is a multiple of `multiple`, or 0. */
int64_t plim_batch_below(const struct plim_batch_rule *rule, int64_t from, int64_t multiple);

#endif
