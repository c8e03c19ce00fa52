/* Activation checkpointing: torch.utils.checkpoint, with use_reentrant=False, and with True.
 *
 * A region run under checkpoint_run() saves nothing for backward but its input: every tensor that
 * a node would save is replaced by a holder (a number). When the first of them is asked for, the
 * region runs once more from its input, with gradients enabled, and what it saves goes to the
 * holders in the same order; it stops as soon as the last one is filled (early stop), so work
 * behind the last saved tensor is not repeated. A tensor leaves its holder when it is used.
 *
 * The input is kept until the region's last node has run.
 *
 * A region run under checkpoint_run_reentrant() runs without gradients first. It is one node, which has its input
 * saved; in backward the region runs once more, whole, and a backward of its own goes through it. So what it was given
 * as gradient, its result and what it saves are there together.
 */
#ifndef PLIM_ENGINE_CHECKPOINT_H
#define PLIM_ENGINE_CHECKPOINT_H

#include "engine.h"

/* A region: computes from `x` (lent) with whatever `context` holds; returns a floating tensor. */
typedef struct tensor *(*checkpoint_fn)(struct engine *e, const void *context, struct tensor *x);

enum { CHECKPOINT_HELD = 13 };

/* What the regions of one forward hold together: a mapping among their keyword arguments, whose values, named or NULL,
 * each of them may rebind, in its second run, too. They go with the last that holds them. */
enum { CHECKPOINT_VALUES = 4 };
struct checkpoint_mapping {
    int32_t refs;
    struct tensor *values[CHECKPOINT_VALUES];
};
/* An empty one, held by the caller; NULL: the engine is halted. */
struct checkpoint_mapping *checkpoint_mapping_create(struct engine *e);
void checkpoint_mapping_drop(struct engine *e, struct checkpoint_mapping *m); /* NULL: nothing */

/* Runs the region. `context` (of `size` bytes) is copied: it is needed again in backward; so are
 * the `held` tensors (NULL ends the list early) and a mapping (NULL: none), what Python's keyword arguments hold.
 * Consumes `x` if it floats. */
struct tensor *checkpoint_run(struct engine *e, checkpoint_fn fn, const void *context, size_t size,
                              struct tensor *const held[CHECKPOINT_HELD], struct checkpoint_mapping *mapping,
                              struct tensor *x);
/* The same, reentrant. A region whose input needs no gradient gets none. */
struct tensor *checkpoint_run_reentrant(struct engine *e, checkpoint_fn fn, const void *context, size_t size,
                                        struct tensor *const held[CHECKPOINT_HELD],
                                        struct checkpoint_mapping *mapping, struct tensor *x);
/* A reentrant region returns `x` beside its result, and nobody uses it: its gradient is zeros, which are there from
 * before the region runs once more until its backward has ended. Elsewhere nothing happens. */
void checkpoint_beside(struct engine *e, struct tensor *x);
/* Does a region run for the second time, in backward? */
bool checkpoint_recomputing(const struct engine *e);

#endif
