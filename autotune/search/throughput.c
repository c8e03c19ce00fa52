#include "throughput.h"
#include "search.h"
#include <math.h>

/* Bound of the effect of waves of tiles on the rate, between a micro-batch and the next smaller one that divides the
 * same effective batch: up to 8 % in a plan of GPT-2 124M on all GPUs of the catalogue. */
static const double WAVE_SHARE = 0.1;

enum { TIMED_AT_MOST = 12, FEW = 10, TIE_STEPS = 4 };

static void set_rate(const struct plim_axes *axes, struct plim_candidate *c)
{
    double tokens = (double)c->batch.effective * (double)plim_axes_tokens(axes, &c->setting);
    c->tokens_per_second = c->step_seconds > 0 ? tokens / c->step_seconds : 0;
}

/* Extrapolates the time of a step with more micro-steps than were run. */
static enum plim_status extend(struct plim_search *s, struct plim_candidate *c)
{
    int64_t left_out = c->batch.accumulation - c->setting.accumulation;
    c->step_seconds = c->trial.seconds;
    if (!left_out || c->step_seconds <= 0) return PLIM_OK;
    const struct plim_sample *shorter;
    struct plim_setting setting = c->setting;
    setting.accumulation--;
    enum plim_status st = plim_probe(s->prober, &setting, PLIM_WANT_SECONDS, &shorter, s->err);
    if (st || shorter->verdict != PLIM_OK) return st;
    double micro_step = c->step_seconds - shorter->trial.seconds;
    if (micro_step > 0) c->step_seconds += micro_step * (double)left_out;
    return PLIM_OK;
}

enum plim_status plim_throughput_time(struct plim_search *s, size_t point, int64_t micro_batch,
                                      struct plim_candidate **out)
{
    struct plim_candidates *candidates = &s->decision->candidates;
    const struct plim_batch_rule *rule = &s->decision->rule;
    *out = plim_candidate_find(candidates, point, micro_batch);
    if (*out) return PLIM_OK;

    struct plim_candidate c = {.point = point};
    c.allowed = plim_batch_allowed(rule, micro_batch, &c.batch);
    c.setting = plim_search_setting(s, point, micro_batch);
    c.seq = plim_axes_seq(&s->question->axes, &c.setting);
    const struct plim_sample *sample;
    enum plim_status st = plim_probe(s->prober, &c.setting, PLIM_WANT_SECONDS, &sample, s->err);
    if (st || sample->verdict != PLIM_OK) return st;
    c.trial = sample->trial;
    st = extend(s, &c);
    if (st) return st;
    bool all_run = c.setting.accumulation == c.batch.accumulation && rule->phases == 1;
    c.verified = all_run && !s->prober->runner->proves;
    c.setting.accumulation = c.batch.accumulation;
    set_rate(&s->question->axes, &c);
    if (PLIM_ARRAY_PUSH(&candidates->list, c) != PLIM_OK) return plim_search_no_memory(s);
    *out = &candidates->list.items[candidates->list.count - 1];
    return PLIM_OK;
}

/* --- the trend of one point ------------------------------------------------------------------- */

/* Finds the timed candidates next to a micro-batch, below and above; NULL if there is none. */
static void neighbours(const struct plim_search *s, size_t point, int64_t micro_batch,
                       const struct plim_candidate **below, const struct plim_candidate **above)
{
    *below = *above = NULL;
    for (size_t i = 0; i < s->decision->candidates.list.count; i++) {
        const struct plim_candidate *c = &s->decision->candidates.list.items[i];
        int64_t b = c->batch.micro_batch;
        if (c->point != point || c->tokens_per_second <= 0) continue;
        if (b <= micro_batch && (!*below || b > (*below)->batch.micro_batch)) *below = c;
        if (b >= micro_batch && (!*above || b < (*above)->batch.micro_batch)) *above = c;
    }
}

/* Returns the expected rate, interpolated by 1/rate = a + b / micro-batch between the neighbours. Outside of the timed
 * range the nearest rate is used; below it, that can at most cause an unnecessary timing. */
static double trend(const struct plim_search *s, size_t point, int64_t micro_batch)
{
    const struct plim_candidate *below, *above;
    neighbours(s, point, micro_batch, &below, &above);
    if (!below || !above || below == above) {
        const struct plim_candidate *only = below ? below : above;
        return only ? only->tokens_per_second : 0;
    }
    double x0 = 1.0 / (double)below->batch.micro_batch, y0 = 1 / below->tokens_per_second;
    double x1 = 1.0 / (double)above->batch.micro_batch, y1 = 1 / above->tokens_per_second;
    return 1 / (y0 + (y1 - y0) * (1.0 / (double)micro_batch - x0) / (x1 - x0));
}

