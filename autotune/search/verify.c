#include "verify.h"
#include "search.h"
#include "throughput.h"

/* Bound of the rounds of plim_verify_choice(). A choice changes if its neighbour turns out to be better, or if it does
 * not fit with all its micro-steps; each round but the last makes a new run. */
enum { ROUNDS = 64 };

static int chosen_now(const struct plim_search *s)
{
    return plim_choose(&s->decision->candidates, s->question->objective);
}

/* Makes candidates of a program's trials that fitted, even if the edge of their point was not found. Runs nothing. */
static void add_trials(struct plim_search *s)
{
    struct plim_error *kept = s->err, own = PLIM_ERROR_INIT;
    s->err = &own;
    for (size_t i = 0; i < s->prober->samples.count; i++) {
        const struct plim_sample sample = s->prober->samples.items[i];
        struct plim_candidate *candidate;
        for (size_t point = 0; point < s->decision->edges.count && sample.verdict == PLIM_OK; point++) {
            struct plim_setting setting = plim_search_setting(s, point, sample.setting.micro_batch);
            if (!plim_setting_equal(&setting, &sample.setting)) continue;
            if (plim_throughput_time(s, point, setting.micro_batch, &candidate)) break; /* no memory */
        }
    }
    s->err = kept;
}

void plim_verify_so_far(struct plim_search *s)
{
    if (s->prober->runner->costly) add_trials(s);
    int chosen = chosen_now(s);
    s->decision->found = chosen >= 0;
    if (s->decision->found) s->decision->choice = s->decision->candidates.list.items[chosen];
}

/* Tries a micro-batch of a point. If it fails, it is run under the budget, which shows the reason. */
static enum plim_status try_beyond(struct plim_search *s, size_t point, int64_t micro_batch,
                                   struct plim_beyond *beyond)
{
    const struct plim_sample *sample;
    struct plim_candidate *candidate;
    *beyond = (struct plim_beyond){.micro_batch = micro_batch};
    if (!micro_batch) return PLIM_OK;
    enum plim_status st = plim_throughput_time(s, point, micro_batch, &candidate);
    if (st) return st;
    struct plim_setting setting = plim_search_setting(s, point, micro_batch);
    if (candidate && candidate->refuted) setting = candidate->setting;
    st = plim_probe(s->prober, &setting, PLIM_WANT_REASON, &sample, s->err);
    if (st) return st;
    beyond->tried = true;
    beyond->verdict = sample->verdict;
    beyond->trial = sample->trial;
    if (candidate) beyond->tokens_per_second = candidate->tokens_per_second;
    return PLIM_OK;
}

/* A micro-batch beyond the edge of its point fits only by chance, and must not be chosen. */
enum plim_status plim_verify_below_edge(struct plim_search *s, size_t point)
{
    const struct plim_edge *edge = &s->decision->edges.items[point];
    enum plim_status st = plim_edge_find(s, point, PLIM_EDGE_OF_ALL);
    for (size_t i = 0; !st && i < s->decision->candidates.list.count; i++) {
        struct plim_candidate *c = &s->decision->candidates.list.items[i];
        if (c->point == point && c->batch.micro_batch > edge->fits) c->refuted = true;
    }
    return st;
}

/* Verifies a candidate. If it does not fit for any number of steps, adds the next smaller one. */
static enum plim_status verify_candidate(struct plim_search *s, size_t index)
{
    struct plim_candidate *c = &s->decision->candidates.list.items[index], *smaller;
    enum plim_status st = plim_throughput_verify(s, c);
    if (st || !c->refuted) return st;
    int64_t below = plim_batch_below(&s->decision->rule, c->batch.micro_batch - 1, 1);
    return below ? plim_throughput_time(s, c->point, below, &smaller) : PLIM_OK;
}

enum plim_status plim_verify_choice(struct plim_search *s)
{
    struct plim_decision *out = s->decision;
    for (int round = 0; round < ROUNDS; round++) {
        int chosen = chosen_now(s);
        out->found = chosen >= 0;
        if (!out->found) return PLIM_OK;
        enum plim_status st = plim_verify_below_edge(s, out->candidates.list.items[chosen].point);
        if (!st) st = verify_candidate(s, (size_t)chosen);
        if (st) return st;
        if (chosen_now(s) != chosen) continue;
        out->choice = out->candidates.list.items[chosen];
        int64_t next = plim_batch_next(&out->rule, out->choice.batch.micro_batch);
        st = try_beyond(s, out->choice.point, next, &out->after_choice);
        if (st || chosen_now(s) == chosen) return st;
    }
    return PLIM_OK;
}

