#include "search.h"

enum { APPROACH_RUNS = 6, DOUBTED = 2 };

/* The approach aims a little below the budget, so that most of what it tries fits. */
static const double APPROACH_SHARE = 0.97;

/* What is not asked: far below what fits with room to spare, and where the tensors alone would
 * not fit. */
static const double FLOOR_SHARE = 0.75, CEILING_SHARE = 1.02;

struct searcher {
    struct plim_prober *prober;
    const struct plim_batch_rule *rule;
    const struct plim_setting *point;
    struct plim_edge *edge;
    int64_t limit, budget;
    struct plim_error *err;
};

static struct searcher searcher_make(struct plim_prober *prober, const struct plim_batch_rule *rule,
                                     const struct plim_setting *point, struct plim_edge *edge,
                                     struct plim_error *err)
{
    return (struct searcher){.prober = prober,
                             .rule = rule,
                             .point = point,
                             .edge = edge,
                             .err = err,
                             .limit = plim_batch_limit(rule),
                             .budget = prober->runner->budget_bytes};
}

static struct plim_setting setting_of(const struct searcher *s, int64_t micro_batch)
{
    struct plim_batch batch;
    plim_batch_allowed(s->rule, plim_batch_tried(s->rule, micro_batch), &batch);
    return plim_space_setting(s->point, &batch);
}

/* Where a line reaches `bytes`, between 0 and the limit. */
static int64_t line_reach(const struct plim_line *line, double bytes, int64_t limit)
{
    if (line->per_sample_bytes <= 0) return limit;
    double batch = (bytes - line->fixed_bytes) / line->per_sample_bytes;
    if (batch <= 0) return 0;
    return batch < (double)limit ? (int64_t)batch : limit;
}

static int64_t clamp(int64_t value, int64_t low, int64_t high)
{
    return value < low ? low : value > high ? high : value;
}

static void learn(struct searcher *s, int64_t micro_batch, bool fits)
{
    struct plim_edge *edge = s->edge;
    if (fits && micro_batch > edge->fits) edge->fits = micro_batch;
    if (!fits && (!edge->fails || micro_batch < edge->fails)) edge->fails = micro_batch;
}

/* --- approach --------------------------------------------------------------------------------- */

struct need {
    int64_t micro_batch;
    double reserved, requested;
};

/* Through two points; through the origin while there is one, which asks for too little at first. A
 * slope that is not positive (two peaks of another cause) is no line. */
static void fit_line(struct plim_line *line, int64_t b0, double y0, int64_t b1, double y1)
{
    double slope = b1 == b0 ? 0 : (y1 - y0) / (double)(b1 - b0);
    if (slope <= 0) *line = (struct plim_line){0, y1 / (double)b1};
    else *line = (struct plim_line){y1 - slope * (double)b1, slope};
}

/* A guess stays while there is one point only, moved to go through it. */
static void draw_lines(struct plim_edge *edge, const struct need *before, const struct need *now)
{
    if (!before->micro_batch && edge->reserved.per_sample_bytes > 0) {
        double b = (double)now->micro_batch;
        edge->reserved.fixed_bytes = now->reserved - b * edge->reserved.per_sample_bytes;
        edge->requested.fixed_bytes = now->requested - b * edge->requested.per_sample_bytes;
        return;
    }
    fit_line(&edge->reserved, before->micro_batch, before->reserved, now->micro_batch,
             now->reserved);
    fit_line(&edge->requested, before->micro_batch, before->requested, now->micro_batch,
             now->requested);
}

/* Leaves `need` zeroed when the run did not come to its end: it crashed, it hung. */
static enum plim_status ask_need(struct searcher *s, int64_t micro_batch, struct need *need)
{
    const struct plim_memo_entry *entry;
    struct plim_setting setting = setting_of(s, micro_batch);
    *need = (struct need){0};
    enum plim_status st = plim_probe_need(s->prober, &setting, &entry, s->err);
    if (st) return st;
    if (!entry) {
        const struct plim_sample *sample = plim_probe_known(s->prober, &setting);
        s->edge->unsupported = sample && sample->verdict == PLIM_UNSUPPORTED;
        learn(s, micro_batch, false);
        return PLIM_OK;
    }
    *need = (struct need){micro_batch, (double)entry->replay.peak_reserved_bytes,
                          (double)entry->peak_requested_bytes};
    enum plim_status verdict = plim_memo_verdict(entry, s->budget);
    if (verdict == PLIM_OK && s->prober->runner->limit_acts_early) return PLIM_OK;
    if (verdict != PLIM_INVALID) learn(s, micro_batch, verdict == PLIM_OK);
    if (verdict == PLIM_OK && micro_batch > s->edge->clean) s->edge->clean = micro_batch;
    return PLIM_OK;
}

