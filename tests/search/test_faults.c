/* Settings that crash, hang or contradict themselves: they do not fit, the report says why, and the
 * search goes on. */
#include "synthetic.h"
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <string.h>

static const struct {
    enum plim_status status;
    const char *name;
} verdicts[] = {{PLIM_LOST, "lost"},
                {PLIM_TIMEOUT, "timeout"},
                {PLIM_CRASHED, "crashed"},
                {PLIM_UNSTABLE, "unstable"}};
enum { VERDICTS = sizeof(verdicts) / sizeof(verdicts[0]) };

static const int64_t BUDGET = INT64_C(5) << 30; /* fits 39 samples or so */

static int64_t largest_that_fits(const struct synthetic *s)
{
    int64_t b = 1;
    for (struct plim_setting setting = synthetic_setting(b); synthetic_fits(s, &setting);
         setting = synthetic_setting(b))
        b++;
    return b - 1;
}

static void decide(struct synthetic_run *run, struct synthetic *s, struct plim_question *q)
{
    synthetic_tune(run, s, q, PLIM_OBJECTIVE_THROUGHPUT);
    cr_assert(eq(int, run->status, PLIM_OK), "%s", run->err.text);
}

/* Every verdict at every micro-batch around the edge. */
Test(faults, one_bad_micro_batch_is_not_chosen_and_ends_nothing)
{
    for (int v = 0; v < VERDICTS; v++)
        for (int64_t bad = 1; bad <= 44; bad++)
            for (int limited_only = 0; limited_only < 2; limited_only++) {
                struct synthetic s;
                struct synthetic_run run;
                struct plim_question q = synthetic_question();
                synthetic_init(&s, BUDGET);
                int64_t edge = largest_that_fits(&s);
                s.fault = verdicts[v].status;
                s.fault_from = s.fault_to = bad;
                s.fault_limited_only = limited_only;
                decide(&run, &s, &q);
                const struct plim_decision *d = &run.decision;
                int64_t largest = d->has_largest ? d->largest.batch.micro_batch : 0;
                if (bad > 1) cr_assert(d->found && largest >= (bad <= edge ? bad - 1 : edge));
                if (d->found) {
                    struct plim_setting setting = synthetic_setting(d->choice.batch.micro_batch);
                    cr_assert(synthetic_fits(&s, &setting) && setting.micro_batch != bad);
                    setting.micro_batch = largest;
                    cr_assert(synthetic_fits(&s, &setting) && setting.micro_batch != bad);
                }
                cr_assert(le(sz, s.fault_runs, 2), "asked for again: bad %d", (int)bad);
                synthetic_finish(&run);
            }
}

Test(faults, the_report_names_the_verdict_and_the_reason)
{
    for (int v = 0; v < VERDICTS; v++) {
        struct synthetic s;
        struct synthetic_run run;
        struct plim_result result = {0};
        struct plim_question q = synthetic_question();
        q.batch.listed = (const int64_t[]){19, 20};
        q.batch.listed_count = 2;
        synthetic_init(&s, BUDGET);
        s.fault = verdicts[v].status;
        s.fault_from = 20;
        s.fault_to = 1000000;
        decide(&run, &s, &q);
        cr_assert(run.decision.found);
        cr_expect(eq(i64, run.decision.choice.batch.micro_batch, 19));
        synthetic_answer(&run, &result);
        cr_expect(synthetic_says(&result, "Micro-batch 20 does not run: the worker fell asleep."));
        cr_expect(eq(str, (char *)result.next.verdict, (char *)verdicts[v].name));
        bool listed = false;
        for (size_t i = 0; i < result.samples.count; i++)
            if (result.samples.items[i].setting.micro_batch == 20)
                listed = !strcmp(result.samples.items[i].verdict, verdicts[v].name);
        cr_expect(listed, "%s", verdicts[v].name);
        plim_result_finish(&result);
        synthetic_finish(&run);
    }
}

Test(faults, when_nothing_runs_the_report_says_why)
{
    for (int v = 0; v < VERDICTS; v++) {
        struct synthetic s;
        struct synthetic_run run;
        struct plim_result result = {0};
        struct plim_question q = synthetic_question();
        synthetic_init(&s, BUDGET);
        s.fault = verdicts[v].status;
        s.fault_from = 1;
        s.fault_to = INT64_MAX;
        decide(&run, &s, &q);
        cr_expect(not(run.decision.found));
        synthetic_answer(&run, &result);
        cr_expect(synthetic_says(&result,
                                 "Nothing can run with these settings: the worker fell asleep."));
        cr_expect(eq(int, result.ended, PLIM_LOST)); /* which is not that nothing fits */
        cr_expect(lt(sz, s.fault_runs, 10));
        plim_result_finish(&result);
        synthetic_finish(&run);
    }
}

Test(faults, a_sample_knows_how_well_it_was_timed)
{
    struct synthetic s;
    struct synthetic_run run;
    struct plim_result result = {0};
    struct plim_question q = synthetic_question();
    synthetic_init(&s, BUDGET);
    s.details.noisy = true;
    decide(&run, &s, &q);
    s.details.noisy = false; /* what was recorded stays */
    synthetic_answer(&run, &result);
    cr_expect(lt(sz, 0, result.samples.count));
    for (size_t i = 0; i < result.samples.count; i++) cr_expect(result.samples.items[i].noisy);
    plim_result_finish(&result);
    synthetic_finish(&run);
}

Test(faults, a_device_that_is_lost_leaves_the_best_so_far)
{
    bool found = false;
    for (size_t runs = 1; runs < 30; runs++) {
        struct synthetic s;
        struct synthetic_run run;
        struct plim_result result = {0};
        struct plim_question q = synthetic_question();
        synthetic_init(&s, BUDGET);
        s.lose_after = runs;
        decide(&run, &s, &q);
        if (!run.decision.ended) {
            synthetic_finish(&run);
            break;
        }
        found = run.decision.found;
        cr_expect(eq(int, run.decision.ended, PLIM_LOST));
        synthetic_answer(&run, &result);
        cr_expect(synthetic_says(&result, "ended early (the GPU fell off the bus)"));
        cr_expect(eq(int, result.ended, PLIM_LOST));
        plim_result_finish(&result);
        synthetic_finish(&run);
    }
    cr_expect(found); /* the last one that was cut short had an answer */
}

Test(faults, a_device_that_was_never_there_is_an_error)
{
    struct synthetic s;
    struct synthetic_run run;
    struct plim_question q = synthetic_question();
    synthetic_init(&s, BUDGET);
    s.lose_after = 1;
    s.limited_runs = 1;
    synthetic_tune(&run, &s, &q, PLIM_OBJECTIVE_THROUGHPUT);
    cr_expect(eq(int, run.status, PLIM_LOST));
    synthetic_finish(&run);
}
