#include "search.h"

enum { APPROACH_RUNS = 6, DOUBTED = 2 };

/* The approach aims a little below the budget, so that most of its runs fit. */
static const double APPROACH_SHARE = 0.97;

/* The bisection runs only micro-batches between FLOOR_SHARE * `clean`, below which they certainly fit, and the one
 * whose tensors need CEILING_SHARE * the budget, above which they cannot. */
static const double FLOOR_SHARE = 0.75, CEILING_SHARE = 1.02;

/* The search for the edge of one point. */
struct finder {
    struct plim_search *search;
    const struct plim_batch_rule *rule;
    size_t point;
    struct plim_edge *edge;
    enum plim_edge_of of;
    int64_t limit, budget;
};

bool plim_edge_goes_beyond_allowed(const struct plim_search *search)
{
    return !search->prober->runner->costly || !plim_batch_is_exact(&search->decision->rule);
}

static enum plim_edge_of edge_of(const struct plim_search *search, enum plim_edge_of asked)
{
    if (!plim_batch_is_exact(&search->decision->rule)) return PLIM_EDGE_OF_ALL;
    return plim_edge_goes_beyond_allowed(search) ? asked : PLIM_EDGE_OF_ALLOWED;
}

static struct finder finder_make(struct plim_search *search, size_t point, enum plim_edge_of of)
{
    const struct plim_batch_rule *rule = &search->decision->rule;
    return (struct finder){.search = search,
                           .rule = rule,
                           .point = point,
                           .edge = &search->decision->edges.items[point],
                           .of = edge_of(search, of),
                           .limit = plim_batch_limit(rule),
                           .budget = search->prober->runner->budget_bytes};
}

/* Returns the micro-batch that is run instead of this one: the nearest below it that may be run. */
static int64_t tried(const struct finder *f, int64_t micro_batch)
{
    if (f->of == PLIM_EDGE_OF_ALL) return plim_batch_tried(f->rule, micro_batch);
    int64_t below = plim_batch_below(f->rule, micro_batch, 1);
    return below ? below : plim_batch_next(f->rule, 0);
}

static int64_t after(const struct finder *f, int64_t micro_batch)
{
    return f->of == PLIM_EDGE_OF_ALL ? plim_batch_after(f->rule, micro_batch)
                                     : plim_batch_next(f->rule, micro_batch);
}

static struct plim_setting setting_of(const struct finder *f, int64_t micro_batch)
{
    return plim_search_setting(f->search, f->point, tried(f, micro_batch));
}

/* Returns the micro-batch where a line reaches `bytes`, between 0 and the limit. */
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

static void update_edge(struct plim_edge *edge, int64_t micro_batch, bool fits)
{
    if (fits && micro_batch > edge->fits) edge->fits = micro_batch;
    if (!fits && (!edge->fails || micro_batch < edge->fails)) edge->fails = micro_batch;
}

/* --- approach --------------------------------------------------------------------------------- */

struct need {
    int64_t micro_batch;
    double reserved, requested;
};

/* Computes the line through two points. With a single point, or if the slope is not positive (two peaks with different
 * causes), the line goes through the origin, and crosses the budget at too small a micro-batch. */
static void fit_line(struct plim_line *line, int64_t b0, double y0, int64_t b1, double y1)
{
    double slope = b1 == b0 ? 0 : (y1 - y0) / (double)(b1 - b0);
    if (slope <= 0)
        *line = (struct plim_line){0, y1 / (double)b1};
    else
        *line = (struct plim_line){y1 - slope * (double)b1, slope};
}

/* Updates the lines. With a single point, a guess of the slope is kept, and the line is moved to go through the
 * point. */
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

/* Runs a micro-batch without limit. Leaves `need` zeroed if the run did not finish (it crashed or hung). */
static enum plim_status probe_need(struct finder *f, int64_t micro_batch, struct need *need)
{
    const struct plim_cache_entry *entry;
    struct plim_prober *prober = f->search->prober;
    struct plim_setting setting = setting_of(f, micro_batch);
    *need = (struct need){0};
    enum plim_status st = plim_probe_need(prober, &setting, &entry, f->search->err);
    if (st) return st;
    if (!entry) {
        const struct plim_sample *sample = plim_probe_known(prober, &setting);
        f->edge->unsupported = sample && sample->verdict == PLIM_UNSUPPORTED;
        update_edge(f->edge, micro_batch, sample && sample->verdict == PLIM_OK);
        return PLIM_OK;
    }
    *need = (struct need){micro_batch, (double)entry->trial.reserved_bytes,
                          (double)entry->trial.requested_bytes};
    enum plim_status verdict = plim_cache_verdict(entry, f->budget);
    if (verdict == PLIM_OK && prober->runner->limit_acts_early) return PLIM_OK;
    if (verdict != PLIM_INVALID) update_edge(f->edge, micro_batch, verdict == PLIM_OK);
    if (verdict == PLIM_OK && micro_batch > f->edge->clean) f->edge->clean = micro_batch;
    return PLIM_OK;
}

