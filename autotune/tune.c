#include "tune.h"
#include "confirm.h"
#include "longest.h"
#include "prove.h"
#include <math.h>
#include <stdio.h>

struct tuner {
    const struct plim_tuning *in;
    struct plim_decision *out;
    struct plim_ranker ranker;
    size_t searched; /* points that are through */
    struct plim_error *err;
};

static void tuner_init(struct tuner *t, const struct plim_tuning *tuning,
                       struct plim_decision *decision, struct plim_error *err)
{
    *t = (struct tuner){.in = tuning, .out = decision, .err = err};
    t->ranker = (struct plim_ranker){.prober = tuning->prober,
                                     .rule = &decision->rule,
                                     .space = &decision->space,
                                     .candidates = &decision->candidates};
}

/* --- points ----------------------------------------------------------------------------------- */

static enum plim_status build_points(struct tuner *t, const struct plim_int_axis *seqs,
                                     const struct plim_decision *plan)
{
    struct plim_decision *out = t->out;
    enum plim_status st = plim_space_build(&out->space, t->in->spec, seqs, t->err);
    if (st) return st;
    out->edges.count = 0;
    for (size_t i = 0; i < out->space.points.count; i++) {
        struct plim_edge edge = {0};
        if (plan && plan->edges.items[i].exact) edge.planned = plan->edges.items[i].fits;
        if (i < t->in->hint_count) {
            edge.reserved = t->in->hints[i].reserved;
            edge.requested = t->in->hints[i].requested;
        }
        if (PLIM_ARRAY_PUSH(&out->edges, edge) != PLIM_OK)
            return plim_fail(t->err, PLIM_NOMEM, "out of host memory");
    }
    return PLIM_OK;
}

static double best_rate(const struct tuner *t)
{
    double best = 0;
    for (size_t i = 0; i < t->out->candidates.list.count; i++) {
        const struct plim_candidate *c = &t->out->candidates.list.items[i];
        if (c->allowed && c->tokens_per_second > best) best = c->tokens_per_second;
    }
    return best;
}

/* The time of a step grows with its samples at least as it did between the two that were timed
 * (it is a fixed part, or the host's launches, until the device is busy; then a line), so the
 * rate at `upper` has a bound. Smaller micro-batches may be faster where the timed one leaves
 * its last wave of tiles half empty: that is allowed a sample, and a little for noise. */
static double rate_bound(const struct plim_candidate *small, const struct plim_candidate *large,
                         int64_t upper)
{
    double b0 = (double)small->batch.micro_batch, b1 = (double)large->batch.micro_batch;
    double t0 = b0 / small->tokens_per_second,
           t1 = b1 / large->tokens_per_second; /* up to a factor */
    double slope = b1 > b0 && t1 > t0 ? (t1 - t0) / (b1 - b0) : 0;
    double at_upper = (double)upper / (t1 + slope * ((double)upper - b1));
    double best = at_upper > large->tokens_per_second ? at_upper : large->tokens_per_second;
    return best * (b1 + 1) / b1 * (1 + PLIM_TIE_SHARE);
}

/* What is known of how fast a point can be. */
struct bound {
    double rate; /* an upper bound; 0: nothing of the point fits; HUGE_VAL: nothing is known yet */
    int64_t near;  /* a timed micro-batch near the edge; 0: none */
    bool refined;  /* a second one was timed */
};

/* One timed step. Only what keeps the effective batch is timed: a step with fewer samples
 * would spread its optimizer over fewer. */
static enum plim_status bound_point(struct tuner *t, size_t point, struct bound *bound)
{
    const struct plim_batch_rule *rule = &t->out->rule;
    struct plim_edge *edge = &t->out->edges.items[point];
    struct plim_candidate *large = NULL;
    enum plim_status st = plim_search_approach(
        t->in->prober, rule, &t->out->space.points.items[point], PLIM_NEAR_ROUGHLY, edge, t->err);
    if (st || edge->unsupported) return st;
    int64_t upper = plim_edge_upper(edge, rule, t->in->prober->runner->budget_bytes);
    bound->rate = upper > 0 || !edge->fails ? HUGE_VAL : 0;
    bound->near = plim_batch_below(rule, edge->clean, 1);
    if (!bound->near) return PLIM_OK;
    st = plim_rank_one(&t->ranker, point, bound->near, &large, t->err);
    if (!st && large) bound->rate = rate_bound(large, large, upper);
    return st;
}

