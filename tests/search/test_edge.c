/* The largest micro-batch, on models whose edge is known. */
#include "autotune/search/edge.h"
#include "synthetic.h"
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <string.h>

static struct plim_edge search(struct synthetic *s, const struct plim_question *question)
{
    return synthetic_edge(s, question, NULL, NULL);
}

/* By trying one after the other: the last before the first failure. */
static int64_t true_edge(const struct synthetic *s)
{
    struct plim_setting setting = synthetic_setting(1);
    for (; synthetic_fits(s, &setting);) setting.micro_batch++;
    return setting.micro_batch - 1;
}

Test(edge, is_found_where_it_is)
{
    uint64_t random = 1;
    struct plim_question q = synthetic_question();
    for (int i = 0; i < 300; i++) {
        struct synthetic s;
        synthetic_randomize(&s, &random);
        struct plim_edge edge = search(&s, &q);
        cr_assert(eq(i64, edge.fits, true_edge(&s)), "model %d", i);
        cr_assert(eq(i64, edge.fails, edge.fits + 1), "model %d", i);
    }
}

/* Of an exact effective batch only what divides it decides, and nothing else is run for it. */
Test(edge, of_an_exact_effective_batch_asks_only_what_divides_it)
{
    uint64_t random = 5;
    for (int i = 0; i < 100; i++) {
        struct synthetic s;
        struct plim_question q = synthetic_question();
        struct plim_cache cache = {0};
        struct plim_decision decision = {0};
        struct plim_search search;
        q.batch.effective_batch = 120;
        synthetic_randomize(&s, &random);
        struct plim_prober prober = {.runner = &s.runner, .cache = &cache};
        cr_assert(eq(int, plim_search_init(&search, &q, &prober, &decision, NULL), PLIM_OK));
        cr_assert(eq(int, plim_search_points(&search, NULL, 0, NULL), PLIM_OK));
        cr_assert(eq(int, plim_edge_find(&search, 0, PLIM_EDGE_OF_ALLOWED), PLIM_OK));
        struct plim_edge allowed = decision.edges.items[0];
        for (size_t k = 0; k < prober.samples.count; k++)
            cr_expect(eq(i64, 120 % prober.samples.items[k].setting.micro_batch, 0), "model %d", i);
        for (size_t k = 0; k < cache.entries.count; k++)
            cr_expect(eq(i64, 120 % cache.entries.items[k].setting.micro_batch, 0), "model %d", i);
        cr_expect(not(allowed.exact));
        cr_assert(eq(int, plim_edge_find(&search, 0, PLIM_EDGE_OF_ALL), PLIM_OK));
        struct plim_edge all = decision.edges.items[0];
        cr_expect(eq(i64, allowed.fits, plim_batch_below(&decision.rule, all.fits, 1)), "%d", i);
        cr_expect(all.exact);
        plim_decision_finish(&decision);
        plim_prober_finish(&prober);
        plim_cache_finish(&cache);
    }
}

Test(edge, takes_few_runs)
{
    uint64_t random = 2;
    size_t runs = 0, most = 0;
    struct plim_question q = synthetic_question();
    for (int i = 0; i < 300; i++) {
        struct synthetic s;
        synthetic_randomize(&s, &random);
        search(&s, &q);
        size_t now = s.limited_runs + s.unlimited_runs;
        runs += now;
        if (now > most) most = now;
    }
    cr_expect(le(sz, runs / 300, 12));
    cr_expect(le(sz, most, 22));
}

Test(edge, a_line_from_a_similar_gpu_saves_runs)
{
    struct synthetic s;
    synthetic_init(&s, INT64_C(24) << 30);
    struct plim_question q = synthetic_question();
    struct plim_edge known = search(&s, &q);
    size_t without = s.limited_runs + s.unlimited_runs;

    synthetic_init(&s, INT64_C(40) << 30);
    struct plim_edge edge = synthetic_edge(&s, &q, NULL, &known);
    cr_expect(eq(i64, edge.fits, true_edge(&s)));
    cr_expect(lt(sz, s.limited_runs + s.unlimited_runs, without));
}

