#include "points.h"
#include "search.h"
#include "throughput.h"
#include "verify.h"
#include <math.h>

/* --- bounds of the rate ----------------------------------------------------------------------- */

/* Returns an upper bound of a point's rate up to the micro-batch `upper`, from two timed ones. The time of a step grows
 * with its samples at least as fast as between those two (it is constant while the host's launches dominate, then
 * linear), which bounds the rate at `upper`. A smaller micro-batch may be faster if the timed one leaves its last wave
 * of tiles half empty: the bound allows for one sample, and for noise. */
static double rate_bound(const struct plim_candidate *small, const struct plim_candidate *large,
                         int64_t upper)
{
    double b0 = (double)small->batch.micro_batch, b1 = (double)large->batch.micro_batch;
    double t0 = b0 / small->tokens_per_second,
           t1 = b1 / large->tokens_per_second; /* both up to a common factor */
    double slope = b1 > b0 && t1 > t0 ? (t1 - t0) / (b1 - b0) : 0;
    double at_upper = (double)upper / (t1 + slope * ((double)upper - b1));
    double best = at_upper > large->tokens_per_second ? at_upper : large->tokens_per_second;
    return best * (b1 + 1) / b1 * (1 + PLIM_TIE_SHARE);
}

/* What is known about the rate of a point. */
struct bound {
    double rate;  /* an upper bound; 0: nothing of the point fits; HUGE_VAL: nothing is known yet */
    int64_t near; /* a timed micro-batch near the edge; 0: none */
    bool refined; /* a second one was timed */
};

/* Bounds a point by one timed step. Only micro-batches that keep the effective batch are timed: the optimizer's time is
 * shared by fewer samples in a smaller batch. */
static enum plim_status bound_point(struct plim_search *s, size_t point, struct bound *bound)
{
    const struct plim_edge *edge = &s->decision->edges.items[point];
    struct plim_candidate *large = NULL;
    enum plim_status st = plim_edge_approach(s, point, PLIM_NEAR_ROUGHLY);
    if (st || edge->unsupported) return st;
    int64_t upper = plim_edge_upper(s, point);
    bound->rate = upper > 0 || !edge->fails ? HUGE_VAL : 0;
    bound->near = plim_batch_below(&s->decision->rule, edge->clean, 1);
    if (!bound->near) return PLIM_OK;
    st = plim_throughput_time(s, point, bound->near, &large);
    if (!st && large) bound->rate = rate_bound(large, large, upper);
    return st;
}

/* Refines the bound by timing a third of the micro-batch, which shows how the time grows. */
static enum plim_status refine_bound(struct plim_search *s, size_t point, struct bound *bound)
{
    struct plim_candidate *candidate;
    int64_t far = plim_batch_below(&s->decision->rule, (bound->near + 2) / 3, 1);
    bound->refined = true;
    if (!far || far == bound->near) return PLIM_OK;
    enum plim_status st = plim_throughput_time(s, point, far, &candidate);
    if (st || !candidate) return st;
    struct plim_candidate small = *candidate;
    const struct plim_candidate *large =
        plim_candidate_find(&s->decision->candidates, point, bound->near);
    if (large) bound->rate = rate_bound(&small, large, plim_edge_upper(s, point));
    return PLIM_OK;
}

/* --- the fastest setting ---------------------------------------------------------------------- */

static enum plim_status search_point(struct plim_search *s, size_t point)
{
    enum plim_status st = plim_edge_find(s, point, PLIM_EDGE_OF_ALLOWED);
    return st ? st : plim_throughput_point(s, point, s->decision->edges.items[point].fits);
}

/* Returns the point with the highest bound that was not searched yet; -1 if there is none. */
static int next_point(const struct plim_search *s, const struct bound *bounds)
{
    int next = -1;
    for (size_t i = s->first; i < s->end; i++)
        if (!s->decision->edges.items[i].searched && bounds[i].rate > 0 &&
            (next < 0 || bounds[i].rate > bounds[next].rate))
            next = (int)i;
    return next;
}