/* Returns the next micro-batch to try: where the line reaches `aim`. A line through the origin is too steep, as its
 * slope includes the fixed part; then at least twice the current one. */
static int64_t next_guess(const struct finder *f, const struct need *now, double aim)
{
    int64_t guess = line_reach(&f->edge->reserved, aim, f->limit);
    bool one_point = f->edge->reserved.fixed_bytes <= 0 && f->edge->reserved.fixed_bytes >= 0;
    return one_point && guess < 2 * now->micro_batch ? 2 * now->micro_batch : guess;
}

/* True if the next guess is so close to a run without retries that it is not worth a run. */
static bool is_near(const struct plim_edge *edge, int64_t guess, enum plim_nearness nearness)
{
    return edge->clean > 0 && guess - edge->clean <= edge->clean / (int64_t)nearness;
}

static enum plim_status approach(struct finder *f, enum plim_nearness nearness)
{
    struct plim_edge *edge = f->edge;
    struct need before = {0}, now = {0}, asked;
    double aim = APPROACH_SHARE * (double)f->budget;
    int64_t guess =
        edge->reserved.per_sample_bytes > 0 ? line_reach(&edge->reserved, aim, f->limit) : 1;
    if (f->budget <= 0) return PLIM_OK;
    for (int i = 0; i < APPROACH_RUNS && !is_near(edge, guess, nearness); i++) {
        int64_t high = edge->fails ? edge->fails - 1 : f->limit;
        if (edge->clean >= high) break;
        guess = tried(f, clamp(guess, edge->clean + 1, high));
        if (guess <= edge->clean || guess == now.micro_batch || guess == before.micro_batch) break;
        enum plim_status st = probe_need(f, guess, &asked);
        if (st || edge->unsupported) return st;
        if (!asked.micro_batch && edge->fits >= guess) break; /* the edge is near */
        if (!asked.micro_batch) {
            guess = edge->clean + (guess - edge->clean) / 2;
            continue;
        }
        before = now;
        now = asked;
        draw_lines(edge, &before, &now);
        guess = next_guess(f, &now, aim);
    }
    return PLIM_OK;
}

enum plim_status plim_edge_approach(struct plim_search *search, size_t point,
                                    enum plim_nearness nearness)
{
    struct finder f = finder_make(search, point, PLIM_EDGE_OF_ALLOWED);
    return approach(&f, nearness);
}

/* --- the bisection ---------------------------------------------------------------------------- */

/* Doubles from 1, then halves the gap, then checks the two micro-batches at the edge. If a planned edge turns out to be
 * too low, it continues from there in doubling steps. The state is explicit, so that the next questions can be computed
 * for either answer. */
struct bisection {
    int64_t limit;
    int64_t planned;        /* the planned edge; 0: none */
    int64_t clean;          /* certain to fit */
    int64_t floor, ceiling; /* assumption: all up to floor fit, none from ceiling on */
    int64_t low, high;
    int64_t step;
    enum { DOUBLING, STRIDING, HALVING, CHECKING_LOW, CHECKING_HIGH, FOUND } phase;
    bool low_fits;
};

static void restart(struct bisection *b)
{
    b->low = 0;
    b->high = 1;
    b->phase = DOUBLING;
    b->low_fits = true;
}

static int64_t middle(const struct bisection *b)
{
    return b->phase == HALVING ? b->low + (b->high - b->low) / 2 : b->high;
}

static void narrow(struct bisection *b, int64_t micro_batch, bool fits)
{
    if (fits)
        b->low = micro_batch;
    else
        b->high = micro_batch;
    if (b->phase == DOUBLING && fits)
        b->high = 2 * micro_batch;
    else if (b->phase == STRIDING && fits)
        b->high = micro_batch + (b->step *= 2);
    else
        b->phase = HALVING;
}