/* Returns the highest rate that a micro-batch can reach: a step with more samples never takes less time than the next
 * smaller one that was timed. Below all timed ones the rate does not rise (fixed costs and the host's time are shared
 * by fewer samples), except for waves of tiles. */
static double bound(const struct plim_search *s, size_t point, int64_t micro_batch)
{
    const struct plim_candidate *below, *above;
    neighbours(s, point, micro_batch, &below, &above);
    if (below)
        return below->tokens_per_second * (double)micro_batch / (double)below->batch.micro_batch;
    return above ? above->tokens_per_second * (1 + WAVE_SHARE) : HUGE_VAL;
}

/* --- the timed micro-batches ------------------------------------------------------------------ */

static int64_t power_below(int64_t value)
{
    int64_t power = 1;
    while (power <= value / 2) power *= 2;
    return power;
}

/* Fills `list` with micro-batches, in the order of timing, and returns their number. Entries may repeat or be 0. */
static size_t promising(const struct plim_batch_rule *rule, int64_t largest,
                        int64_t list[TIMED_AT_MOST])
{
    size_t count = 0;
    int64_t top = plim_batch_below(rule, largest, 1);
    list[count++] = top;
    list[count++] = plim_batch_below(rule, power_below(largest) / 2, 1);
    if (plim_batch_target(rule)) list[count++] = plim_batch_exact(rule, largest);
    if (largest <= FEW || rule->request->listed_count || plim_batch_target(rule)) {
        for (int64_t b = top; b > 0 && count < TIMED_AT_MOST; b = plim_batch_below(rule, b - 1, 1))
            list[count++] = b;
        return count;
    }
    int64_t eights = plim_batch_below(rule, largest, 8);
    list[count++] = power_below(largest);
    list[count++] = eights;
    list[count++] = plim_batch_below(rule, eights - 8, 8);
    list[count++] = plim_batch_below(rule, largest, 4);
    list[count++] = plim_batch_below(rule, largest, 2);
    for (int64_t b = top - 1; b > top - 4 && top <= 4 * FEW; b--) list[count++] = b;
    return count;
}

double plim_throughput_ties(const struct plim_search *s)
{
    double tie = plim_objectives[s->question->objective].tie_share;
    return plim_candidates_best_rate(&s->decision->candidates) * (1 - tie);
}

/* Returns the smallest allowed micro-batch that ties with the best according to the trend; 0 if it was timed
 * already. */
static int64_t smallest_tie(const struct plim_search *s, size_t point, int64_t largest)
{
    double enough = plim_throughput_ties(s);
    for (int64_t b = plim_batch_next(&s->decision->rule, 0); b && b <= largest;
         b = plim_batch_next(&s->decision->rule, b)) {
        if (trend(s, point, b) < enough) continue;
        return plim_candidate_find(&s->decision->candidates, point, b) ? 0 : b;
    }
    return 0;
}

enum plim_status plim_throughput_point(struct plim_search *s, size_t point, int64_t largest)
{
    int64_t list[TIMED_AT_MOST];
    struct plim_candidate *candidate;
    if (largest < 1) return PLIM_OK;
    size_t count = promising(&s->decision->rule, largest, list);
    for (size_t i = 0; i < count; i++) {
        if (list[i] < 1) continue;
        if (i > 1 && bound(s, point, list[i]) < plim_throughput_ties(s)) continue;
        enum plim_status st = plim_throughput_time(s, point, list[i], &candidate);
        if (st) return st;
    }
    for (int i = 0; i < TIE_STEPS; i++) {
        int64_t tie = smallest_tie(s, point, largest);
        if (!tie) break;
        enum plim_status st = plim_throughput_time(s, point, tie, &candidate);
        if (st) return st;
        if (!candidate) break;
    }
    return PLIM_OK;
}

/* --- proof ------------------------------------------------------------------------------------ */

enum plim_status plim_throughput_verify(struct plim_search *s, struct plim_candidate *candidate)
{
    const struct plim_batch_rule *rule = &s->decision->rule;
    const struct plim_sample *sample;
    if (candidate->verified || candidate->refuted) return PLIM_OK;
    for (size_t i = 0; i < rule->phases; i++) {
        struct plim_setting setting = candidate->setting;
        setting.accumulation = candidate->batch.phase_accumulation[i];
        enum plim_status st = plim_probe(s->prober, &setting, PLIM_WANT_SECONDS, &sample, s->err);
        if (!st) st = plim_probe_proof(s->prober, &setting, &sample, s->err);
        if (st) return st;
        if (sample->verdict != PLIM_OK) {
            candidate->refuted = true;
            return PLIM_OK;
        }
        if (i != rule->leading) continue;
        candidate->trial = sample->trial;
        candidate->step_seconds = sample->trial.seconds;
    }
    candidate->verified = true;
    set_rate(&s->question->axes, candidate);
    return PLIM_OK;
}
