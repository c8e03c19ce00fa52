/* The longest sequence that fits at the smallest micro-batch allowed. */
#ifndef PLIM_AUTOTUNE_LONGEST_H
#define PLIM_AUTOTUNE_LONGEST_H

#include "probe.h"
#include "space.h"

/* Where the model sets no limit, and the raster on which sequences are searched that the user
 * did not list: lengths that are no multiple of 64 leave the tiles of the kernels half empty. */
enum { PLIM_SEQ_MAX = 1 << 20, PLIM_SEQ_RASTER = 64 };

/* Replaces `seqs` (the user's list, if the spec has one; else the model's positions bound the
 * search) by the longest that fits in any of the other settings. When none fits, by the
 * shortest of them. */
enum plim_status plim_longest_sequence(struct plim_prober *prober, const struct plim_spec *spec,
                                       const struct plim_batch_rule *rule,
                                       struct plim_int_axis *seqs,
                                       struct plim_error *err) PLIM_MUST_CHECK;

#endif