/* Continues above a planned edge that was too low, first in small steps, as the plan's error is small. */
static void stride(struct bisection *b, int64_t from)
{
    b->low = from;
    b->step = 1 + from / 32;
    b->high = from + b->step;
    b->phase = STRIDING;
}

/* Ends the bisection; if its result depends on an assumption that does not hold, starts again without it. */
static void conclude(struct bisection *b, bool high_fits)
{
    b->phase = FOUND;
    if (b->low_fits && !high_fits) return;
    if (!b->low_fits) b->floor = b->floor > b->clean ? b->clean : 0;
    if (high_fits) b->ceiling = INT64_MAX;
    if (b->low_fits && b->planned)
        stride(b, b->low + 1);
    else
        restart(b);
}

static void answer(struct bisection *b, int64_t micro_batch, bool fits)
{
    if (b->phase == CHECKING_HIGH) {
        conclude(b, fits);
    } else if (b->phase == CHECKING_LOW) {
        b->low_fits = fits;
        b->phase = CHECKING_HIGH;
    } else {
        narrow(b, micro_batch, fits);
    }
}

/* Returns the next micro-batch to try, skipping assumed answers; 0 if the edge is found, which is `low`. */
static int64_t next_asked(struct bisection *b)
{
    while (b->phase == DOUBLING || b->phase == STRIDING || b->phase == HALVING) {
        int64_t m = middle(b);
        if (b->phase == DOUBLING && m > b->limit)
            b->phase = HALVING;
        else if (b->phase == HALVING && b->high - b->low <= 1)
            b->phase = CHECKING_LOW;
        else if (m <= b->floor)
            narrow(b, m, true);
        else if (m >= b->ceiling || m > b->limit)
            narrow(b, m, false);
        else
            return m;
    }
    if (b->phase == CHECKING_LOW && b->low == 0) b->phase = CHECKING_HIGH;
    if (b->phase == CHECKING_LOW) return b->low;
    if (b->phase == CHECKING_HIGH && b->low < b->limit) return b->low + 1;
    if (b->phase == CHECKING_HIGH) {
        conclude(b, false);
        if (b->phase != FOUND) return next_asked(b);
    }
    return 0;
}

static enum plim_status probe_fit(struct finder *f, int64_t micro_batch, bool *fits)
{
    const struct plim_sample *sample;
    struct plim_setting setting = setting_of(f, micro_batch);
    *fits = false;
    enum plim_status st =
        plim_probe(f->search->prober, &setting, PLIM_WANT_VERDICT, &sample, f->search->err);
    if (st) return st;
    *fits = sample->verdict == PLIM_OK;
    if (sample->verdict == PLIM_UNSUPPORTED && micro_batch == 1) f->edge->unsupported = true;
    return PLIM_OK;
}

/* Announces the micro-batches that may be tried next, for either answer, and those after them. */
static void announce_next(const struct finder *f, const struct bisection *now, int64_t micro_batch)
{
    enum { LEVELS = 2, STATES = (2 << LEVELS) - 1 }; /* a binary tree; the root is `now` */
    struct bisection states[STATES] = {*now};
    int64_t asked[STATES] = {micro_batch};
    struct plim_setting settings[STATES];
    size_t count = 0;
    if (!f->search->prober->runner->expect) return;
    for (size_t i = 1; i < STATES; i++) {
        size_t parent = (i - 1) / 2;
        if (!asked[parent]) continue;
        states[i] = states[parent];
        answer(&states[i], asked[parent], i % 2 == 0);
        asked[i] = next_asked(&states[i]);
        if (asked[i]) settings[count++] = setting_of(f, asked[i]);
    }
    plim_probe_expect(f->search->prober, settings, count);
}

/* Bisects, with assumptions from the lines or the plan. */
static enum plim_status bisect(struct finder *f)
{
    struct plim_edge *edge = f->edge;
    int64_t reach = line_reach(&edge->requested, CEILING_SHARE * (double)f->budget, f->limit);
    struct bisection b = {.limit = f->limit,
                          .clean = edge->clean,
                          .floor = (int64_t)(FLOOR_SHARE * (double)edge->clean),
                          .ceiling = reach + 2,
                          .planned = edge->planned};
    if (edge->planned) b.floor = edge->planned, b.ceiling = edge->planned + 1;
    restart(&b);
    for (int64_t asked; (asked = next_asked(&b)) != 0;) {
        bool fits;
        announce_next(f, &b, asked);
        enum plim_status st = probe_fit(f, asked, &fits);
        if (st) return st;
        answer(&b, asked, fits);
        if (edge->unsupported) return PLIM_OK;
    }
    edge->fits = b.low;
    edge->fails = b.low < f->limit ? b.low + 1 : 0;
    return PLIM_OK;
}