/* Where to look next. A single point without a guess of the slope says too little: the fixed
 * part is in it; then twice as far. */
static int64_t next_guess(const struct searcher *s, const struct need *now, double aim)
{
    int64_t guess = line_reach(&s->edge->reserved, aim, s->limit);
    bool one_point = s->edge->reserved.fixed_bytes <= 0 && s->edge->reserved.fixed_bytes >= 0;
    return one_point && guess < 2 * now->micro_batch ? 2 * now->micro_batch : guess;
}

/* Is the next guess worth a replay? Not when it is close to a clean one. */
static bool is_near(const struct plim_edge *edge, int64_t guess, enum plim_nearness nearness)
{
    return edge->clean > 0 && guess - edge->clean <= edge->clean / (int64_t)nearness;
}

enum plim_status plim_search_approach(struct plim_prober *prober,
                                      const struct plim_batch_rule *rule,
                                      const struct plim_setting *point, enum plim_nearness nearness,
                                      struct plim_edge *edge, struct plim_error *err)
{
    struct searcher s = searcher_make(prober, rule, point, edge, err);
    struct need before = {0}, now = {0}, asked;
    double aim = APPROACH_SHARE * (double)s.budget;
    int64_t guess =
        edge->reserved.per_sample_bytes > 0 ? line_reach(&edge->reserved, aim, s.limit) : 1;
    if (s.budget <= 0) return PLIM_OK;
    for (int i = 0; i < APPROACH_RUNS && !is_near(edge, guess, nearness); i++) {
        int64_t high = edge->fails ? edge->fails - 1 : s.limit;
        if (edge->clean >= high) break;
        guess = plim_batch_tried(rule, clamp(guess, edge->clean + 1, high));
        if (guess <= edge->clean || guess == now.micro_batch || guess == before.micro_batch) break;
        enum plim_status st = ask_need(&s, guess, &asked);
        if (st || edge->unsupported) return st;
        if (!asked.micro_batch) {
            guess = edge->clean + (guess - edge->clean) / 2;
            continue;
        }
        before = now;
        now = asked;
        draw_lines(edge, &before, &now);
        guess = next_guess(&s, &now, aim);
    }
    return PLIM_OK;
}

/* --- the edge --------------------------------------------------------------------------------- */

/* Where nobody asks: up to `floor` it is taken to fit, from `ceiling` on not to. */
struct assumption {
    int64_t floor, ceiling;
};

static enum plim_status ask_fits(struct searcher *s, int64_t micro_batch, bool *fits)
{
    const struct plim_sample *sample;
    struct plim_setting setting = setting_of(s, micro_batch);
    *fits = false;
    enum plim_status st = plim_probe(s->prober, &setting, PLIM_WANT_VERDICT, &sample, s->err);
    if (st) return st;
    *fits = sample->verdict == PLIM_OK;
    if (sample->verdict == PLIM_UNSUPPORTED && micro_batch == 1) s->edge->unsupported = true;
    return PLIM_OK;
}

static enum plim_status assume_or_ask(struct searcher *s, const struct assumption *assume,
                                      int64_t micro_batch, bool *fits)
{
    *fits = micro_batch <= assume->floor;
    if (*fits || micro_batch >= assume->ceiling || micro_batch > s->limit) return PLIM_OK;
    return ask_fits(s, micro_batch, fits);
}

/* Doubling from 1, then halving the gap. */
static enum plim_status bisect(struct searcher *s, const struct assumption *assume, int64_t *edge)
{
    int64_t low = 0, high = 1;
    bool fits = true;
    while (high <= s->limit) {
        enum plim_status st = assume_or_ask(s, assume, high, &fits);
        if (st) return st;
        if (!fits) break;
        low = high;
        high *= 2;
    }
    while (high - low > 1) {
        int64_t middle = low + (high - low) / 2;
        enum plim_status st = assume_or_ask(s, assume, middle, &fits);
        if (st) return st;
        if (fits) low = middle;
        else high = middle;
    }
    *edge = low;
    return PLIM_OK;
}

/* Bisects with what the lines suggest, and without it where the outcome turns out to rest on an
 * assumption that does not hold. */