/* Another one, at a third: now the bound knows how the time grows. */
static enum plim_status refine_bound(struct tuner *t, size_t point, struct bound *bound)
{
    const struct plim_batch_rule *rule = &t->out->rule;
    struct plim_candidate *candidate;
    int64_t far = plim_batch_below(rule, (bound->near + 2) / 3, 1);
    bound->refined = true;
    if (!far || far == bound->near) return PLIM_OK;
    enum plim_status st = plim_rank_one(&t->ranker, point, far, &candidate, t->err);
    if (st || !candidate) return st;
    struct plim_candidate small = *candidate;
    const struct plim_candidate *large =
        plim_candidate_find(&t->out->candidates, point, bound->near);
    int64_t upper =
        plim_edge_upper(&t->out->edges.items[point], rule, t->in->prober->runner->budget_bytes);
    if (large) bound->rate = rate_bound(&small, large, upper);
    return PLIM_OK;
}

static enum plim_status search_point(struct tuner *t, size_t point)
{
    struct plim_edge *edge = &t->out->edges.items[point];
    enum plim_status st = plim_search_edge(t->in->prober, &t->out->rule,
                                           &t->out->space.points.items[point], edge, t->err);
    if (st) return st;
    t->searched++;
    return plim_rank_point(&t->ranker, point, edge->fits, t->err);
}

/* The point with the highest bound that was not searched yet; -1: none. */
static int next_point(const struct bound *bounds, const struct plim_decision *out)
{
    int next = -1;
    for (size_t i = 0; i < out->space.points.count; i++)
        if (!out->edges.items[i].exact && bounds[i].rate > 0 &&
            (next < 0 || bounds[i].rate > bounds[next].rate))
            next = (int)i;
    return next;
}

static enum plim_status search_fastest(struct tuner *t)
{
    size_t count = t->out->space.points.count;
    if (count == 1) return search_point(t, 0);
    struct bound *bounds = calloc(count, sizeof(*bounds));
    if (!bounds) return plim_fail(t->err, PLIM_NOMEM, "out of host memory");
    enum plim_status st = PLIM_OK;
    for (size_t i = 0; i < count && !st; i++) st = bound_point(t, i, &bounds[i]);
    for (int next = 0; !st && (next = next_point(bounds, t->out)) >= 0;) {
        struct bound *bound = &bounds[next];
        if (bound->rate < best_rate(t) * (1 - PLIM_TIE_SHARE)) break;
        if (t->searched && bound->near && !bound->refined)
            st = refine_bound(t, (size_t)next, bound);
        else st = search_point(t, (size_t)next);
    }
    free(bounds);
    return st;
}

/* Small micro-batches need least; the last one needs no gradients to accumulate into. */
static enum plim_status search_least_memory(struct tuner *t)
{
    enum { SMALLEST = 3 };
    const struct plim_batch_rule *rule = &t->out->rule;
    struct plim_candidate *candidate;
    enum plim_status st = PLIM_OK;
    for (size_t i = 0; i < t->out->space.points.count && !st; i++) {
        int64_t b = plim_batch_next(rule, 0);
        for (int n = 0; n < SMALLEST && b && !st; n++, b = plim_batch_next(rule, b))
            st = plim_rank_one(&t->ranker, i, b, &candidate, t->err);
        if (!st && plim_batch_target(rule))
            st = plim_rank_one(&t->ranker, i, plim_batch_limit(rule), &candidate, t->err);
    }
    return st;
}

/* Nothing is timed: every point's edge, and of each the largest micro-batch that is allowed. */
static enum plim_status search_largest(struct tuner *t)
{
    struct plim_candidate *candidate;
    enum plim_status st = PLIM_OK;
    for (size_t i = 0; i < t->out->space.points.count && !st; i++) {
        struct plim_edge *edge = &t->out->edges.items[i];
        st = plim_search_edge(t->in->prober, &t->out->rule, &t->out->space.points.items[i], edge,
                              t->err);
        int64_t largest = st ? 0 : plim_batch_below(&t->out->rule, edge->fits, 1);
        if (largest) st = plim_rank_one(&t->ranker, i, largest, &candidate, t->err);
    }
    return st;
}

