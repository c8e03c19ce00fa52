#include "prove.h"

/* A choice may change when its neighbour turns out better, or when it fails in full; it ends
 * because every round runs something new or is the last. */
enum { ROUNDS = 64 };

struct prover {
    const struct plim_tuning *in;
    struct plim_decision *out;
    struct plim_ranker *ranker;
    struct plim_error *err;
};

void plim_take_choice(const struct plim_tuning *tuning, struct plim_decision *decision)
{
    int chosen = plim_choose(&decision->candidates, tuning->objective);
    decision->found = chosen >= 0;
    if (decision->found) decision->choice = decision->candidates.list.items[chosen];
}

/* Asks what a micro-batch of a point does; a failure is run under the budget for its reason. */
static enum plim_status look_beyond(struct prover *p, size_t point, int64_t micro_batch,
                                    struct plim_beyond *beyond)
{
    const struct plim_sample *sample;
    struct plim_candidate *candidate;
    *beyond = (struct plim_beyond){.micro_batch = micro_batch};
    if (!micro_batch) return PLIM_OK;
    enum plim_status st = plim_rank_one(p->ranker, point, micro_batch, &candidate, p->err);
    if (st) return st;
    struct plim_batch batch;
    plim_batch_allowed(&p->out->rule, micro_batch, &batch);
    struct plim_setting setting = plim_space_setting(&p->out->space.points.items[point], &batch);
    if (candidate && candidate->refuted && batch.accumulation <= PLIM_VERIFIED_STEPS)
        setting.accumulation = batch.accumulation;
    st = plim_probe(p->in->prober, &setting, PLIM_WANT_REASON, &sample, p->err);
    if (st) return st;
    beyond->tried = true;
    beyond->verdict = sample->verdict;
    beyond->replay = sample->replay;
    if (candidate) beyond->tokens_per_second = candidate->tokens_per_second;
    return PLIM_OK;
}

/* What fits beyond the edge of its point fits by luck, and nobody should train on it. */
static enum plim_status stay_below_edge(struct prover *p, size_t point)
{
    struct plim_edge *edge = &p->out->edges.items[point];
    enum plim_status st = plim_search_edge(p->in->prober, &p->out->rule,
                                           &p->out->space.points.items[point], edge, p->err);
    for (size_t i = 0; !st && i < p->out->candidates.list.count; i++) {
        struct plim_candidate *c = &p->out->candidates.list.items[i];
        if (c->point == point && c->batch.micro_batch > edge->fits) c->refuted = true;
    }
    return st;
}

static enum plim_status settle_choice(struct prover *p)
{
    struct plim_decision *out = p->out;
    for (int round = 0; round < ROUNDS; round++) {
        int chosen = plim_choose(&out->candidates, p->in->objective);
        out->found = chosen >= 0;
        if (!out->found) return PLIM_OK;
        enum plim_status st = stay_below_edge(p, out->candidates.list.items[chosen].point);
        if (!st) st = plim_rank_verify(p->ranker, &out->candidates.list.items[chosen], p->err);
        if (st) return st;
        if (plim_choose(&out->candidates, p->in->objective) != chosen) continue;
        out->choice = out->candidates.list.items[chosen];
        int64_t next = plim_batch_next(&out->rule, out->choice.batch.micro_batch);
        st = look_beyond(p, out->choice.point, next, &out->after_choice);
        if (st || plim_choose(&out->candidates, p->in->objective) == chosen) return st;
    }
    return PLIM_OK;
}

/* The largest micro-batch of a point, proven like the choice. */
static enum plim_status settle_largest(struct prover *p, size_t point)
{
    struct plim_decision *out = p->out;
    struct plim_edge *edge = &out->edges.items[point];
    enum plim_status st =
        plim_search_edge(p->in->prober, &out->rule, &out->space.points.items[point], edge, p->err);
    for (int64_t b = edge->fits; !st && b > 0; b--) {
        struct plim_candidate *candidate;
        st = plim_rank_one(p->ranker, point, b, &candidate, p->err);
        bool verifies = !st && candidate && !p->in->prober->runner->costly;
        if (verifies) st = plim_rank_verify(p->ranker, candidate, p->err);
        if (st || !candidate || candidate->refuted) continue;
        out->largest = *candidate;
        out->has_largest = true;
        return look_beyond(p, point, plim_batch_after(&out->rule, b), &out->after_largest);
    }
    return st;
}