/* A line from a GPU with less memory in addition to the samples: its slope is right, its offset is not. */
Test(edge, a_line_is_moved_through_the_first_run)
{
    size_t runs = 0;
    struct plim_question q = synthetic_question();
    for (int64_t gib = 8; gib <= 80; gib += 4) {
        struct synthetic s;
        synthetic_init(&s, INT64_C(24) << 30);
        struct plim_edge known = search(&s, &q);
        synthetic_init(&s, gib << 30);
        s.fixed_bytes = INT64_C(5) << 30;
        struct plim_edge edge = synthetic_edge(&s, &q, NULL, &known);
        cr_expect(eq(i64, edge.fits, true_edge(&s)));
        runs += s.limited_runs + s.unlimited_runs;
    }
    cr_expect(eq(sz, runs, 205)); /* pinned, as in test_figures.c */
}

Test(edge, what_the_gpu_cannot_run_is_asked_once)
{
    for (int i = 0; i < 4; i++) {
        struct synthetic s;
        struct plim_question q = synthetic_question();
        synthetic_init(&s, INT64_C(24) << 30);
        q.batch.first = i / 2 * 3; /* any, and 3 */
        s.fault = PLIM_UNSUPPORTED;
        s.fault_from = 1;
        s.fault_to = INT64_MAX;
        s.fault_limited_only = i % 2;
        s.runner.limit_acts_early = true;
        struct plim_edge edge = search(&s, &q);
        cr_expect(edge.unsupported && edge.exact);
        cr_expect(eq(i64, edge.fits, 0));
        cr_expect(eq(sz, s.fault_runs, 1));
    }
}

Test(edge, what_the_gpu_cannot_run_below_the_first_batch_is_not_asked)
{
    struct synthetic s;
    struct plim_question q = synthetic_question();
    synthetic_init(&s, INT64_C(24) << 30);
    q.batch.first = 2;
    s.fault = PLIM_UNSUPPORTED;
    s.fault_from = s.fault_to = 1;
    struct plim_edge edge = search(&s, &q);
    cr_expect(not(edge.unsupported));
    cr_expect(eq(i64, edge.fits, true_edge(&s)));
    cr_expect(eq(sz, s.fault_runs, 0));
}

/* An edge that a plan put at the limit, where a costly runner asks there first. */
Test(edge, a_plan_that_is_wrong_at_the_limit_is_not_believed)
{
    struct synthetic s;
    struct plim_question q = synthetic_question();
    struct plim_cache cache = {0};
    struct plim_decision decision = {0};
    struct plim_search search;
    synthetic_init(&s, INT64_C(4) << 30);
    s.runner.costly = true;
    q.batch.first = 1;
    q.batch.last = 60;
    struct plim_prober prober = {.runner = &s.runner, .cache = &cache};
    cr_assert(eq(int, plim_search_init(&search, &q, &prober, &decision, NULL), PLIM_OK));
    cr_assert(eq(int, plim_search_points(&search, NULL, 0, NULL), PLIM_OK));
    decision.edges.items[0].planned = 60;
    cr_assert(eq(int, plim_edge_find(&search, 0, PLIM_EDGE_OF_ALL), PLIM_OK));
    struct plim_setting edge = synthetic_setting(decision.edges.items[0].fits),
                        next = synthetic_setting(edge.micro_batch + 1);
    cr_expect(lt(i64, 0, edge.micro_batch));
    cr_expect(synthetic_fits(&s, &edge));
    cr_expect(not(synthetic_fits(&s, &next)));
    plim_decision_finish(&decision);
    plim_prober_finish(&prober);
    plim_cache_finish(&cache);
}

/* A trial of a program runs under the budget first, as the executor does it: where it fits because the
 * allocator gave something back, its peak is no need, but the edge is near. */
