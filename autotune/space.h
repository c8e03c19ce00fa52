/* The points of a search: every combination of what the user left open, without the micro-batch. */
#ifndef PLIM_AUTOTUNE_SPACE_H
#define PLIM_AUTOTUNE_SPACE_H

#include "accumulate.h"
#include "autotune/base/array.h"

/* Sequence length when the user gave none: the model's positions, but no more than this. */
enum { PLIM_DEFAULT_SEQ_MAX = 4096 };

struct plim_space {
    PLIM_ARRAY(struct plim_setting) points; /* micro_batch and accumulation are 0 */
};

/* All points at the sequence lengths in `seqs`, in the user's order of preference (the last
 * axis varies fastest): sequence, precision, optimizer, checkpointing, attention, variant. PLIM_NOMEM
 * is the only failure. */
enum plim_status plim_space_build(struct plim_space *space, const struct plim_spec *spec,
                                  const struct plim_int_axis *seqs,
                                  struct plim_error *err) PLIM_MUST_CHECK;
void plim_space_finish(struct plim_space *space); /* NULL and zeroed are fine */

/* The sequence lengths of the spec, or the default when it names none. */
void plim_space_seqs(const struct plim_spec *spec, struct plim_int_axis *seqs);

/* A point with a micro-batch, as it is searched. More micro-steps than PLIM_PROBED_STEPS
 * change neither the peaks (every micro-step after the first is like the next) nor anything in
 * time but its length, so searching stops there; what is reported is then replayed with all of
 * them. */
enum { PLIM_PROBED_STEPS = 4 };
struct plim_setting plim_space_setting(const struct plim_setting *point,
                                       const struct plim_batch *batch);

#endif
