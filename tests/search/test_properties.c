/* What must hold of every decision, over random models and GPUs. */
#include "autotune/search/throughput.h"
#include "synthetic.h"
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdlib.h>

enum { MODELS = 200 };

static struct plim_question random_question(uint64_t *random)
{
    static const int64_t checkpointings[] = {SYNTHETIC_NONE, SYNTHETIC_FULL};
    static const int64_t sequences[] = {512, 1024};
    static const int64_t targets[] = {0, 0, 8, 24, 60, 64, 256, 512};
    struct plim_question q = synthetic_question();
    q.batch.effective_batch = targets[synthetic_random(random) % 8];
    q.batch.world = q.batch.effective_batch ? INT64_C(1) << synthetic_between(random, 0, 2) : 1;
    if (synthetic_random(random) % 3 == 0) q.batch.effective_batch_tolerance = 0.05;
    if (synthetic_random(random) % 2)
        synthetic_axis(&q, SYNTHETIC_CHECKPOINTING, 2, checkpointings);
    if (synthetic_random(random) % 3 == 0) synthetic_axis(&q, SYNTHETIC_SEQ, 2, sequences);
    return q;
}

Test(properties, the_choice_fits)
{
    uint64_t random = 11;
    int found = 0;
    for (int i = 0; i < MODELS; i++) {
        struct synthetic s;
        struct synthetic_run run;
        synthetic_randomize(&s, &random);
        struct plim_question q = random_question(&random);
        synthetic_tune(&run, &s, &q, PLIM_OBJECTIVE_THROUGHPUT);
        cr_assert(eq(int, run.status, PLIM_OK), "%s", run.err.text);
        if (run.decision.found) {
            found++;
            cr_assert(synthetic_fits(&s, &run.decision.choice.setting), "model %d", i);
            cr_assert(run.decision.choice.verified, "model %d", i);
            cr_assert(synthetic_fits(&s, &run.decision.largest.setting), "model %d", i);
        }
        synthetic_finish(&run);
    }
    cr_assert(lt(int, MODELS / 2, found));
}

Test(properties, the_effective_batch_is_the_target_or_within_tolerance)
{
    uint64_t random = 12;
    for (int i = 0; i < MODELS; i++) {
        struct synthetic s;
        struct synthetic_run run;
        synthetic_randomize(&s, &random);
        struct plim_question q = random_question(&random);
        synthetic_tune(&run, &s, &q, PLIM_OBJECTIVE_THROUGHPUT);
        const struct plim_candidate *choice = &run.decision.choice;
        if (run.decision.found && q.batch.effective_batch) {
            int64_t made =
                choice->setting.micro_batch * choice->setting.accumulation * q.batch.world;
            double off =
                (double)llabs(made - q.batch.effective_batch) / (double)q.batch.effective_batch;
            cr_assert(le(dbl, off, q.batch.effective_batch_tolerance), "model %d", i);
            cr_assert(eq(i64, choice->batch.effective, made), "model %d", i);
        }
        synthetic_finish(&run);
    }
}

/* Of all that may be chosen, tried one after the other. */
static double best_possible(const struct synthetic *s, const struct plim_question *q)
{
    struct plim_batch_rule rule;
    struct plim_space space = {0};
    double best = 0;
    cr_assert(eq(int, plim_batch_rule_init(&rule, &q->batch, NULL), PLIM_OK));
    cr_assert(eq(int, plim_space_build(&space, &q->axes, NULL, 0, NULL), PLIM_OK));
    for (size_t i = 0; i < space.points.count; i++) {
        for (int64_t b = plim_batch_next(&rule, 0); b && b < 20000; b = plim_batch_next(&rule, b)) {
            struct plim_batch batch;
            plim_batch_allowed(&rule, b, &batch);
            struct plim_setting setting = space.points.items[i];
            setting.micro_batch = b;
            setting.accumulation = batch.accumulation;
            if (!synthetic_fits(s, &setting)) continue;
            double rate = (double)batch.effective * (double)setting.value[SYNTHETIC_SEQ] /
                          synthetic_seconds(s, &setting);
            if (rate > best) best = rate;
        }
    }
    plim_space_finish(&space);
    return best;
}

Test(properties, the_choice_is_within_noise_of_the_best)
{
    uint64_t random = 13;
    for (int i = 0; i < MODELS; i++) {
        struct synthetic s;
        struct synthetic_run run;
        synthetic_randomize(&s, &random);
        struct plim_question q = random_question(&random);
        synthetic_tune(&run, &s, &q, PLIM_OBJECTIVE_THROUGHPUT);
        double best = best_possible(&s, &q);
        cr_assert(eq(int, run.decision.found, best > 0), "model %d", i);
        if (run.decision.found)
            cr_assert(ge(dbl, run.decision.choice.tokens_per_second, 0.985 * best), "model %d", i);
        synthetic_finish(&run);
    }
}