/* The sequence lengths of the plan's points, in their order. */
static void planned_seqs(const struct plim_decision *plan, struct plim_int_axis *seqs)
{
    seqs->count = 0;
    for (size_t i = 0; i < plan->space.points.count; i++) {
        int64_t seq = plan->space.points.items[i].seq;
        if (!seqs->count || seqs->values[seqs->count - 1] != seq) seqs->values[seqs->count++] = seq;
    }
}

static bool has_answer(const struct plim_decision *decision)
{
    return plim_choose(&decision->candidates, decision->objective) >= 0;
}

/* The plan, proven; `done` when the card agreed with some of it. */
static enum plim_status search_planned(struct tuner *t, bool *done)
{
    struct plim_int_axis seqs;
    planned_seqs(t->in->plan, &seqs);
    enum plim_status st = build_points(t, &seqs, t->in->plan);
    if (!st) st = plim_confirm(t->in, t->out, &t->ranker, t->err);
    *done = !st && has_answer(t->out);
    return st;
}

static enum plim_status search(struct tuner *t)
{
    struct plim_int_axis seqs;
    bool done = false;
    enum plim_status st = t->in->plan ? search_planned(t, &done) : PLIM_OK;
    if (st || done) return st;
    t->out->candidates.list.count = 0; /* they belong to the plan's points */
    plim_space_seqs(t->in->spec, &seqs);
    if (t->in->objective == PLIM_OBJECTIVE_LONGEST_SEQUENCE)
        st = plim_longest_sequence(t->in->prober, t->in->spec, &t->out->rule, &seqs, t->err);
    if (!st) st = build_points(t, &seqs, NULL);
    if (st) return st;
    if (t->in->objective == PLIM_OBJECTIVE_LEAST_MEMORY) return search_least_memory(t);
    if (t->in->objective == PLIM_OBJECTIVE_LARGEST_BATCH) return search_largest(t);
    return search_fastest(t);
}

/* --- the whole -------------------------------------------------------------------------------- */

static bool is_same_point(const struct plim_setting *a, const struct plim_setting *b)
{
    struct plim_setting x = *a, y = *b;
    x.accumulation = y.accumulation = 0;
    return plim_setting_equal(&x, &y);
}

static void compare_with_plan(struct plim_decision *decision, const struct plim_decision *plan)
{
    for (size_t i = 0; decision->found && i < plan->candidates.list.count; i++) {
        const struct plim_candidate *p = &plan->candidates.list.items[i];
        if (!is_same_point(&p->setting, &decision->choice.setting)) continue;
        decision->was_planned = true;
        decision->planned_seconds = p->step_seconds;
        decision->planned_reserved_bytes = p->replay.peak_reserved_bytes;
        if (plan->edges.items[p->point].exact)
            decision->planned_edge = plan->edges.items[p->point].fits;
    }
}

static bool is_early_end(enum plim_status st, const struct plim_prober *prober)
{
    bool device_gone = st == PLIM_LOST || st == PLIM_NODEVICE;
    return st == PLIM_CANCELLED || st == PLIM_TIMEOUT || (device_gone && prober->samples.count);
}

enum plim_status plim_tune(const struct plim_tuning *tuning, struct plim_decision *decision,
                           struct plim_error *err)
{
    struct tuner t;
    struct plim_error own = PLIM_ERROR_INIT;
    decision->objective = tuning->objective;
    if (!err) err = &own;
    tuner_init(&t, tuning, decision, err);
    enum plim_status st = plim_batch_rule_init(&decision->rule, tuning->spec, err);
    if (st) return st;
    if (!plim_batch_next(&decision->rule, 0))
        return plim_fail(err, PLIM_SPEC,
                         "no micro-batch that was given leads to an effective batch of %lld",
                         (long long)plim_batch_target(&decision->rule));
    st = search(&t);
    if (!st) st = plim_prove(tuning, decision, &t.ranker, err);
    if (!st && tuning->plan) compare_with_plan(decision, tuning->plan);
    if (!is_early_end(st, tuning->prober)) return st;
    decision->ended = st;
    snprintf(decision->ended_why, sizeof(decision->ended_why), "%.199s", err->text);
    plim_take_choice(tuning, decision);
    return PLIM_OK;
}

void plim_decision_finish(struct plim_decision *decision)
{
    if (!decision) return;
    plim_space_finish(&decision->space);
    PLIM_ARRAY_FINISH(&decision->edges);
    PLIM_ARRAY_FINISH(&decision->candidates.list);
    plim_advices_finish(&decision->advices);
}
