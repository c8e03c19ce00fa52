#include "longest.h"
#include "points.h"
#include "search.h"
#include "validate.h"
#include "verify.h"
#include <stdio.h>

/* --- searching -------------------------------------------------------------------------------- */

/* Collects the sequence lengths of the plan's points, in their order. `seqs` has room for as many as points. */
static size_t planned_seqs(const struct plim_decision *plan, int64_t *seqs)
{
    const struct plim_axes *axes = &plan->question->axes;
    size_t count = 0;
    for (size_t i = 0; i < plan->space.points.count; i++) {
        int64_t seq = plim_axes_seq(axes, &plan->space.points.items[i]);
        if (!count || seqs[count - 1] != seq) seqs[count++] = seq;
    }
    return count;
}

/* Validates the plan on the GPU. *done is true if the GPU confirmed at least one of its candidates. */
static enum plim_status search_planned(struct plim_search *s, bool *done)
{
    const struct plim_decision *plan = s->known.plan;
    int64_t *seqs = calloc(plan->space.points.count + 1, sizeof(*seqs));
    if (!seqs) return plim_search_no_memory(s);
    bool lengthens = plim_objectives[s->question->objective].wants_longest;
    enum plim_status st =
        plim_search_points(s, lengthens ? seqs : NULL, planned_seqs(plan, seqs), plan);
    free(seqs);
    if (!st) st = plim_validate(s);
    *done = !st && plim_choose(&s->decision->candidates, s->question->objective) >= 0;
    return st;
}

/* Searches level by level, until one has a candidate that fits for any number of steps. */
static enum plim_status search_levels(struct plim_search *s)
{
    const struct plim_objective_row *objective = &plim_objectives[s->question->objective];
    const struct plim_space *space = &s->decision->space;
    enum plim_status st = PLIM_OK;
    s->end = 0;
    for (size_t level = 0; level < space->level_ends.count && !st && !s->decision->found; level++) {
        s->first = s->end;
        s->end = space->level_ends.items[level];
        st = objective->search(s);
        if (!st) st = plim_verify_choice(s);
    }
    s->decision->searched = s->end;
    s->first = 0; /* earlier levels belong to the answer too */
    return st;
}

/* Finds the choice, from the plan if there is one. */
static enum plim_status search(struct plim_search *s)
{
    const struct plim_objective_row *objective = &plim_objectives[s->question->objective];
    int64_t longest = 0;
    bool done = false;
    enum plim_status st = s->known.plan ? search_planned(s, &done) : PLIM_OK;
    if (st) return st;
    if (done) return plim_verify_choice(s);
    s->decision->candidates.list.count = 0; /* these have the plan's points */
    bool lengthens = objective->wants_longest && s->question->axes.seq >= 0;
    if (lengthens) st = plim_longest_sequence(s, &longest);
    if (!st) st = plim_search_points(s, lengthens ? &longest : NULL, lengthens, NULL);
    return st ? st : search_levels(s);
}

/* Finds the best of every point. Running out of time only ends this part. If a better choice is found, it is proven. */
static enum plim_status compare(struct plim_search *s)
{
    struct plim_error *kept = s->err, own = PLIM_ERROR_INIT;
    const struct plim_decision *out = s->decision;
    if (s->prober->runner->budget_bytes <= 0) return PLIM_OK;
    s->err = &own;
    enum plim_status st = plim_points_compare(s);
    s->err = kept;
    if (st == PLIM_TIMEOUT) return PLIM_OK;
    if (st) {
        *kept = own;
        return st;
    }
    int chosen = plim_choose(&out->candidates, s->question->objective);
    const struct plim_candidate *best = chosen < 0 ? NULL : &out->candidates.list.items[chosen];
    bool changed = best && (!out->found || best->point != out->choice.point ||
                            best->batch.micro_batch != out->choice.batch.micro_batch);
    if (!changed) return PLIM_OK;
    st = plim_verify_choice(s);
    return st ? st : plim_verify_bounds(s);
}

/* --- the decision ----------------------------------------------------------------------------- */

static void compare_with_plan(struct plim_decision *decision, const struct plim_decision *plan)
{
    for (size_t i = 0; decision->found && i < plan->candidates.list.count; i++) {
        const struct plim_candidate *p = &plan->candidates.list.items[i];
        if (p->batch.micro_batch != decision->choice.batch.micro_batch ||
            !plim_setting_same_point(&p->setting, &decision->choice.setting))
            continue;
        decision->was_planned = true;
        decision->planned_seconds = p->step_seconds;
        decision->planned_reserved_bytes = p->trial.reserved_bytes;
        if (plan->edges.items[p->point].exact)
            decision->planned_edge = plan->edges.items[p->point].fits;
    }
}

static bool is_early_end(enum plim_status st, const struct plim_prober *prober)
{
    bool device_gone = st == PLIM_LOST || st == PLIM_NODEVICE;
    return st == PLIM_CANCELLED || st == PLIM_TIMEOUT || (device_gone && prober->samples.count);
}

enum plim_status plim_decide(const struct plim_question *question, const struct plim_known *known,
                             struct plim_prober *prober, struct plim_decision *decision,
                             struct plim_error *err)
{
    struct plim_search s;
    struct plim_error own = PLIM_ERROR_INIT;
    if (!err) err = &own;
    enum plim_status st = plim_search_init(&s, question, prober, decision, err);
    if (st) return st;
    if (known) s.known = *known;
    int64_t smallest;
    st = plim_batch_smallest(&decision->rule, &smallest, err);
    if (st) return st;
    st = search(&s);
    if (!st) st = plim_verify_bounds(&s);
    if (!st && s.known.compares) st = compare(&s);
    if (!st && s.known.plan) compare_with_plan(decision, s.known.plan);
    if (!is_early_end(st, prober)) return st;
    decision->ended = st;
    snprintf(decision->ended_why, sizeof(decision->ended_why), "%.199s", err->text);
    plim_verify_so_far(&s);
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
