/* Finds the longest sequence that fits with the smallest allowed micro-batch. */
#ifndef PLIM_AUTOTUNE_SEARCH_LONGEST_H
#define PLIM_AUTOTUNE_SEARCH_LONGEST_H

#include "autotune/base/status.h"
#include <stdint.h>

struct plim_search;

/* Step of the sequence lengths that are searched if the user listed none: other lengths would leave tiles of the
 * kernels partly empty. */
enum { PLIM_SEQ_RASTER = 64 };

/* Finds the longest of the listed sequence lengths (or, if the question only has a default, of those up to its
 * seq_most) that fits with any values of the other axes; if none fits, the shortest. The question must have an axis of
 * sequence lengths. */
enum plim_status plim_longest_sequence(struct plim_search *search,
                                       int64_t *longest) PLIM_MUST_CHECK;

#endif