static enum plim_status find_edge(struct searcher *s)
{
    struct plim_edge *edge = s->edge;
    int64_t reach = line_reach(&edge->requested, CEILING_SHARE * (double)s->budget, s->limit);
    struct assumption assume = {.floor = (int64_t)(FLOOR_SHARE * (double)edge->clean),
                                .ceiling = reach + 2};
    if (edge->planned) assume = (struct assumption){edge->planned, edge->planned + 1};
    for (;;) {
        bool low_fits = true, high_fits = false;
        int64_t low;
        enum plim_status st = bisect(s, &assume, &low);
        if (!st && low > 0) st = ask_fits(s, low, &low_fits);
        if (!st && low < s->limit) st = ask_fits(s, low + 1, &high_fits);
        if (st || edge->unsupported) return st;
        if (low_fits && !high_fits) {
            edge->fits = low;
            edge->fails = low < s->limit ? low + 1 : 0;
            return PLIM_OK;
        }
        if (!low_fits) assume.floor = assume.floor > edge->clean ? edge->clean : 0;
        if (high_fits) assume.ceiling = INT64_MAX;
    }
}

/* Goes on beyond the edge while one of the next micro-batches there fits after all. */
static enum plim_status doubt(struct searcher *s)
{
    struct plim_edge *edge = s->edge;
    for (int64_t b = edge->fits + 2; edge->fails && b <= edge->fits + 1 + DOUBTED && b <= s->limit;
         b++) {
        bool fits;
        enum plim_status st = ask_fits(s, b, &fits);
        if (st) return st;
        if (!fits) continue;
        edge->fits = b;
        edge->fails = 0;
        for (int64_t next = b + 1; !edge->fails && next <= s->limit; next++) {
            st = ask_fits(s, next, &fits);
            if (st) return st;
            if (fits) edge->fits = next;
            else edge->fails = next;
        }
        b = edge->fits + 1;
    }
    return PLIM_OK;
}

/* With a fixed effective batch the largest micro-batch is a step without accumulation. */
static enum plim_status try_limit(struct searcher *s)
{
    struct plim_edge *edge = s->edge;
    if (!plim_batch_target(s->rule) || !edge->fails || edge->fails >= s->limit) return PLIM_OK;
    bool fits;
    enum plim_status st = ask_fits(s, s->limit, &fits);
    if (st || !fits) return st;
    edge->fits = s->limit;
    edge->fails = 0;
    return PLIM_OK;
}

/* Where the line of what is reserved crosses the budget. */
static void expect_edge(struct plim_edge *edge, const struct plim_batch_rule *rule,
                        int64_t budget_bytes)
{
    int64_t high = edge->fails ? edge->fails - 1 : plim_batch_limit(rule);
    if (!edge->clean || edge->planned) return;
    edge->planned =
        clamp(line_reach(&edge->reserved, (double)budget_bytes, high), edge->clean, high);
}

/* Between the micro-batches that may be run, the one below counts. */
static void only_what_was_run(struct searcher *s)
{
    struct plim_edge *edge = s->edge;
    if (!edge->fits) return;
    edge->fits = plim_batch_tried(s->rule, edge->fits);
    if (edge->fails) edge->fails = plim_batch_after(s->rule, edge->fits);
}

enum plim_status plim_search_edge(struct plim_prober *prober, const struct plim_batch_rule *rule,
                                  const struct plim_setting *point, struct plim_edge *edge,
                                  struct plim_error *err)
{
    if (edge->exact) return PLIM_OK;
    enum plim_status st = PLIM_OK;
    if (!edge->planned)
        st = plim_search_approach(prober, rule, point, PLIM_NEAR_CLOSELY, edge, err);
    if (!st && prober->runner->costly) expect_edge(edge, rule, prober->runner->budget_bytes);
    struct searcher s = searcher_make(prober, rule, point, edge, err);
    if (!st && s.budget > 0 && !edge->unsupported) {
        edge->fits = edge->fails = 0;
        st = find_edge(&s);
        bool goes_on = !st && !edge->unsupported && !prober->runner->costly;
        if (goes_on) st = doubt(&s);
        if (goes_on && !st) st = try_limit(&s);
    }
    if (!st) only_what_was_run(&s);
    edge->exact = !st;
    return st;
}

int64_t plim_edge_upper(const struct plim_edge *edge, const struct plim_batch_rule *rule,
                        int64_t budget_bytes)
{
    int64_t limit = plim_batch_limit(rule);
    if (edge->exact) return edge->fits;
    int64_t upper =
        line_reach(&edge->requested, (double)budget_bytes, edge->fails ? edge->fails - 1 : limit);
    return upper < edge->fits ? edge->fits : upper;
}
