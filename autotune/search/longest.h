/* The longest sequence that fits at the smallest micro-batch allowed. */
#ifndef PLIM_AUTOTUNE_SEARCH_LONGEST_H
#define PLIM_AUTOTUNE_SEARCH_LONGEST_H

#include "autotune/base/status.h"
#include <stdint.h>

struct plim_search;

/* The raster on which sequences are searched that the user did not list: lengths that are no
 * multiple of 64 leave the tiles of the kernels half empty. */
enum { PLIM_SEQ_RASTER = 64 };

/* The longest of the listed sequences (or, where the question has a default only, up to its
 * seq_most) that fits in any of the other settings; when none fits, the shortest of them. The
 * question has an axis of sequences. */
enum plim_status plim_longest_sequence(struct plim_search *search,
                                       int64_t *longest) PLIM_MUST_CHECK;

#endif
