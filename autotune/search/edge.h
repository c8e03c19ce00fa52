/* The largest micro-batch of one point of the space.
 *
 * Memory is nearly a straight line in the micro-batch, but not quite, and not always monotone
 * (library workspaces, the allocator's rounding, one micro-step less to accumulate over). So:
 *
 *   approach   a few runs without limit give two lines, reserved and requested bytes over the
 *              micro-batch. Where the first crosses the budget it still fits without the allocator
 *              having to give anything back; where the second does, it cannot fit.
 *   bisect     doubling from 1, then halving, as one would who tries it out by hand. What the
 *              lines leave no doubt about is not run; the two micro-batches at the edge always
 *              are.
 *   doubt      the two micro-batches beyond the edge are tried as well, and where the effective
 *              batch is fixed so is the largest (it needs no accumulated gradients); if one fits,
 *              the search goes on from there. Not where runs are costly, nor on a real GPU whose edge
 *              is that of the plan, which looked beyond.
 *
 * Where runs are costly (trials of a program) the bisection begins where the first line crosses the
 * budget, and on a real GPU at the edge of the plan; where more than that fits, it goes on from there
 * in growing steps. With an exact effective batch only what divides it is run.
 *
 * Elsewhere the path of the bisection does not depend on the budget: so a larger budget never ends at a
 * smaller edge, even where single micro-batches fit by luck beyond it (the allocator has them;
 * they are left alone).
 *
 * Every verdict is a run's; a line only says where to look. A line from a similar GPU saves the
 * approach most of its runs.
 */
#ifndef PLIM_AUTOTUNE_SEARCH_EDGE_H
#define PLIM_AUTOTUNE_SEARCH_EDGE_H

#include "autotune/base/status.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct plim_search;

/* bytes = fixed + per_sample x micro-batch */
struct plim_line {
    double fixed_bytes, per_sample_bytes; /* per_sample 0: not known */
};

/* What is known of a point's edge. Zeroed is nothing; `reserved` and `requested` may be a guess. */
struct plim_edge {
    struct plim_line reserved, requested;
    int64_t fits;     /* the largest micro-batch known to fit; 0: none */
    int64_t fails;    /* a larger one that does not; 0: none is known */
    int64_t clean;    /* the largest known to fit without the allocator giving anything back */
    int64_t planned;  /* where the edge is expected; asked there first; 0: nowhere */
    bool unsupported; /* the GPU cannot run this point, whatever the memory */
    double rate_limit; /* no more tokens per second are possible here; 0: not known */
    bool searched;    /* `fits` is the edge of the micro-batches that may be chosen */
    bool exact;       /* and of all */
};

/* Of which micro-batches the edge is wanted: those that divide an exact effective batch, which decide
 * what is fastest, or all that may be run, which is what a user is told. The same where none has to
 * be kept exactly. */
enum plim_edge_of { PLIM_EDGE_OF_ALLOWED, PLIM_EDGE_OF_ALL };

/* Is the edge of all looked for where it is asked for? Not where runs are costly: none is spent on what may not
 * be chosen. */
bool plim_edge_goes_beyond_allowed(const struct plim_search *search);

/* How near to the line's crossing `clean` has to come: within a share of itself. */
enum plim_nearness { PLIM_NEAR_ROUGHLY = 4, PLIM_NEAR_CLOSELY = 16 };

/* Makes `clean` of the point's edge one near the budget that may be chosen, in very few runs; 0 when
 * none was found. */
enum plim_status plim_edge_approach(struct plim_search *search, size_t point,
                                    enum plim_nearness nearness) PLIM_MUST_CHECK;

/* Finds the edge of a point: afterwards `fits` fits and `fails` does not, or is 0 where `fits` is
 * the largest that makes sense (plim_batch_limit). Of what may be chosen, nothing else is run. */
enum plim_status plim_edge_find(struct plim_search *search, size_t point,
                                enum plim_edge_of of) PLIM_MUST_CHECK;

/* The largest micro-batch of a point that could fit by the line of what is requested; never less
 * than `fits`. */
int64_t plim_edge_upper(const struct plim_search *search, size_t point);

#endif
