#include "validate.h"
#include "search.h"
#include "throughput.h"
#include <math.h>
#include <stdlib.h>

/* At most RUNS_PER_POINT candidates of a point are run: the fastest, the one with the least memory, and others whose
 * micro-batches differ by at least APART_SHARE. */
enum { RUNS_PER_POINT = 4 };
static const double APART_SHARE = 0.1;

/* The state of the validation. */
struct progress {
    struct plim_search *search;
    const struct plim_decision *plan;
    const struct plim_objective_row *objective;
    bool *asked;  /* by planned candidate: it was run */
    size_t *runs; /* by point: number of runs */
    double *seen; /* by point: the largest ratio of measured to planned rate; 0: none was timed */
    double seen_anywhere; /* the last ratio, of any point */
};

static const struct plim_candidate *planned(const struct progress *c, size_t i)
{
    return &c->plan->candidates.list.items[i];
}

/* Returns the highest rate that a planned candidate may turn out to have. */
static double promise(const struct progress *c, const struct plim_candidate *p)
{
    double here = c->seen[p->point], seen = here > 0 ? here : c->seen_anywhere;
    double doubt = here > 0 ? PLIM_BATCH_DOUBT : PLIM_POINT_DOUBT;
    return seen > 0 ? p->tokens_per_second * seen * (1 + doubt) : p->tokens_per_second;
}

/* True if `a` should be run before `b`. If the objective is not about time, the highest worth comes first. */
static bool is_better(const struct progress *c, const struct plim_candidate *a,
                      const struct plim_candidate *b)
{
    if (c->objective->by_time) return promise(c, a) > promise(c, b);
    return c->objective->worth(a) > c->objective->worth(b);
}

/* Returns the fraction of the best rate within which candidates are tied. */
static double tie_share(const struct progress *c)
{
    return c->objective->by_time ? c->objective->tie_share : PLIM_TIE_SHARE;
}

/* True if, according to the plan, it needs the least memory of the candidates that are tied with the fastest of their
 * point, and so wins the tie. */
static bool is_thriftiest(const struct progress *c, const struct plim_candidate *p)
{
    double best = 0;
    for (size_t i = 0; i < c->plan->candidates.list.count; i++) {
        const struct plim_candidate *k = planned(c, i);
        if (k->point == p->point && plim_candidate_may_win(k))
            best = fmax(best, k->tokens_per_second);
    }
    double tie = best * (1 - tie_share(c));
    if (p->tokens_per_second < tie) return false;
    for (size_t i = 0; i < c->plan->candidates.list.count; i++) {
        const struct plim_candidate *k = planned(c, i);
        if (k->point == p->point && plim_candidate_may_win(k) && k->tokens_per_second >= tie &&
            k->trial.reserved_bytes < p->trial.reserved_bytes)
            return false;
    }
    return true;
}

/* True if no similar micro-batch was run at its point. Multiples of eight, which fill tiles, are only similar to each
 * other. */
static bool is_apart(const struct progress *c, const struct plim_candidate *p)
{
    int64_t round = p->batch.micro_batch % 8 == 0 ? 8 : 1;
    for (size_t i = 0; i < c->plan->candidates.list.count; i++) {
        const struct plim_candidate *k = planned(c, i);
        double gap = fabs((double)(k->batch.micro_batch - p->batch.micro_batch));
        if (c->asked[i] && k->point == p->point && k->batch.micro_batch % round == 0 &&
            gap < APART_SHARE * (double)p->batch.micro_batch)
            return false;
    }
    return true;
}

static bool is_worth_a_run(const struct progress *c, const struct plim_candidate *p, double best)
{
    size_t runs = c->runs[p->point];
    double enough = best * (1 - (tie_share(c) - PLIM_TIE_SHARE));
    if (!plim_candidate_may_win(p) || promise(c, p) < enough || runs == RUNS_PER_POINT) return false;
    if (runs == 0 || is_thriftiest(c, p)) return true;
    return promise(c, p) >= best * (1 + PLIM_TIE_SHARE) && is_apart(c, p);
}

/* Returns the planned candidate to run next; -1 if no other could win. */
static int next_candidate(const struct progress *c)
{
    double best = plim_candidates_best_rate(&c->search->decision->candidates);
    int next = -1;
    if (best > 0 && !c->objective->by_time) return -1;
    for (size_t i = 0; i < c->plan->candidates.list.count; i++) {
        const struct plim_candidate *p = planned(c, i);
        if (c->asked[i] || !is_worth_a_run(c, p, best)) continue;
        if (next < 0 || is_better(c, p, planned(c, (size_t)next))) next = (int)i;
    }
    return next;
}

/* Searches a point on the GPU, since the plan was wrong about its memory, and times the largest micro-batch that
 * fits. */
static enum plim_status search_anew(struct plim_search *s, size_t point,
                                    struct plim_candidate **timed)
{
    enum plim_status st = plim_edge_find(s, point, PLIM_EDGE_OF_ALL);
    int64_t fits = s->decision->edges.items[point].fits;
    int64_t largest = st ? 0 : plim_batch_below(&s->decision->rule, fits, 1);
    return st || !largest ? st : plim_throughput_time(s, point, largest, timed);
}

static enum plim_status probe(struct progress *c, size_t i)
{
    const struct plim_candidate *p = planned(c, i);
    struct plim_candidate *timed;
    c->asked[i] = true;
    c->runs[p->point]++;
    enum plim_status st = plim_throughput_time(c->search, p->point, p->batch.micro_batch, &timed);
    bool as_planned = timed != NULL;
    if (!st && !as_planned) st = search_anew(c->search, p->point, &timed);
    if (st || !as_planned || p->tokens_per_second <= 0) return st;
    c->seen_anywhere = timed->tokens_per_second / p->tokens_per_second;
    c->seen[p->point] = fmax(c->seen[p->point], c->seen_anywhere);
    return PLIM_OK;
}

enum plim_status plim_validate(struct plim_search *search)
{
    const struct plim_decision *plan = search->known.plan;
    struct progress c = {
        .search = search, .plan = plan, .objective = &plim_objectives[search->question->objective]};
    enum plim_status st = PLIM_OK;
    c.asked = calloc(plan->candidates.list.count + 1, sizeof(*c.asked));
    c.runs = calloc(plan->space.points.count + 1, sizeof(*c.runs));
    c.seen = calloc(plan->space.points.count + 1, sizeof(*c.seen));
    if (!c.asked || !c.runs || !c.seen) st = plim_search_no_memory(search);
    for (int next; !st && (next = next_candidate(&c)) >= 0;) st = probe(&c, (size_t)next);
    free(c.asked);
    free(c.runs);
    free(c.seen);
    return st;
}
