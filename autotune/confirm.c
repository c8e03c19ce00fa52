#include "confirm.h"
#include <math.h>
#include <stdlib.h>

/* What is looked at of one point: its fastest, its thriftiest, and as many that lie apart. */
enum { RUNS_PER_POINT = 4 };
static const double APART_SHARE = 0.1;

struct confirmer {
    const struct plim_tuning *in;
    struct plim_decision *out;
    struct plim_ranker *ranker;
    bool *asked;  /* by planned candidate */
    size_t *runs; /* by point */
    double *seen; /* by point: the best of measured over planned rate; 0: none was timed */
    double seen_anywhere;
    struct plim_error *err;
};

static const struct plim_candidate *planned(const struct confirmer *c, size_t i)
{
    return &c->in->plan->candidates.list.items[i];
}

/* The most that a planned candidate can turn out to be. */
static double promise(const struct confirmer *c, const struct plim_candidate *p)
{
    double here = c->seen[p->point], seen = here > 0 ? here : c->seen_anywhere;
    double doubt = here > 0 ? PLIM_BATCH_DOUBT : PLIM_POINT_DOUBT;
    return seen > 0 ? p->tokens_per_second * seen * (1 + doubt) : p->tokens_per_second;
}

static double best_rate(const struct confirmer *c)
{
    double best = 0;
    for (size_t i = 0; i < c->out->candidates.list.count; i++) {
        const struct plim_candidate *k = &c->out->candidates.list.items[i];
        if (k->allowed && !k->refuted && k->tokens_per_second > best) best = k->tokens_per_second;
    }
    return best;
}

/* Where bytes decide, what needs least comes first and the rest need not be timed. */
static bool is_better(const struct confirmer *c, const struct plim_candidate *a,
                      const struct plim_candidate *b)
{
    if (c->in->objective == PLIM_OBJECTIVE_LEAST_MEMORY)
        return a->replay.peak_reserved_bytes < b->replay.peak_reserved_bytes;
    if (c->in->objective == PLIM_OBJECTIVE_LARGEST_BATCH)
        return a->batch.micro_batch * a->setting.seq > b->batch.micro_batch * b->setting.seq;
    return promise(c, a) > promise(c, b);
}

/* Of those that the plan puts in a tie with the fastest of their point, the one that needs least:
 * what the tie would go to. */
static bool is_thriftiest(const struct confirmer *c, const struct plim_candidate *p)
{
    double best = 0;
    for (size_t i = 0; i < c->in->plan->candidates.list.count; i++) {
        const struct plim_candidate *k = planned(c, i);
        if (k->point == p->point && k->allowed && !k->refuted)
            best = fmax(best, k->tokens_per_second);
    }
    double tie = best * (1 - PLIM_TIE_SHARE);
    if (p->tokens_per_second < tie) return false;
    for (size_t i = 0; i < c->in->plan->candidates.list.count; i++) {
        const struct plim_candidate *k = planned(c, i);
        if (k->point == p->point && k->allowed && !k->refuted && k->tokens_per_second >= tie &&
            k->replay.peak_reserved_bytes < p->replay.peak_reserved_bytes)
            return false;
    }
    return true;
}

/* Was no micro-batch of nearly this size run at its point? Multiples of eight, which fill tiles, are
 * not like their neighbours. */
static bool is_apart(const struct confirmer *c, const struct plim_candidate *p)
{
    int64_t round = p->batch.micro_batch % 8 == 0 ? 8 : 1;
    for (size_t i = 0; i < c->in->plan->candidates.list.count; i++) {
        const struct plim_candidate *k = planned(c, i);
        double gap = fabs((double)(k->batch.micro_batch - p->batch.micro_batch));
        if (c->asked[i] && k->point == p->point && k->batch.micro_batch % round == 0 &&
            gap < APART_SHARE * (double)p->batch.micro_batch)
            return false;
    }
    return true;
}

static bool is_worth_a_run(const struct confirmer *c, const struct plim_candidate *p, double best)
{
    size_t runs = c->runs[p->point];
    if (!p->allowed || p->refuted || promise(c, p) < best || runs == RUNS_PER_POINT) return false;
    if (runs == 0 || is_thriftiest(c, p)) return true;
    return promise(c, p) >= best * (1 + PLIM_TIE_SHARE) && is_apart(c, p);
}

/* The planned candidate to be run next; -1: none that could win. */
static int next_candidate(const struct confirmer *c)
{
    double best = best_rate(c);
    int next = -1;
    bool by_time = c->in->objective != PLIM_OBJECTIVE_LEAST_MEMORY &&
                   c->in->objective != PLIM_OBJECTIVE_LARGEST_BATCH;
    if (best > 0 && !by_time) return -1;
    for (size_t i = 0; i < c->in->plan->candidates.list.count; i++) {
        const struct plim_candidate *p = planned(c, i);
        if (c->asked[i] || !is_worth_a_run(c, p, best)) continue;
        if (next < 0 || is_better(c, p, planned(c, (size_t)next))) next = (int)i;
    }
    return next;
}

/* The plan was wrong about this point's memory: it is searched on the card, and its largest taken. */
static enum plim_status search_anew(struct confirmer *c, size_t point,
                                    struct plim_candidate **timed)
{
    struct plim_edge *edge = &c->out->edges.items[point];
    enum plim_status st = plim_search_edge(c->in->prober, &c->out->rule,
                                           &c->out->space.points.items[point], edge, c->err);
    int64_t largest = st ? 0 : plim_batch_below(&c->out->rule, edge->fits, 1);
    return st || !largest ? st : plim_rank_one(c->ranker, point, largest, timed, c->err);
}

static enum plim_status ask(struct confirmer *c, size_t i)
{
    const struct plim_candidate *p = planned(c, i);
    struct plim_candidate *timed;
    c->asked[i] = true;
    c->runs[p->point]++;
    enum plim_status st = plim_rank_one(c->ranker, p->point, p->batch.micro_batch, &timed, c->err);
    bool as_planned = timed != NULL;
    if (!st && !as_planned) st = search_anew(c, p->point, &timed);
    if (st || !as_planned || p->tokens_per_second <= 0) return st;
    c->seen_anywhere = timed->tokens_per_second / p->tokens_per_second;
    c->seen[p->point] = fmax(c->seen[p->point], c->seen_anywhere);
    return PLIM_OK;
}

enum plim_status plim_confirm(const struct plim_tuning *tuning, struct plim_decision *decision,
                              struct plim_ranker *ranker, struct plim_error *err)
{
    const struct plim_decision *plan = tuning->plan;
    struct confirmer c = {.in = tuning, .out = decision, .ranker = ranker, .err = err};
    enum plim_status st = PLIM_OK;
    c.asked = calloc(plan->candidates.list.count + 1, sizeof(*c.asked));
    c.runs = calloc(plan->space.points.count + 1, sizeof(*c.runs));
    c.seen = calloc(plan->space.points.count + 1, sizeof(*c.seen));
    if (!c.asked || !c.runs || !c.seen) st = plim_fail(err, PLIM_NOMEM, "out of host memory");
    for (int next; !st && (next = next_candidate(&c)) >= 0;) st = ask(&c, (size_t)next);
    free(c.asked);
    free(c.runs);
    free(c.seen);
    return st;
}