static enum plim_status (*run_synthetic)(void *, const struct plim_setting *, enum plim_run_mode,
                                         struct plim_trial *, struct plim_error *);

static enum plim_status run_program(void *user, const struct plim_setting *setting,
                                    enum plim_run_mode mode, struct plim_trial *out,
                                    struct plim_error *err)
{
    enum plim_status st = run_synthetic(user, setting, PLIM_RUN_LIMITED, out, err);
    if (!st && mode == PLIM_RUN_UNLIMITED && out->verdict == PLIM_OOM)
        st = run_synthetic(user, setting, PLIM_RUN_UNLIMITED, out, err);
    out->requested_bytes = 0; /* is not seen from outside */
    return st;
}

Test(edge, of_a_program_takes_few_trials)
{
    uint64_t random = 7;
    size_t runs = 0;
    struct plim_question q = synthetic_question();
    for (int i = 0; i < 300; i++) {
        struct synthetic s;
        synthetic_randomize(&s, &random);
        run_synthetic = s.runner.run;
        s.runner.run = run_program;
        s.runner.costly = true;
        struct plim_edge edge = search(&s, &q);
        struct plim_setting fits = synthetic_setting(edge.fits), fails = synthetic_setting(edge.fails);
        cr_assert(edge.fits == 0 || synthetic_fits(&s, &fits), "model %d", i);
        cr_assert(edge.fails == 0 || synthetic_fits(&s, &fails) == 0, "model %d", i);
        runs += s.limited_runs;
    }
    cr_expect(eq(sz, runs, 2342)); /* pinned: 7.8 a model, of which two are the edge and the next */
}

/* With an exact effective batch no trial is spent on what may not be chosen, whichever edge is requested. */
Test(edge, of_a_program_is_that_of_what_may_be_chosen)
{
    uint64_t random = 9;
    size_t runs = 0;
    for (int i = 0; i < 300; i++) {
        struct synthetic s;
        struct plim_question q = synthetic_question();
        struct synthetic_run r;
        synthetic_randomize(&s, &random);
        s.runner.costly = true;
        s.runner.limit_acts_early = false;
        q.batch.effective_batch = 480;
        synthetic_tune(&r, &s, &q, PLIM_OBJECTIVE_LARGEST_BATCH);
        cr_assert(eq(int, r.status, PLIM_OK), "model %d", i);
        for (size_t k = 0; k < r.prober.samples.count; k++)
            cr_expect(eq(i64, 480 % r.prober.samples.items[k].setting.micro_batch, 0), "model %d", i);
        cr_expect(not(r.decision.has_largest), "model %d", i);
        if (r.decision.found) {
            const struct plim_candidate *choice = &r.decision.choice;
            cr_expect(synthetic_fits(&s, &choice->setting), "model %d", i);
            int64_t next = plim_batch_next(&r.decision.rule, choice->batch.micro_batch);
            cr_expect(eq(i64, r.decision.after_choice.micro_batch, next), "model %d", i);
            cr_expect(next == 0 || r.decision.after_choice.tried, "model %d", i);
        }
        runs += s.limited_runs + s.unlimited_runs;
        synthetic_finish(&r);
    }
    cr_expect(eq(sz, runs, 1420)); /* pinned: 4.7 a model */
}

/* If a run crashes, its need is unknown: the next guess is half-way to what fits. */
Test(edge, what_crashes_is_gone_round_in_halves)
{
    struct synthetic s;
    struct plim_question q = synthetic_question();
    synthetic_init(&s, INT64_C(24) << 30);
    s.fault = PLIM_CRASHED;
    s.fault_from = 40;
    s.fault_to = INT64_MAX;
    struct plim_edge edge = search(&s, &q);
    cr_expect(eq(i64, edge.fits, 39));
    cr_expect(eq(i64, edge.fails, 40));
    cr_expect(eq(sz, s.limited_runs + s.unlimited_runs, 15)); /* pinned */
}

