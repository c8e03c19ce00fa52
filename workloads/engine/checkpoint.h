/* Activation checkpointing: torch.utils.checkpoint, with use_reentrant=False and with True.
 *
 * A region run by checkpoint_run() saves only its input for backward: every tensor that a node would save is replaced
 * by a holder (a number). When the first of them is needed, the region is recomputed from its input, with gradients
 * enabled, and the tensors that it saves fill the holders in the same order; it stops as soon as the last one is filled
 * (early stop), so work after the last saved tensor is not repeated. A tensor leaves its holder when it is used. The
 * input is kept until the region's last node has run.
 *
 * A region run by checkpoint_run_reentrant() first runs without gradients. It is one node, which saves its input; in
 * backward the whole region is recomputed, followed by a backward pass of its own. So its output gradient, its result
 * and its saved tensors exist at the same time. */
#ifndef PLIM_ENGINE_CHECKPOINT_H
#define PLIM_ENGINE_CHECKPOINT_H

#include "engine.h"

/* A region: computes from `x` (lent) and `context`; returns a floating tensor. */
typedef struct tensor *(*checkpoint_fn)(struct engine *e, const void *context, struct tensor *x);

enum { CHECKPOINT_HELD = 14 };

/* A mapping among the keyword arguments that the regions of one forward share. Each region may rebind its values (named
 * or NULL), also when it is recomputed. It is freed with the last region that holds it. */
enum { CHECKPOINT_VALUES = 4 };
struct checkpoint_mapping {
    int32_t refs;
    struct tensor *values[CHECKPOINT_VALUES];
};
/* Returns an empty mapping, owned by the caller; NULL if the engine is halted. */
struct checkpoint_mapping *checkpoint_mapping_create(struct engine *e);
void checkpoint_mapping_drop(struct engine *e, struct checkpoint_mapping *m); /* NULL: nothing */

/* Runs the region. `context` (`size` bytes) is copied, because it is needed again in backward; for the same reason the
 * `held` tensors (NULL ends the list early) and the mapping (NULL: none) are kept, like Python's keyword arguments.
 * Consumes `x` if it is floating. */
struct tensor *checkpoint_run(struct engine *e, checkpoint_fn fn, const void *context, size_t size,
                              struct tensor *const held[CHECKPOINT_HELD], struct checkpoint_mapping *mapping,
                              struct tensor *x);
/* The same, reentrant. If its input needs no gradient, the region is not differentiated. */
struct tensor *checkpoint_run_reentrant(struct engine *e, checkpoint_fn fn, const void *context, size_t size,
                                        struct tensor *const held[CHECKPOINT_HELD],
                                        struct checkpoint_mapping *mapping, struct tensor *x);
/* The reentrant region also returns `x`, which is never used: its gradient is a tensor of zeros, allocated before the
 * region is recomputed and freed after its backward. Does nothing in other regions. */
void checkpoint_return_input(struct engine *e, struct tensor *x);
/* Keeps the region that is running for the first time, with its input and held tensors, until it is let go; NULL:
 * no region is running. A collective operation holds the hooks of the region in which it was launched until it is over
 * (at::ThreadLocalState). */
struct checkpoint_frame *checkpoint_retain(struct engine *e);
void checkpoint_release(struct engine *e, struct checkpoint_frame *f); /* NULL: nothing */
/* True if a region is being recomputed, in backward. */
bool checkpoint_recomputing(const struct engine *e);

#endif