/* --- when nothing fits ------------------------------------------------------------------------ */

static enum plim_status find_smallest(struct prover *p)
{
    struct plim_decision *out = p->out;
    struct plim_batch batch;
    plim_batch_allowed(&out->rule, plim_batch_next(&out->rule, 0), &batch);
    for (size_t i = 0; i < out->space.points.count; i++) {
        const struct plim_memo_entry *entry;
        struct plim_setting setting = plim_space_setting(&out->space.points.items[i], &batch);
        enum plim_status st = plim_probe_need(p->in->prober, &setting, &entry, p->err);
        if (st) return st;
        if (!entry || (out->has_smallest &&
                       entry->replay.peak_reserved_bytes >= out->smallest_reserved_bytes))
            continue;
        out->has_smallest = true;
        out->smallest_reserved_bytes = entry->replay.peak_reserved_bytes;
        out->smallest = setting;
        out->smallest.accumulation = batch.accumulation;
    }
    return PLIM_OK;
}

/* Something may fit that the user did not allow. */
static size_t widest_point(const struct plim_decision *decision)
{
    size_t widest = 0;
    for (size_t i = 1; i < decision->edges.count; i++)
        if (decision->edges.items[i].fits > decision->edges.items[widest].fits) widest = i;
    return widest;
}

/* No point came to its end: the first tells why. */
static void take_failure(struct prover *p)
{
    struct plim_batch batch;
    plim_batch_allowed(&p->out->rule, plim_batch_next(&p->out->rule, 0), &batch);
    struct plim_setting setting = plim_space_setting(&p->out->space.points.items[0], &batch);
    const struct plim_sample *sample = plim_probe_known(p->in->prober, &setting);
    if (sample) p->out->smallest_sample = *sample;
}

/* Where the smallest setting of a point did not run to its end, and not for lack of memory, nobody
 * knows whether it fits. */
static bool find_failure(struct prover *p)
{
    struct plim_batch batch;
    plim_batch_allowed(&p->out->rule, plim_batch_next(&p->out->rule, 0), &batch);
    for (size_t i = 0; i < p->out->space.points.count && !p->out->failed; i++) {
        struct plim_setting setting = plim_space_setting(&p->out->space.points.items[i], &batch);
        const struct plim_sample *sample = plim_probe_known(p->in->prober, &setting);
        p->out->failed = sample && sample->verdict != PLIM_OK && sample->verdict != PLIM_OOM &&
                         sample->verdict != PLIM_UNSUPPORTED;
        if (p->out->failed) p->out->smallest_sample = *sample;
    }
    return p->out->failed;
}

static enum plim_status settle_nothing(struct prover *p)
{
    struct plim_decision *out = p->out;
    const struct plim_sample *sample;
    if (find_failure(p)) return PLIM_OK;
    enum plim_status st = find_smallest(p);
    if (!st && !out->has_smallest) take_failure(p);
    if (st || !out->has_smallest || p->in->prober->runner->budget_bytes <= 0) return st;
    struct plim_setting probed = out->smallest;
    if (probed.accumulation > PLIM_PROBED_STEPS) probed.accumulation = PLIM_PROBED_STEPS;
    st = plim_probe(p->in->prober, &probed, PLIM_WANT_REASON, &sample, p->err);
    if (st) return st;
    out->smallest_sample = *sample;
    if (p->in->spec->variants) return PLIM_OK; /* a user's program: nothing to change in it */
    return plim_advise(p->in->prober, p->in->spec, &out->smallest, &out->advices, p->err);
}

enum plim_status plim_prove(const struct plim_tuning *tuning, struct plim_decision *decision,
                            struct plim_ranker *ranker, struct plim_error *err)
{
    struct prover p = {.in = tuning, .out = decision, .ranker = ranker, .err = err};
    enum plim_status st = settle_choice(&p);
    if (st) return st;
    if (decision->found) return settle_largest(&p, decision->choice.point);
    size_t widest = widest_point(decision);
    if (decision->edges.items[widest].fits) st = settle_largest(&p, widest);
    return st ? st : settle_nothing(&p);
}
