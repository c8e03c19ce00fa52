/* Finds the edge of one point of the space: the largest micro-batch that fits.
 *
 * Memory is nearly linear in the micro-batch, but not quite, and not always monotone (library workspaces, the
 * allocator's rounding, one micro-step less to accumulate over). Hence:
 *
 *   approach   a few runs without limit give two lines, of reserved and of requested bytes over the micro-batch. Below
 *              the point where the first crosses the budget, settings fit without the allocator releasing memory; above
 *              the point where the second does, they cannot fit.
 *   bisect     doubling from 1, then halving. Micro-batches about which the lines leave no doubt are not run; the two
 *              micro-batches at the edge always are.
 *   doubt      the next two micro-batches beyond the edge are tried as well, and with a fixed effective batch the
 *              largest too (it accumulates no gradients); if one fits, the search continues from there. Not if runs are
 *              costly, nor on a real GPU whose edge is that of the plan, since the plan has looked beyond it.
 *
 * If runs are costly (trials of a program) the bisection starts where the first line crosses the budget, and on a real
 * GPU at the edge of the plan; if more than that fits, it continues from there in growing steps. With an exact
 * effective batch only its divisors are run.
 *
 * Otherwise the path of the bisection does not depend on the budget, so that a larger budget never leads to a smaller
 * edge, even if single micro-batches beyond the edge fit by chance (the allocator allows that; they are ignored).
 *
 * Every verdict comes from a run; lines only say where to look. Lines from a similar GPU save most runs of the
 * approach. */
#ifndef PLIM_AUTOTUNE_SEARCH_EDGE_H
#define PLIM_AUTOTUNE_SEARCH_EDGE_H

#include "autotune/base/status.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct plim_search;

/* bytes = fixed_bytes + per_sample_bytes * micro-batch */
struct plim_line {
    double fixed_bytes, per_sample_bytes; /* per_sample_bytes 0: not known */
};

/* The state of knowledge about a point's edge. Zeroed: none; `reserved` and `requested` may be set to a guess. */
struct plim_edge {
    struct plim_line reserved, requested;
    int64_t fits;     /* the largest micro-batch known to fit; 0: none */
    int64_t fails;    /* a larger one that does not; 0: none is known */
    int64_t clean;    /* the largest known to fit without the allocator releasing memory */
    int64_t planned;  /* the expected edge, which is tried first; 0: none */
    bool unsupported; /* the GPU cannot run this point, whatever its memory */
    double rate_limit; /* the most tokens per second that are possible here; 0: not known */
    bool searched;    /* `fits` is the edge of the micro-batches that may be chosen */
    bool exact;       /* `fits` is the edge of all micro-batches */
};

/* The micro-batches whose edge is wanted: those that divide an exact effective batch, which decide what is fastest, or
 * all that may be run, whose edge is reported. The two are the same without an exact effective batch. */
enum plim_edge_of { PLIM_EDGE_OF_ALLOWED, PLIM_EDGE_OF_ALL };

/* True if PLIM_EDGE_OF_ALL is honoured. It is not if runs are costly and the effective batch is exact: no runs are
 * spent on micro-batches that may not be chosen. */
bool plim_edge_goes_beyond_allowed(const struct plim_search *search);

/* How close `clean` has to come to the point where the line crosses the budget: within clean / nearness. */
enum plim_nearness { PLIM_NEAR_ROUGHLY = 4, PLIM_NEAR_CLOSELY = 16 };

/* Sets `clean` of the point's edge to a micro-batch near the budget that may be chosen, with few runs; leaves it 0 if
 * none was found. */
enum plim_status plim_edge_approach(struct plim_search *search, size_t point,
                                    enum plim_nearness nearness) PLIM_MUST_CHECK;

/* Finds the edge of a point: afterwards `fits` fits (0: none) and `fails` does not; `fails` is 0 if `fits` is the
 * largest that makes sense (plim_batch_limit()). For PLIM_EDGE_OF_ALLOWED only allowed micro-batches are run. */
enum plim_status plim_edge_find(struct plim_search *search, size_t point,
                                enum plim_edge_of of) PLIM_MUST_CHECK;

/* Returns the largest micro-batch of a point that could fit by the line of requested bytes; at least `fits`. */
int64_t plim_edge_upper(const struct plim_search *search, size_t point);

#endif