/* 98 would be the edge of the plain model; 90, 95 ... need 2 GiB more. */
Test(edge, is_not_stopped_by_a_bump)
{
    struct synthetic s;
    synthetic_init(&s, INT64_C(11) << 30);
    int64_t plain = true_edge(&s);
    s.bump_bytes = INT64_C(2) << 30;
    s.bump_every = plain; /* exactly the edge fails; the one before it is the answer */
    struct plim_question q = synthetic_question();
    struct plim_edge edge = search(&s, &q);
    cr_expect(eq(i64, edge.fits, plain - 1));

    s.bump_every = plain - 1; /* the edge itself fits beyond a bump */
    edge = search(&s, &q);
    cr_expect(eq(i64, edge.fits, plain));
    cr_expect(eq(i64, edge.fails, plain + 1));
}

/* Wherever the bumps are: what is called the edge fits, and the next one is what does not. */
Test(edge, among_bumps_lies_between_what_fits_and_what_does_not)
{
    uint64_t random = 3;
    struct plim_question q = synthetic_question();
    for (int i = 0; i < 300; i++) {
        struct synthetic s;
        synthetic_randomize(&s, &random);
        s.bump_every = synthetic_between(&random, 2, 9);
        s.bump_bytes = s.per_sample_bytes * synthetic_between(&random, 1, 4);
        struct plim_edge edge = search(&s, &q);
        struct plim_setting fits = synthetic_setting(edge.fits),
                            fails = synthetic_setting(edge.fails);
        cr_assert(eq(i64, edge.fails, edge.fits + 1), "model %d", i);
        cr_expect(edge.fits == 0 || synthetic_fits(&s, &fits), "model %d", i);
        cr_expect(not(synthetic_fits(&s, &fails)), "model %d", i);
    }
}

/* Before the edge is searched: at most what its line predicts, and less than what is known to fail. */
Test(edge, is_at_most_what_is_known)
{
    struct synthetic s;
    struct plim_question q = synthetic_question();
    struct plim_cache cache = {0};
    struct plim_decision decision = {0};
    struct plim_search search;
    synthetic_init(&s, INT64_C(2048) << 20);
    struct plim_prober prober = {.runner = &s.runner, .cache = &cache};
    cr_assert(eq(int, plim_search_init(&search, &q, &prober, &decision, NULL), PLIM_OK));
    cr_assert(eq(int, plim_search_points(&search, NULL, 0, NULL), PLIM_OK));
    struct plim_edge *edge = &decision.edges.items[0];
    *edge = (struct plim_edge){
        .requested = {.fixed_bytes = INT64_C(1024) << 20, .per_sample_bytes = INT64_C(100) << 20}};
    cr_expect(eq(i64, plim_edge_upper(&search, 0), 10));
    edge->fails = 7;
    cr_expect(eq(i64, plim_edge_upper(&search, 0), 6));
    edge->fits = 12; /* it was run, whatever the line predicts */
    edge->fails = 0;
    cr_expect(eq(i64, plim_edge_upper(&search, 0), 12));
    edge->searched = true;
    edge->fits = 3;
    cr_expect(eq(i64, plim_edge_upper(&search, 0), 3));
    plim_decision_finish(&decision);
    plim_prober_finish(&prober);
    plim_cache_finish(&cache);
}

Test(edge, nothing_fits_without_memory)
{
    struct synthetic s;
    struct plim_question q = synthetic_question();
    synthetic_init(&s, INT64_C(1) << 29);
    cr_expect(eq(i64, search(&s, &q).fits, 0));
    for (int64_t budget = -5; budget <= 0; budget += 5) {
        synthetic_init(&s, budget);
        cr_expect(eq(i64, search(&s, &q).fits, 0));
        cr_expect(eq(sz, s.limited_runs + s.unlimited_runs, 0));
    }
}

