/* The longest sequence that fits with the smallest allowed micro-batch. */
#ifndef PLIM_AUTOTUNE_SEARCH_LONGEST_H
#define PLIM_AUTOTUNE_SEARCH_LONGEST_H

#include "autotune/base/status.h"
#include <stdint.h>

struct plim_search;

/* Sequence lengths that the user did not list are searched in steps of this: other lengths would leave the
 * tiles of the kernels partly empty. */
enum { PLIM_SEQ_RASTER = 64 };

/* The longest of the listed sequences (or, if the question only has a default, of those up to its
 * seq_most) that fits with any of the other values; if none fits, the shortest. The
 * question must have an axis of sequence lengths. */
enum plim_status plim_longest_sequence(struct plim_search *search,
                                       int64_t *longest) PLIM_MUST_CHECK;

#endif
