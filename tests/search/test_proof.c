/* What is reported to fit does so for ever: what the search makes of a proof. */
#include "synthetic.h"
#include <criterion/criterion.h>
#include <criterion/new/assert.h>

enum { EDGE = 22 }; /* the largest micro-batch that four steps do not rule out */

static struct plim_question question(void)
{
    struct plim_question q = synthetic_question();
    q.objective = PLIM_OBJECTIVE_LARGEST_BATCH;
    return q;
}

/* A GPU on which the micro-batches from `from` on are not what they seem. */
static void decide(struct synthetic *s, struct synthetic_run *run, int64_t from, int late,
                   int64_t retries, bool measured)
{
    struct plim_question q = question();
    synthetic_init(s, INT64_C(3400) << 20);
    s->runner.proves = true;
    s->runner.measured = s->runner.limit_acts_early = measured;
    s->runner.beyond_doubt = 1.1;
    s->late_from = from;
    s->late_to = from ? EDGE : -1;
    s->late = late ? SYNTHETIC_NEVER_REPEATS : SYNTHETIC_FAILS_LATE;
    s->late_retries = retries;
    synthetic_tune(run, s, &q, PLIM_OBJECTIVE_LARGEST_BATCH);
    cr_assert(eq(int, run->status, PLIM_OK), "%s", run->err.text);
    cr_assert(run->decision.found);
    cr_expect(run->decision.choice.verified);
}

static void expect_largest(const struct plim_decision *d, int64_t micro_batch)
{
    cr_expect(eq(i64, d->choice.batch.micro_batch, micro_batch));
    cr_expect(eq(i64, d->largest.batch.micro_batch, micro_batch));
    cr_expect(eq(i64, d->after_largest.micro_batch, micro_batch + 1));
    cr_expect(eq(int, d->after_largest.verdict, PLIM_OOM));
    cr_expect(eq(int, d->after_choice.verdict, PLIM_OOM));
}

Test(proof, what_is_reported_repeats)
{
    struct synthetic s;
    struct synthetic_run run;
    decide(&s, &run, 0, SYNTHETIC_FAILS_LATE, 0, false);
    expect_largest(&run.decision, EDGE);
    cr_expect(eq(int, run.decision.choice.trial.repeats_after, 7));
    cr_expect(eq(sz, s.proof_runs, 1), "only what is reported is proven");
    synthetic_finish(&run);
}

Test(proof, what_fails_in_a_later_step_gives_way_to_the_next_smaller_one)
{
    struct synthetic s;
    struct synthetic_run run;
    decide(&s, &run, EDGE - 3, SYNTHETIC_FAILS_LATE, 2, false);
    expect_largest(&run.decision, EDGE - 4);
    synthetic_finish(&run);
}

Test(proof, what_needs_a_retry_and_does_not_repeat_is_not_reported)
{
    struct synthetic s;
    struct synthetic_run run;
    decide(&s, &run, EDGE - 1, SYNTHETIC_NEVER_REPEATS, 2, false);
    expect_largest(&run.decision, EDGE - 2);
    cr_expect(lt(sz, 0, strlen(run.decision.after_largest.trial.why)));
    synthetic_finish(&run);
}

Test(proof, what_needs_no_retry_is_safe)
{
    struct synthetic s;
    struct synthetic_run run;
    decide(&s, &run, EDGE - 1, SYNTHETIC_NEVER_REPEATS, 0, false);
    cr_expect(eq(i64, run.decision.largest.batch.micro_batch, EDGE));
    cr_expect(eq(int, run.decision.largest.trial.repeats_after, 0));
    synthetic_finish(&run);
}

/* The twin's failure is a prediction: it counts where the GPU itself had to ask again. */
Test(proof, of_a_real_gpu_the_twin_decides_where_there_was_a_retry)
{
    struct synthetic s;
    struct synthetic_run run;
    decide(&s, &run, EDGE - 1, SYNTHETIC_FAILS_LATE, 0, true);
    cr_expect(eq(i64, run.decision.largest.batch.micro_batch, EDGE));
    synthetic_finish(&run);
    decide(&s, &run, EDGE - 1, SYNTHETIC_FAILS_LATE, 1, true);
    expect_largest(&run.decision, EDGE - 2);
    synthetic_finish(&run);
}
