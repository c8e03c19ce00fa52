#include "choose.h"

const char *const plim_objective_names[PLIM_OBJECTIVE_COUNT] = {"throughput", "longest-sequence",
                                                                "least-memory", "largest-batch"};

static bool may_win(const struct plim_candidate *c)
{
    return c->allowed && !c->refuted;
}

/* Is a better than b, by the measure that breaks ties, with an order for what is equal in all? */
static bool wins_tie(const struct plim_candidate *a, const struct plim_candidate *b,
                     enum plim_objective objective)
{
    int64_t ma = a->replay.peak_reserved_bytes, mb = b->replay.peak_reserved_bytes;
    double ta = a->tokens_per_second, tb = b->tokens_per_second;
    if (objective == PLIM_OBJECTIVE_LARGEST_BATCH && a->point != b->point)
        return a->point < b->point;
    if (objective != PLIM_OBJECTIVE_LEAST_MEMORY && ma != mb) return ma < mb;
    if (ta < tb || ta > tb) return ta > tb;
    if (ma != mb) return ma < mb;
    if (a->point != b->point) return a->point < b->point;
    return a->batch.micro_batch < b->batch.micro_batch;
}

static int64_t longest_sequence(const struct plim_candidates *candidates)
{
    int64_t seq = 0;
    for (size_t i = 0; i < candidates->list.count; i++) {
        const struct plim_candidate *c = &candidates->list.items[i];
        if (may_win(c) && c->setting.seq > seq) seq = c->setting.seq;
    }
    return seq;
}

static double tokens(const struct plim_candidate *c)
{
    return (double)c->batch.micro_batch * (double)c->setting.seq;
}

/* Best value of what the objective measures: a rate or a number to be high, or bytes to be low. */
static bool is_close(const struct plim_candidate *c, enum plim_objective objective, double best)
{
    if (objective == PLIM_OBJECTIVE_LEAST_MEMORY)
        return (double)c->replay.peak_reserved_bytes <= best * (1 + PLIM_TIE_SHARE);
    if (objective == PLIM_OBJECTIVE_LARGEST_BATCH) return tokens(c) >= best;
    return c->tokens_per_second >= best * (1 - PLIM_TIE_SHARE);
}

static double best_value(const struct plim_candidates *candidates, enum plim_objective objective,
                         int64_t seq)
{
    double best = -1;
    for (size_t i = 0; i < candidates->list.count; i++) {
        const struct plim_candidate *c = &candidates->list.items[i];
        if (!may_win(c) || (seq && c->setting.seq != seq)) continue;
        double memory = (double)c->replay.peak_reserved_bytes;
        double value = objective == PLIM_OBJECTIVE_LARGEST_BATCH ? tokens(c) : c->tokens_per_second;
        if (objective == PLIM_OBJECTIVE_LEAST_MEMORY)
            best = best < 0 || memory < best ? memory : best;
        else if (value > best) best = value;
    }
    return best;
}

int plim_choose(const struct plim_candidates *candidates, enum plim_objective objective)
{
    int64_t seq = objective == PLIM_OBJECTIVE_LONGEST_SEQUENCE ? longest_sequence(candidates) : 0;
    double best = best_value(candidates, objective, seq);
    int chosen = -1;
    for (size_t i = 0; i < candidates->list.count; i++) {
        const struct plim_candidate *c = &candidates->list.items[i];
        if (!may_win(c) || (seq && c->setting.seq != seq) || !is_close(c, objective, best))
            continue;
        if (chosen < 0 || wins_tie(c, &candidates->list.items[chosen], objective)) chosen = (int)i;
    }
    return chosen;
}

struct plim_candidate *plim_candidate_find(const struct plim_candidates *candidates, size_t point,
                                           int64_t micro_batch)
{
    for (size_t i = 0; i < candidates->list.count; i++) {
        struct plim_candidate *c = &candidates->list.items[i];
        if (c->point == point && c->batch.micro_batch == micro_batch) return c;
    }
    return NULL;
}