static enum plim_status search_by_bounds(struct plim_search *s, struct bound *bounds)
{
    bool searched = false; /* any point was searched */
    for (int next; (next = next_point(s, bounds)) >= 0;) {
        enum plim_status st;
        struct bound *bound = &bounds[next];
        if (bound->rate < plim_throughput_ties(s)) break;
        if (searched && bound->near && !bound->refined) {
            st = refine_bound(s, (size_t)next, bound);
        } else {
            st = search_point(s, (size_t)next);
            searched = true;
        }
        if (st) return st;
    }
    return PLIM_OK;
}

enum plim_status plim_points_fastest(struct plim_search *s)
{
    if (s->end - s->first == 1) return search_point(s, s->first);
    struct bound *bounds = calloc(s->end + 1, sizeof(*bounds));
    if (!bounds) return plim_search_no_memory(s);
    enum plim_status st = PLIM_OK;
    for (size_t i = s->first; i < s->end && !st; i++) st = bound_point(s, i, &bounds[i]);
    if (!st) st = search_by_bounds(s, bounds);
    for (size_t i = s->first; i < s->end; i++)
        if (isfinite(bounds[i].rate)) s->decision->edges.items[i].rate_limit = bounds[i].rate;
    free(bounds);
    return st;
}

/* --- the best of every point ------------------------------------------------------------------ */

/* Finds out how much memory the smallest micro-batch of a point needs, and where it runs out of memory. */
static enum plim_status probe_smallest(struct plim_search *s, size_t point)
{
    const struct plim_cache_entry *need;
    const struct plim_sample *sample;
    int64_t smallest = plim_batch_next(&s->decision->rule, 0);
    struct plim_setting setting = plim_search_setting(s, point, smallest);
    enum plim_status st = plim_probe_need(s->prober, &setting, &need, s->err);
    return st ? st : plim_probe(s->prober, &setting, PLIM_WANT_REASON, &sample, s->err);
}

enum plim_status plim_points_compare(struct plim_search *s)
{
    struct plim_decision *out = s->decision;
    bool by_time = plim_objectives[s->question->objective].by_time;
    for (size_t i = s->first; i < s->end; i++) {
        enum plim_status st = PLIM_OK;
        if (by_time && !out->edges.items[i].searched) st = search_point(s, i);
        if (!st) st = plim_verify_below_edge(s, i);
        if (!st && plim_choose_of_point(&out->candidates, s->question->objective, i) < 0)
            st = probe_smallest(s, i);
        if (st) return st;
    }
    return PLIM_OK;
}

/* --- the least memory, the largest batch ------------------------------------------------------ */

/* The smallest micro-batches need the least memory, or the largest allowed one, whose step has no accumulation and
 * holds no gradients of earlier micro-steps. */
enum plim_status plim_points_smallest(struct plim_search *s)
{
    enum { SMALLEST = 3 };
    const struct plim_batch_rule *rule = &s->decision->rule;
    struct plim_candidate *candidate;
    enum plim_status st = PLIM_OK;
    for (size_t i = s->first; i < s->end && !st; i++) {
        int64_t b = plim_batch_next(rule, 0);
        for (int n = 0; n < SMALLEST && b && !st; n++, b = plim_batch_next(rule, b))
            st = plim_throughput_time(s, i, b, &candidate);
        if (!st && plim_batch_target(rule))
            st = plim_throughput_time(s, i, plim_batch_limit(rule), &candidate);
    }
    return st;
}

enum plim_status plim_points_largest(struct plim_search *s)
{
    struct plim_candidate *candidate;
    enum plim_status st = PLIM_OK;
    for (size_t i = s->first; i < s->end && !st; i++) {
        st = plim_edge_find(s, i, PLIM_EDGE_OF_ALL);
        int64_t fits = s->decision->edges.items[i].fits;
        int64_t largest = st ? 0 : plim_batch_below(&s->decision->rule, fits, 1);
        if (largest) st = plim_throughput_time(s, i, largest, &candidate);
    }
    return st;
}