Test(edge, one_sample_may_be_all)
{
    struct synthetic s;
    struct plim_question q = synthetic_question();
    synthetic_init(&s, INT64_C(1200) << 20);
    struct plim_edge edge = search(&s, &q);
    cr_expect(eq(i64, edge.fits, 1));
    cr_expect(eq(i64, edge.fails, 2));
}

Test(edge, the_effective_batch_bounds_it)
{
    struct synthetic s;
    struct plim_question q = synthetic_question();
    q.batch.effective_batch = 64;
    q.batch.world = 4;
    synthetic_init(&s, INT64_C(200) << 30);
    struct plim_edge edge = search(&s, &q);
    cr_expect(eq(i64, edge.fits, 16));
    cr_expect(eq(i64, edge.fails, 0));
}

/* A step without accumulation needs no resident gradients, and so fits again beyond the edge. */
Test(edge, a_step_without_accumulation_is_tried)
{
    struct synthetic s;
    struct plim_question q = synthetic_question();
    q.batch.effective_batch = 20;
    synthetic_init(&s, INT64_C(3200) << 20);
    s.gradient_bytes = INT64_C(2) << 30;
    struct plim_edge edge = search(&s, &q);
    cr_expect(eq(i64, edge.fits, 20));
}

Test(edge, an_endless_gpu_ends_the_search)
{
    struct synthetic s;
    struct plim_question q = synthetic_question();
    synthetic_init(&s, INT64_C(1) << 60);
    struct plim_edge edge = search(&s, &q);
    cr_expect(eq(i64, edge.fits, PLIM_MICRO_BATCH_MAX));
    cr_expect(eq(i64, edge.fails, 0));
}

/* A runner to which settings that may be run next are announced. */
struct foreseeing {
    struct synthetic truth;
    struct plim_runner runner;
    struct plim_setting told[8], before[8]; /* now, and at the question before */
    size_t told_count, before_count, asked, foreseen, most;
};

static void expect_next(void *user, const struct plim_setting *settings, size_t count)
{
    struct foreseeing *f = user;
    memcpy(f->before, f->told, sizeof(f->told));
    f->before_count = f->told_count;
    memcpy(f->told, settings, count * sizeof(*settings));
    f->told_count = count;
    if (count > f->most) f->most = count;
}

static enum plim_status run_foreseen(void *user, const struct plim_setting *setting,
                                     enum plim_run_mode mode, struct plim_trial *out,
                                     struct plim_error *err)
{
    struct foreseeing *f = user;
    bool told = false;
    for (size_t i = 0; i < f->before_count; i++) told |= plim_setting_equal(&f->before[i], setting);
    if (mode == PLIM_RUN_LIMITED) f->asked++;
    if (mode == PLIM_RUN_LIMITED) f->foreseen += told;
    return f->truth.runner.run(&f->truth, setting, mode, out, err);
}

/* Over random models: of all runs of the bisections, those that were announced one run earlier. */
Test(edge, what_is_asked_next_is_told_before)
{
    uint64_t random = 5;
    size_t asked = 0, foreseen = 0, most = 0;
    struct plim_question q = synthetic_question();
    for (int i = 0; i < 100; i++) {
        struct foreseeing f = {0};
        synthetic_randomize(&f.truth, &random);
        f.truth.runner.user = &f.truth;
        f.runner = f.truth.runner;
        f.runner.run = run_foreseen;
        f.runner.expect = expect_next;
        f.runner.user = &f;
        f.runner.limit_acts_early = true; /* so that all is run */
        struct synthetic prober = {.runner = f.runner};
        synthetic_edge(&prober, &q, NULL, NULL);
        asked += f.asked;
        foreseen += f.foreseen;
        if (f.most > most) most = f.most;
    }
    cr_expect(eq(sz, asked, 1050));
    cr_expect(eq(sz, foreseen, 869));
    cr_expect(eq(sz, most, 6)); /* two levels of a tree */
}