Test(properties, more_memory_is_never_worse)
{
    uint64_t random = 14;
    for (int i = 0; i < MODELS / 4; i++) {
        struct synthetic s;
        double before = 0;
        synthetic_randomize(&s, &random);
        struct plim_question q = random_question(&random);
        for (int64_t gib = 2; gib <= 96; gib += gib / 4 + 1) {
            struct synthetic_run run;
            s.runner.budget_bytes = gib << 30;
            synthetic_tune(&run, &s, &q, PLIM_OBJECTIVE_THROUGHPUT);
            double now = run.decision.found ? run.decision.choice.tokens_per_second : 0;
            cr_assert(ge(dbl, now, before * (1 - PLIM_TIE_SHARE) * 0.995), "model %d, %d GiB", i,
                      (int)gib);
            if (now > before) before = now;
            synthetic_finish(&run);
        }
    }
}

Test(properties, a_smaller_margin_is_never_a_smaller_batch)
{
    uint64_t random = 15;
    for (int i = 0; i < MODELS / 4; i++) {
        struct synthetic s;
        int64_t before = 0;
        synthetic_randomize(&s, &random);
        struct plim_question q = synthetic_question();
        int64_t usable = s.runner.budget_bytes;
        for (int percent = 30; percent >= 0; percent -= 3) {
            struct synthetic_run run;
            s.runner.budget_bytes = usable - usable / 100 * percent;
            synthetic_tune(&run, &s, &q, PLIM_OBJECTIVE_THROUGHPUT);
            int64_t now = run.decision.has_largest ? run.decision.largest.setting.micro_batch : 0;
            cr_assert(ge(i64, now, before), "model %d, %d %%", i, percent);
            before = now;
            synthetic_finish(&run);
        }
    }
}

Test(properties, the_next_larger_one_was_run)
{
    uint64_t random = 16;
    for (int i = 0; i < MODELS; i++) {
        struct synthetic s;
        struct synthetic_run run;
        synthetic_randomize(&s, &random);
        struct plim_question q = random_question(&random);
        synthetic_tune(&run, &s, &q, PLIM_OBJECTIVE_THROUGHPUT);
        const struct plim_decision *d = &run.decision;
        if (d->found) {
            int64_t next = plim_batch_next(&d->rule, d->choice.batch.micro_batch);
            cr_assert(eq(i64, d->after_choice.micro_batch, next), "model %d", i);
            cr_assert(eq(int, d->after_choice.tried, next > 0), "model %d", i);
            if (next && d->after_choice.verdict == PLIM_OK)
                cr_assert(le(dbl, d->after_choice.tokens_per_second * (1 - PLIM_TIE_SHARE),
                             d->choice.tokens_per_second),
                          "model %d", i);
            cr_assert(eq(int, d->after_largest.tried, d->after_largest.micro_batch > 0), "model %d",
                      i);
            if (d->after_largest.tried)
                cr_assert(eq(int, d->after_largest.verdict, PLIM_OOM), "model %d", i);
        }
        synthetic_finish(&run);
    }
}

Test(properties, the_same_input_gives_the_same_samples)
{
    uint64_t random = 17;
    for (int i = 0; i < MODELS / 4; i++) {
        struct synthetic s;
        struct synthetic_run one, two;
        synthetic_randomize(&s, &random);
        struct plim_question q = random_question(&random);
        synthetic_tune(&one, &s, &q, PLIM_OBJECTIVE_THROUGHPUT);
        synthetic_tune(&two, &s, &q, PLIM_OBJECTIVE_THROUGHPUT);
        cr_assert(eq(sz, one.prober.samples.count, two.prober.samples.count));
        for (size_t k = 0; k < one.prober.samples.count; k++)
            cr_assert(plim_setting_equal(&one.prober.samples.items[k].setting,
                                         &two.prober.samples.items[k].setting));
        synthetic_finish(&one);
        synthetic_finish(&two);
    }
}

Test(properties, a_decision_takes_a_bounded_number_of_runs)
{
    uint64_t random = 18;
    size_t all = 0;
    for (int i = 0; i < MODELS; i++) {
        struct synthetic s;
        struct synthetic_run run;
        synthetic_randomize(&s, &random);
        struct plim_question q = random_question(&random);
        synthetic_tune(&run, &s, &q, PLIM_OBJECTIVE_THROUGHPUT);
        cr_assert(le(sz, run.prober.runs, 40 * run.decision.space.points.count), "model %d: %zu", i,
                  run.prober.runs);
        all += run.prober.runs;
        synthetic_finish(&run);
    }
    cr_expect(le(sz, all / MODELS, 40));
}
