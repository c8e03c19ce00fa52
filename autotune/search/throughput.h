/* The speed of a point of the space: chooses the micro-batches below its edge that are timed.
 *
 * Throughput is not monotone in the micro-batch: it rises while the fixed cost of a step is shared by more samples, and
 * falls when one more sample starts another wave of tiles on the multiprocessors. Timing all would take too long. The
 * following are timed: the largest that fits; sizes that suit the hardware (powers of two, multiples of eight); the
 * neighbours of the edge; and, since ties go to more free memory, the smallest that the trend puts within 1 % of the
 * best (time per sample is modelled as a + b / micro-batch). A micro-batch that could not reach the best even if it
 * took no longer than a smaller one is left out. */
#ifndef PLIM_AUTOTUNE_SEARCH_THROUGHPUT_H
#define PLIM_AUTOTUNE_SEARCH_THROUGHPUT_H

#include "candidate.h"

struct plim_search;

/* Returns the lowest rate that ties with the best so far (the objective's tie_share). */
double plim_throughput_ties(const struct plim_search *search);

/* Times one micro-batch of a point. *out is its candidate, valid until the next is added; NULL if it does not fit. */
enum plim_status plim_throughput_time(struct plim_search *search, size_t point, int64_t micro_batch,
                                      struct plim_candidate **out) PLIM_MUST_CHECK;

/* Times the promising micro-batches of a point whose largest one is `largest`. */
enum plim_status plim_throughput_point(struct plim_search *search, size_t point,
                                       int64_t largest) PLIM_MUST_CHECK;

/* Runs a candidate with all its micro-steps, in every phase of its schedule, and proves that it fits for any number of
 * steps (plim_probe_proof()). Sets `verified` and the exact numbers, or `refuted`. */
enum plim_status plim_throughput_verify(struct plim_search *search,
                                        struct plim_candidate *candidate) PLIM_MUST_CHECK;

#endif
