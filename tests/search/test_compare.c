/* The best setting of every point, not only the best of all, if the search is to compare points. */
#include "synthetic.h"
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdlib.h>
#include <string.h>

static const int64_t both[] = {SYNTHETIC_NONE, SYNTHETIC_FULL};

/* A GPU on which full checkpointing cannot win, and that ends the search after so many runs. */
struct ending {
    struct synthetic truth;
    struct plim_runner runner;
    struct plim_question question;
    struct synthetic_run run;
    size_t runs, most;
    enum plim_status end; /* PLIM_OK: never */
};

static enum plim_status run_to_the_end(void *user, const struct plim_setting *setting,
                                       enum plim_run_mode mode, struct plim_trial *out,
                                       struct plim_error *err)
{
    struct ending *e = user;
    if (e->end && e->runs == e->most) return plim_fail(err, e->end, "it is over");
    e->runs++;
    return e->truth.runner.run(&e->truth, setting, mode, out, err);
}

static void decide(struct ending *e, bool compares)
{
    const struct plim_known known = {.compares = compares};
    e->question = synthetic_question();
    synthetic_axis(&e->question, SYNTHETIC_CHECKPOINTING, 2, both);
    e->runs = 0;
    e->truth.runner.user = &e->truth;
    e->runner = e->truth.runner;
    e->runner.run = run_to_the_end;
    e->runner.user = e;
    e->run = (struct synthetic_run){.err = PLIM_ERROR_INIT};
    e->run.prober = (struct plim_prober){.runner = &e->runner, .cache = &e->run.cache};
    e->run.status =
        plim_decide(&e->question, &known, &e->run.prober, &e->run.decision, &e->run.err);
}

static struct ending *slow_checkpointing(void)
{
    struct ending *e = calloc(1, sizeof(*e));
    cr_assert(e != NULL);
    synthetic_init(&e->truth, INT64_C(11) << 30);
    e->truth.bump_bytes = INT64_C(150) << 20; /* so that no line predicts the edge */
    e->truth.bump_every = 7;
    e->truth.full_slower = 9;
    return e;
}

static void finish(struct ending *e)
{
    synthetic_finish(&e->run);
}

/* The point's best micro-batch, 0: none. */
static int64_t best_of(const struct ending *e, size_t point)
{
    const struct plim_candidates *all = &e->run.decision.candidates;
    int best = plim_choose_of_point(all, PLIM_OBJECTIVE_THROUGHPUT, point);
    return best < 0 ? 0 : all->list.items[best].batch.micro_batch;
}

Test(compare, every_point_gets_its_edge_and_its_best)
{
    struct ending *e = slow_checkpointing();
    decide(e, false);
    cr_expect(not(e->run.decision.edges.items[1].exact), "what cannot win is left out");
    struct plim_setting choice = e->run.decision.choice.setting;
    finish(e);
    decide(e, true);
    cr_assert(eq(int, e->run.status, PLIM_OK));
    cr_expect(e->run.decision.edges.items[0].exact && e->run.decision.edges.items[1].exact);
    cr_expect(lt(i64, e->run.decision.edges.items[0].fits, e->run.decision.edges.items[1].fits));
    cr_expect(lt(i64, 0, best_of(e, 0)));
    cr_expect(lt(i64, 0, best_of(e, 1)));
    cr_expect(plim_setting_equal(&choice, &e->run.decision.choice.setting), "the best is the best");
    finish(e);
    free(e);
}

/* One sample needs 1.1 GiB, with full checkpointing less. */
Test(compare, of_a_point_that_does_not_fit_the_need_is_asked)
{
    struct ending *e = slow_checkpointing();
    e->truth.runner.budget_bytes = INT64_C(1100) << 20;
    decide(e, true);
    cr_assert(eq(int, e->run.status, PLIM_OK));
    cr_assert(e->run.decision.found);
    cr_expect(eq(i64, best_of(e, 0), 0));
    cr_expect(lt(i64, 0, best_of(e, 1)));
    bool told = false;
    for (size_t i = 0; i < e->run.prober.samples.count; i++) {
        const struct plim_sample *sample = &e->run.prober.samples.items[i];
        told |= sample->verdict == PLIM_OOM && sample->setting.micro_batch == 1 &&
                sample->setting.value[SYNTHETIC_CHECKPOINTING] == SYNTHETIC_NONE;
    }
    cr_expect(told);
    finish(e);
    free(e);
}

Test(compare, without_memory_there_is_nothing_to_compare)
{
    struct ending *e = slow_checkpointing();
    e->truth.runner.budget_bytes = 0;
    decide(e, false);
    size_t runs = e->runs;
    finish(e);
    decide(e, true);
    cr_expect(eq(int, e->run.status, PLIM_OK));
    cr_expect(eq(sz, e->runs, runs));
    cr_expect(not(e->run.decision.found));
    finish(e);
    free(e);
}

/* The answer is there already; only the rest of the table is not. */
Test(compare, time_that_is_up_ends_the_comparison_alone)
{
    struct ending *e = slow_checkpointing();
    decide(e, false);
    e->most = e->runs;
    finish(e);
    e->end = PLIM_TIMEOUT;
    decide(e, true);
    cr_expect(eq(int, e->run.status, PLIM_OK));
    cr_expect(eq(int, e->run.decision.ended, PLIM_OK));
    cr_expect(e->run.decision.found);
    finish(e);
    e->end = PLIM_LOST;
    decide(e, true);
    cr_expect(eq(int, e->run.status, PLIM_OK));
    cr_expect(eq(int, e->run.decision.ended, PLIM_LOST));
    cr_expect(eq(str, e->run.decision.ended_why, (char *)"it is over"));
    cr_expect(e->run.decision.found);
    finish(e);
    e->end = PLIM_NOMEM;
    decide(e, true);
    cr_expect(eq(int, e->run.status, PLIM_NOMEM));
    cr_expect(eq(str, e->run.err.text, (char *)"it is over"));
    finish(e);
    free(e);
}