/* Finds the largest micro-batch of a point, proven like the choice. */
static enum plim_status verify_largest(struct plim_search *s, size_t point)
{
    struct plim_decision *out = s->decision;
    const struct plim_edge *edge = &out->edges.items[point];
    enum plim_status st = plim_edge_find(s, point, PLIM_EDGE_OF_ALL);
    for (int64_t b = edge->fits; !st && b > 0; b--) {
        struct plim_candidate *candidate;
        st = plim_throughput_time(s, point, b, &candidate);
        bool verifies = !st && candidate && !s->prober->runner->costly;
        if (verifies) st = plim_throughput_verify(s, candidate);
        if (st || !candidate || candidate->refuted) continue;
        out->largest = *candidate;
        out->has_largest = true;
        return try_beyond(s, point, plim_batch_after(&out->rule, b), &out->after_largest);
    }
    return st;
}

/* --- when nothing fits ------------------------------------------------------------------------ */

/* Returns the setting of a point at its smallest allowed micro-batch. */
static struct plim_setting smallest_of(const struct plim_search *s, size_t point)
{
    return plim_search_setting(s, point, plim_batch_next(&s->decision->rule, 0));
}

static enum plim_status find_smallest(struct plim_search *s)
{
    struct plim_decision *out = s->decision;
    struct plim_batch batch;
    plim_batch_allowed(&out->rule, plim_batch_next(&out->rule, 0), &batch);
    for (size_t i = 0; i < out->space.points.count; i++) {
        const struct plim_cache_entry *entry;
        struct plim_setting setting = smallest_of(s, i);
        enum plim_status st = plim_probe_need(s->prober, &setting, &entry, s->err);
        if (st) return st;
        if (!entry ||
            (out->has_smallest && entry->trial.reserved_bytes >= out->smallest_reserved_bytes))
            continue;
        out->has_smallest = true;
        out->smallest_reserved_bytes = entry->trial.reserved_bytes;
        out->smallest = setting;
        out->smallest.accumulation = batch.accumulation;
    }
    return PLIM_OK;
}

/* Finds the point with the largest edge, also of micro-batches that may not be chosen. */
static enum plim_status find_widest(struct plim_search *s, size_t *widest)
{
    const struct plim_edge *edges = s->decision->edges.items;
    *widest = 0;
    for (size_t i = 0; i < s->decision->edges.count; i++) {
        enum plim_status st =
            edges[i].searched ? plim_edge_find(s, i, PLIM_EDGE_OF_ALL) : PLIM_OK;
        if (st) return st;
        if (edges[i].fits > edges[*widest].fits) *widest = i;
    }
    return PLIM_OK;
}

/* If no point finished, the first gives the reason. */
static void set_failure(struct plim_search *s)
{
    struct plim_setting setting = smallest_of(s, 0);
    const struct plim_sample *sample = plim_probe_known(s->prober, &setting);
    if (sample) s->decision->smallest_sample = *sample;
}

/* Sets `failed` if the smallest setting of a point failed for a reason other than memory, so that it is not known
 * whether it fits. */
static bool find_failure(struct plim_search *s)
{
    struct plim_decision *out = s->decision;
    for (size_t i = 0; i < out->space.points.count && !out->failed; i++) {
        struct plim_setting setting = smallest_of(s, i);
        const struct plim_sample *sample = plim_probe_known(s->prober, &setting);
        out->failed = sample && sample->verdict != PLIM_OK && sample->verdict != PLIM_OOM &&
                      sample->verdict != PLIM_UNSUPPORTED;
        if (out->failed) out->smallest_sample = *sample;
    }
    return out->failed;
}

static enum plim_status explain_nothing(struct plim_search *s)
{
    struct plim_decision *out = s->decision;
    const struct plim_sample *sample;
    if (find_failure(s)) return PLIM_OK;
    enum plim_status st = find_smallest(s);
    if (!st && !out->has_smallest) set_failure(s);
    if (st || !out->has_smallest || s->prober->runner->budget_bytes <= 0) return st;
    struct plim_setting probed = out->smallest;
    probed.accumulation = plim_runner_probed(s->prober->runner, probed.accumulation);
    st = plim_probe(s->prober, &probed, PLIM_WANT_REASON, &sample, s->err);
    if (st) return st;
    out->smallest_sample = *sample;
    return plim_advise(s->question, s->prober, &out->smallest, &out->advices, s->err);
}

enum plim_status plim_verify_bounds(struct plim_search *s)
{
    struct plim_decision *out = s->decision;
    if (out->found)
        return plim_edge_goes_beyond_allowed(s) ? verify_largest(s, out->choice.point) : PLIM_OK;
    size_t widest;
    enum plim_status st = find_widest(s, &widest);
    if (!st && out->edges.items[widest].fits) st = verify_largest(s, widest);
    return st ? st : explain_nothing(s);
}
