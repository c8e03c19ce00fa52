/* Activation checkpointing: torch.utils.checkpoint with use_reentrant=False.
 *
 * A region run under checkpoint_run() saves nothing for backward but its input: every tensor that
 * a node would save is replaced by a holder (a number). When the first of them is asked for, the
 * region runs once more from its input, with gradients enabled, and what it saves goes to the
 * holders in the same order; it stops as soon as the last one is filled (early stop), so work
 * behind the last saved tensor is not repeated. A tensor leaves its holder when it is used.
 *
 * The input is kept until the region's last node has run.
 */
#ifndef PLIM_ENGINE_CHECKPOINT_H
#define PLIM_ENGINE_CHECKPOINT_H

#include "engine.h"

/* A region: computes from `x` (lent) with whatever `context` holds; returns a floating tensor. */
typedef struct tensor *(*checkpoint_fn)(struct engine *e, const void *context, struct tensor *x);

struct checkpoint_holder;

enum { CHECKPOINT_HELD = 6 };

/* Runs the region. `context` (of `size` bytes) is copied: it is needed again in backward; so are
 * the `held` tensors (NULL ends the list early), what Python's keyword arguments hold. Consumes
 * `x` if it floats. */
struct tensor *checkpoint_run(struct engine *e, checkpoint_fn fn, const void *context, size_t size,
                              struct tensor *const held[CHECKPOINT_HELD], struct tensor *x);

/* For autograd.c: a place for the next saved tensor; its tensor, recomputed (a reference);
 * release. */
struct checkpoint_holder *checkpoint_pack(struct engine *e);
void checkpoint_repack(struct engine *e, struct tensor *x);
struct tensor *checkpoint_unpack(struct engine *e, struct checkpoint_holder *h);
void checkpoint_holder_drop(struct engine *e, struct checkpoint_holder *h);

/* Releases every frame at once (engine_reset). */
void checkpoint_reset(struct engine *e);
/* And gives their memory back (engine_destroy). */
void checkpoint_finish(struct engine *e);

#endif