/* --- the edge --------------------------------------------------------------------------------- */

/* Continues beyond the edge while one of the next micro-batches fits. Not needed if a plan was right about the edge of
 * a real GPU, since the plan has done that. */
static enum plim_status doubt(struct finder *f)
{
    struct plim_edge *edge = f->edge;
    if (f->search->prober->runner->measured && edge->planned == edge->fits) return PLIM_OK;
    for (int64_t b = edge->fits + 2; edge->fails && b <= edge->fits + 1 + DOUBTED && b <= f->limit;
         b++) {
        bool fits;
        enum plim_status st = probe_fit(f, b, &fits);
        if (st) return st;
        if (!fits) continue;
        edge->fits = b;
        edge->fails = 0;
        for (int64_t next = b + 1; !edge->fails && next <= f->limit; next++) {
            st = probe_fit(f, next, &fits);
            if (st) return st;
            if (fits)
                edge->fits = next;
            else
                edge->fails = next;
        }
        b = edge->fits + 1;
    }
    return PLIM_OK;
}

/* Tries the largest micro-batch: with a fixed effective batch that is a step without accumulation. */
static enum plim_status try_limit(struct finder *f)
{
    struct plim_edge *edge = f->edge;
    if (!plim_batch_target(f->rule) || !edge->fails || edge->fails >= f->limit) return PLIM_OK;
    bool fits;
    enum plim_status st = probe_fit(f, f->limit, &fits);
    if (st || !fits) return st;
    edge->fits = f->limit;
    edge->fails = 0;
    return PLIM_OK;
}

/* Sets the planned edge to the micro-batch where the line of reserved bytes crosses the budget, if none is set. */
static void expect_edge(const struct finder *f)
{
    struct plim_edge *edge = f->edge;
    int64_t high = edge->fails ? edge->fails - 1 : f->limit;
    int64_t low = edge->fits > edge->clean && edge->fits <= high ? edge->fits : edge->clean;
    if (!edge->clean || edge->planned) return;
    edge->planned = clamp(line_reach(&edge->reserved, (double)f->budget, high), low, high);
}

/* Rounds the edge to micro-batches that may be run. */
static void only_what_was_run(const struct finder *f)
{
    struct plim_edge *edge = f->edge;
    if (!edge->fits) return;
    edge->fits = tried(f, edge->fits);
    if (edge->fails) edge->fails = after(f, edge->fits);
}

enum plim_status plim_edge_find(struct plim_search *search, size_t point, enum plim_edge_of of)
{
    struct finder f = finder_make(search, point, of);
    bool costly = search->prober->runner->costly;
    enum plim_status st = PLIM_OK;
    if (f.edge->exact || (f.edge->searched && f.of == PLIM_EDGE_OF_ALLOWED)) return PLIM_OK;
    if (!f.edge->planned) st = approach(&f, PLIM_NEAR_CLOSELY);
    if (!st && costly) expect_edge(&f);
    if (!st && f.budget > 0 && !f.edge->unsupported) {
        f.edge->fits = f.edge->fails = 0;
        st = bisect(&f);
        bool goes_on = !st && !f.edge->unsupported && !costly;
        if (goes_on) st = doubt(&f);
        if (goes_on && !st) st = try_limit(&f);
    }
    if (!st) only_what_was_run(&f);
    f.edge->searched = !st;
    f.edge->exact = !st && f.of == PLIM_EDGE_OF_ALL;
    return st;
}

int64_t plim_edge_upper(const struct plim_search *search, size_t point)
{
    const struct plim_edge *edge = &search->decision->edges.items[point];
    if (edge->searched) return edge->fits;
    int64_t high = edge->fails ? edge->fails - 1 : plim_batch_limit(&search->decision->rule);
    int64_t upper = line_reach(&edge->requested, (double)search->prober->runner->budget_bytes, high);
    return upper < edge->fits ? edge->fits : upper;
}
