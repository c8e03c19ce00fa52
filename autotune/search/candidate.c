#include "candidate.h"

bool plim_candidate_may_win(const struct plim_candidate *c)
{
    return c->allowed && !c->refuted;
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

double plim_candidates_best_rate(const struct plim_candidates *candidates)
{
    double best = 0;
    for (size_t i = 0; i < candidates->list.count; i++) {
        const struct plim_candidate *c = &candidates->list.items[i];
        if (plim_candidate_may_win(c) && c->tokens_per_second > best) best = c->tokens_per_second;
    }
    return best;
}
