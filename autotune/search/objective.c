#include "objective.h"
#include "points.h"
#include <math.h>

/* --- worth ------------------------------------------------------------------------------------ */

static double rate(const struct plim_candidate *c)
{
    return c->tokens_per_second;
}

static double tokens(const struct plim_candidate *c)
{
    return (double)c->batch.micro_batch * (double)c->seq;
}

static double saved_memory(const struct plim_candidate *c)
{
    return -(double)c->trial.reserved_bytes;
}

/* --- ties ------------------------------------------------------------------------------------- */

static int less_memory(const struct plim_candidate *a, const struct plim_candidate *b)
{
    int64_t x = a->trial.reserved_bytes, y = b->trial.reserved_bytes;
    return (x > y) - (x < y);
}

static int faster(const struct plim_candidate *a, const struct plim_candidate *b)
{
    double x = a->tokens_per_second, y = b->tokens_per_second;
    return (x < y) - (x > y);
}

static int earlier_point(const struct plim_candidate *a, const struct plim_candidate *b)
{
    return (a->point > b->point) - (a->point < b->point);
}

static int by_memory(const struct plim_candidate *a, const struct plim_candidate *b)
{
    int order = less_memory(a, b);
    return order ? order : faster(a, b);
}

static int by_rate(const struct plim_candidate *a, const struct plim_candidate *b)
{
    int order = faster(a, b);
    return order ? order : less_memory(a, b);
}

static int by_preference(const struct plim_candidate *a, const struct plim_candidate *b)
{
    int order = earlier_point(a, b);
    return order ? order : by_memory(a, b);
}

const struct plim_objective_row plim_objectives[PLIM_OBJECTIVE_COUNT] = {
    [PLIM_OBJECTIVE_THROUGHPUT] = {.worth = rate,
                                   .tie_share = PLIM_TIE_SHARE,
                                   .by_time = true,
                                   .untimed = PLIM_OBJECTIVE_LARGEST_BATCH,
                                   .compare_ties = by_memory,
                                   .search = plim_points_fastest},
    [PLIM_OBJECTIVE_BALANCED] = {.worth = rate,
                                 .tie_share = 0.10,
                                 .by_time = true,
                                 .untimed = PLIM_OBJECTIVE_LARGEST_BATCH,
                                 .compare_ties = by_memory,
                                 .search = plim_points_fastest},
    [PLIM_OBJECTIVE_LONGEST_SEQUENCE] = {.worth = rate,
                                         .untimed = PLIM_OBJECTIVE_LONGEST_SEQUENCE,
                                         .tie_share = PLIM_TIE_SHARE,
                                         .by_time = true,
                                         .wants_longest = true,
                                         .compare_ties = by_memory,
                                         .search = plim_points_fastest},
    [PLIM_OBJECTIVE_LEAST_MEMORY] = {.worth = saved_memory,
                                     .tie_share = PLIM_TIE_SHARE,
                                     .untimed = PLIM_OBJECTIVE_LEAST_MEMORY,
                                     .compare_ties = by_rate,
                                     .search = plim_points_smallest},
    [PLIM_OBJECTIVE_LARGEST_BATCH] = {.worth = tokens,
                                      .untimed = PLIM_OBJECTIVE_LARGEST_BATCH,
                                      .compare_ties = by_preference,
                                      .search = plim_points_largest},
#define NAME(id, text) [PLIM_OBJECTIVE_##id].name = text,
    PLIM_OBJECTIVE_MAP(NAME)
#undef NAME
};

/* --- the choice ------------------------------------------------------------------------------- */

static int64_t longest_sequence(const struct plim_candidates *candidates)
{
    int64_t seq = 0;
    for (size_t i = 0; i < candidates->list.count; i++) {
        const struct plim_candidate *c = &candidates->list.items[i];
        if (plim_candidate_may_win(c) && c->seq > seq) seq = c->seq;
    }
    return seq;
}

/* True if `a` is better than `b` and both are tied with the best. An exact effective batch is preferred. This is a
 * total order, so that the result is unique. */
static bool wins_tie(const struct plim_objective_row *row, const struct plim_candidate *a,
                     const struct plim_candidate *b)
{
    if (a->batch.exact != b->batch.exact) return a->batch.exact;
    int order = row->compare_ties(a, b);
    if (!order) order = earlier_point(a, b);
    return order ? order < 0 : a->batch.micro_batch < b->batch.micro_batch;
}

/* Selects the candidates that count. */
struct filter {
    bool one_point;
    size_t point;
    int64_t seq; /* 0: any */
};

static bool counts(const struct plim_candidate *c, const struct filter *filter)
{
    return plim_candidate_may_win(c) && (!filter->seq || c->seq == filter->seq) &&
           (!filter->one_point || c->point == filter->point);
}

static int choose(const struct plim_candidates *candidates, const struct plim_objective_row *row,
                  const struct filter *filter)
{
    double best = -HUGE_VAL;
    int chosen = -1;
    for (size_t i = 0; i < candidates->list.count; i++) {
        const struct plim_candidate *c = &candidates->list.items[i];
        if (counts(c, filter)) best = fmax(best, row->worth(c));
    }
    double enough = best * (best > 0 ? 1 - row->tie_share : 1 + row->tie_share);
    for (size_t i = 0; i < candidates->list.count; i++) {
        const struct plim_candidate *c = &candidates->list.items[i];
        if (!counts(c, filter) || row->worth(c) < enough) continue;
        if (chosen < 0 || wins_tie(row, c, &candidates->list.items[chosen])) chosen = (int)i;
    }
    return chosen;
}

int plim_choose(const struct plim_candidates *candidates, enum plim_objective objective)
{
    const struct plim_objective_row *row = &plim_objectives[objective];
    const struct filter filter = {.seq = row->wants_longest ? longest_sequence(candidates) : 0};
    return choose(candidates, row, &filter);
}

int plim_choose_of_point(const struct plim_candidates *candidates, enum plim_objective objective,
                         size_t point)
{
    const struct filter filter = {.one_point = true, .point = point};
    return choose(candidates, &plim_objectives[objective], &filter);
}
