/* Single decisions: ties, objectives, what happens when nothing fits or the time is up. */
#include "autotune/search/longest.h"
#include "synthetic.h"
#include <criterion/criterion.h>
#include <criterion/new/assert.h>

static struct plim_candidate candidate(double rate, int64_t gib)
{
    struct plim_candidate c = {.allowed = true, .tokens_per_second = rate};
    c.trial.reserved_bytes = gib << 30;
    return c;
}

static int choose(struct plim_candidate *list, size_t count, enum plim_objective objective)
{
    struct plim_candidates candidates = {
        .list = {.items = list, .count = count, .capacity = count}};
    return plim_choose(&candidates, objective);
}

Test(choose, the_fastest_wins)
{
    struct plim_candidate list[] = {candidate(100, 1), candidate(130, 9), candidate(120, 2)};
    cr_expect(eq(int, choose(list, 3, PLIM_OBJECTIVE_THROUGHPUT), 1));
}

Test(choose, within_one_percent_more_free_memory_wins)
{
    struct plim_candidate list[] = {candidate(100, 9), candidate(99.2, 5), candidate(98.9, 1)};
    cr_expect(eq(int, choose(list, 3, PLIM_OBJECTIVE_THROUGHPUT), 1));
}

/* It only gives way to what is faster by more than the noise. */
Test(choose, an_exact_effective_batch_wins_a_tie)
{
    struct plim_candidate list[] = {candidate(100, 5), candidate(99.2, 9), candidate(98.9, 1)};
    list[1].batch.exact = list[2].batch.exact = true;
    cr_expect(eq(int, choose(list, 3, PLIM_OBJECTIVE_THROUGHPUT), 1));
    list[1].tokens_per_second = 98;
    cr_expect(eq(int, choose(list, 3, PLIM_OBJECTIVE_THROUGHPUT), 0));
}

Test(choose, what_breaks_the_effective_batch_is_never_chosen)
{
    struct plim_candidate list[] = {candidate(100, 9), candidate(200, 9)};
    list[1].allowed = false;
    cr_expect(eq(int, choose(list, 2, PLIM_OBJECTIVE_THROUGHPUT), 0));
    list[0].refuted = true;
    cr_expect(eq(int, choose(list, 2, PLIM_OBJECTIVE_THROUGHPUT), -1));
}

Test(choose, least_memory_takes_the_faster_of_equals)
{
    struct plim_candidate list[] = {candidate(100, 200), candidate(300, 201), candidate(900, 300)};
    cr_expect(eq(int, choose(list, 3, PLIM_OBJECTIVE_LEAST_MEMORY), 1));
}

Test(choose, the_longest_sequence_comes_before_speed)
{
    struct plim_candidate list[] = {candidate(900, 1), candidate(100, 1), candidate(200, 1)};
    list[0].seq = 512;
    list[1].seq = list[2].seq = 1024;
    cr_expect(eq(int, choose(list, 3, PLIM_OBJECTIVE_LONGEST_SEQUENCE), 2));
}

Test(decision, a_wave_too_many_is_not_taken)
{
    struct synthetic s;
    struct synthetic_run run;
    struct plim_question q = synthetic_question();
    synthetic_init(&s, INT64_C(3) << 30);
    s.tile = 8; /* 16 samples are two full tiles; 17 are three */
    synthetic_tune(&run, &s, &q, PLIM_OBJECTIVE_THROUGHPUT);
    cr_assert(run.decision.found);
    cr_expect(eq(i64, run.decision.choice.setting.micro_batch, 16));
    cr_expect(lt(i64, 16, run.decision.largest.setting.micro_batch));
    synthetic_finish(&run);
}

/* 44 fit; of the multiples of eight 40 is neither a power of two nor next to the edge. */
Test(decision, multiples_of_eight_are_looked_at)
{
    struct synthetic s;
    struct synthetic_run run;
    struct plim_question q = synthetic_question();
    synthetic_init(&s, (INT64_C(5600) << 20));
    s.tile = 8;
    synthetic_tune(&run, &s, &q, PLIM_OBJECTIVE_THROUGHPUT);
    cr_assert(run.decision.found);
    cr_expect(eq(i64, run.decision.largest.setting.micro_batch, 44));
    cr_expect(eq(i64, run.decision.choice.setting.micro_batch, 40));
    synthetic_finish(&run);
}

Test(decision, long_accumulations_are_run_in_full_at_the_end)
{
    struct synthetic s;
    struct synthetic_run run;
    struct plim_question q = synthetic_question();
    q.batch.effective_batch = 128;
    synthetic_init(&s, INT64_C(2500) << 20);
    s.tile = 8;
    synthetic_tune(&run, &s, &q, PLIM_OBJECTIVE_THROUGHPUT);
    cr_assert(run.decision.found);
    cr_expect(eq(i64, run.decision.choice.setting.micro_batch, 8));
    cr_expect(eq(i64, run.decision.choice.setting.accumulation, 16));
    cr_expect(run.decision.choice.verified);
    double seconds = synthetic_seconds(&s, &run.decision.choice.setting);
    cr_expect(ieee_ulp_eq(dbl, run.decision.choice.step_seconds, seconds, 4));
    cr_expect(ieee_ulp_eq(dbl, run.decision.choice.trial.seconds, seconds, 4));
    synthetic_finish(&run);
}

Test(decision, every_phase_of_a_schedule_is_run)
{
    struct synthetic s;
    struct synthetic_run run;
    struct plim_question q = synthetic_question();
    q.batch.effective_batch = 64;
    q.batch.phase_count = 2;
    q.batch.phases[0] = (struct plim_phase_request){0, 4};
    q.batch.phases[1] = (struct plim_phase_request){4, 1};
    synthetic_init(&s, INT64_C(2500) << 20);
    synthetic_tune(&run, &s, &q, PLIM_OBJECTIVE_THROUGHPUT);
    cr_assert(run.decision.found);
    const struct plim_candidate *choice = &run.decision.choice;
    cr_expect(
        eq(i64, choice->batch.phase_accumulation[0], 4 * choice->batch.phase_accumulation[1]));
    for (int i = 0; i < 2; i++) {
        struct plim_setting setting = choice->setting;
        bool seen = false;
        setting.accumulation = choice->batch.phase_accumulation[i];
        for (size_t k = 0; k < run.prober.samples.count; k++)
            seen |= plim_setting_equal(&setting, &run.prober.samples.items[k].setting);
        cr_expect(seen, "phase %d", i);
    }
    synthetic_finish(&run);
}

Test(decision, a_batch_that_cannot_be_is_an_error_with_its_reason)
{
    struct synthetic s;
    struct synthetic_run run;
    struct plim_question q = synthetic_question();
    q.batch.effective_batch = 64;
    q.batch.listed = (const int64_t[]){3, 5};
    q.batch.listed_count = 2;
    synthetic_init(&s, INT64_C(3) << 30);
    synthetic_tune(&run, &s, &q, PLIM_OBJECTIVE_THROUGHPUT);
    cr_expect(eq(int, run.status, PLIM_SPEC));
    cr_expect(eq(str, run.err.text,
                 (char *)"no micro-batch that was given leads to an effective batch of 64"));
    cr_expect(eq(sz, run.prober.runs, 0));
    synthetic_finish(&run);
    struct plim_decision decision = {0};
    cr_expect(eq(int, plim_decide(&q, NULL, &run.prober, &decision, NULL), PLIM_SPEC));
    plim_decision_finish(&decision);
}

Test(decision, a_given_batch_that_is_too_large_leaves_the_largest_that_fits)
{
    struct synthetic s;
    struct synthetic_run run;
    struct plim_question q = synthetic_question();
    q.batch.listed = (const int64_t[]){64};
    q.batch.listed_count = 1;
    synthetic_init(&s, INT64_C(3) << 30);
    synthetic_tune(&run, &s, &q, PLIM_OBJECTIVE_THROUGHPUT);
    cr_expect(not(run.decision.found));
    cr_assert(run.decision.has_largest);
    cr_expect(eq(i64, run.decision.largest.setting.micro_batch, 19));
    cr_expect(lt(i64, s.runner.budget_bytes, run.decision.smallest_reserved_bytes));
    synthetic_finish(&run);
}

/* Of an exact effective batch only 8 may be chosen; what else would fit is looked for afterwards. */
Test(decision, what_fits_but_was_not_allowed_is_told)
{
    struct synthetic s;
    struct synthetic_run run;
    struct plim_question q = synthetic_question();
    q.batch.effective_batch = 8;
    q.batch.listed = (const int64_t[]){8};
    q.batch.listed_count = 1;
    synthetic_init(&s, INT64_C(1650) << 20);
    synthetic_tune(&run, &s, &q, PLIM_OBJECTIVE_THROUGHPUT);
    cr_expect(not(run.decision.found));
    cr_assert(run.decision.has_largest);
    cr_expect(eq(i64, run.decision.largest.setting.micro_batch, 3));
    synthetic_finish(&run);
}

Test(decision, where_nothing_fits_the_smallest_setting_is_told)
{
    struct synthetic s;
    struct synthetic_run run;
    struct plim_question q = synthetic_question();
    synthetic_axis(&q, SYNTHETIC_SEQ, 3, (const int64_t[]){4096, 512, 1024});
    q.batch.effective_batch = 16;
    synthetic_init(&s, INT64_C(1030) << 20);
    s.slack = s.squeeze = 0;
    for (int longest = 0; longest < 2; longest++) {
        synthetic_tune(&run, &s, &q,
                       longest ? PLIM_OBJECTIVE_LONGEST_SEQUENCE : PLIM_OBJECTIVE_THROUGHPUT);
        cr_expect(not(run.decision.found));
        cr_assert(run.decision.has_smallest);
        cr_expect(eq(i64, run.decision.smallest.micro_batch, 1));
        cr_expect(eq(i64, run.decision.smallest.accumulation, 16));
        cr_expect(eq(i64, run.decision.smallest.value[SYNTHETIC_SEQ], 512));
        cr_expect(eq(i64, run.decision.smallest_reserved_bytes, (INT64_C(1024) + 50 + 256) << 20));
        synthetic_finish(&run);
    }
}

/* Only two of the micro-steps are run; the report has all that were requested. */
Test(decision, the_smallest_setting_has_all_its_micro_steps)
{
    struct synthetic s;
    struct synthetic_run run;
    struct plim_question q = synthetic_question();
    q.batch.effective_batch = 16;
    synthetic_init(&s, INT64_C(1030) << 20);
    s.runner.probed_micro_steps = 2;
    synthetic_tune(&run, &s, &q, PLIM_OBJECTIVE_THROUGHPUT);
    cr_assert(run.decision.has_smallest);
    cr_expect(eq(i64, run.decision.smallest.accumulation, 16));
    synthetic_finish(&run);
}

Test(decision, advice_was_replayed)
{
    struct synthetic s;
    struct synthetic_run run;
    struct plim_question q = synthetic_question();
    synthetic_init(&s, INT64_C(1070) << 20);
    synthetic_tune(&run, &s, &q, PLIM_OBJECTIVE_THROUGHPUT);
    cr_expect(not(run.decision.found));
    cr_assert(lt(sz, 2, run.decision.advices.list.count));
    bool checkpointing = false, fits_ended = false;
    for (size_t i = 0; i < run.decision.advices.list.count; i++) {
        const struct plim_advice *a = &run.decision.advices.list.items[i];
        cr_expect(eq(int, a->fits, synthetic_fits(&s, &a->setting)), "%s", a->change);
        cr_expect(lt(i64, 0, a->trial.reserved_bytes), "%s", a->change);
        if (!strcmp(a->change, "checkpointing full")) checkpointing = true;
        if (!a->fits)
            fits_ended = true;
        else
            cr_expect(not(fits_ended), "what fits comes first");
    }
    cr_expect(checkpointing);
    synthetic_finish(&run);
}

Test(decision, changes_are_combined_when_none_is_enough)
{
    struct synthetic s;
    struct synthetic_run run;
    struct plim_question q = synthetic_question();
    synthetic_init(&s, INT64_C(1068) << 20); /* 1024 fixed x 1.03, and a few MiB */
    s.per_sample_bytes = INT64_C(100) << 20;
    synthetic_axis(&q, SYNTHETIC_SEQ, 1,
                   (const int64_t[]){64}); /* too short to be halved: 6 MiB, a quarter, an eighth */
    s.fixed_bytes = INT64_C(1036) << 20;
    s.squeeze = s.slack = 0.03;
    synthetic_tune(&run, &s, &q, PLIM_OBJECTIVE_THROUGHPUT);
    cr_expect(not(run.decision.found));
    cr_assert(lt(sz, 0, run.decision.advices.list.count));
    const struct plim_advice *first = &run.decision.advices.list.items[0];
    cr_expect(first->fits);
    cr_expect(ne(ptr, strstr(first->change, " + "), NULL), "%s", first->change);
    synthetic_finish(&run);
}

Test(decision, least_memory_takes_the_smallest)
{
    struct synthetic s;
    struct synthetic_run run;
    struct plim_question q = synthetic_question();
    synthetic_axis(&q, SYNTHETIC_CHECKPOINTING, 2, (const int64_t[]){0, 1});
    synthetic_init(&s, INT64_C(24) << 30);
    synthetic_tune(&run, &s, &q, PLIM_OBJECTIVE_LEAST_MEMORY);
    cr_assert(run.decision.found);
    cr_expect(eq(i64, run.decision.choice.setting.micro_batch, 1));
    cr_expect(eq(i64, run.decision.choice.setting.value[SYNTHETIC_CHECKPOINTING], SYNTHETIC_FULL));
    synthetic_finish(&run);
}

Test(decision, the_longest_sequence_is_found)
{
    struct synthetic s;
    struct synthetic_run run;
    struct plim_question q = synthetic_question();
    q.seq_by_default = true;
    q.batch.listed = (const int64_t[]){1};
    q.batch.listed_count = 1;
    synthetic_init(&s, INT64_C(3) << 30);
    synthetic_tune(&run, &s, &q, PLIM_OBJECTIVE_LONGEST_SEQUENCE);
    cr_assert(run.decision.found);
    struct plim_setting setting = run.decision.choice.setting;
    cr_expect(synthetic_fits(&s, &setting));
    setting.value[SYNTHETIC_SEQ] += PLIM_SEQ_RASTER;
    cr_expect(not(synthetic_fits(&s, &setting)));
    synthetic_finish(&run);
}

/* Up to the model's own limit, on the raster or not; below it on the raster. */
Test(decision, the_longest_sequence_ends_at_the_limit_of_the_model)
{
    static const struct {
        int64_t limit, fitting, expected;
    } cases[] = {{4096, 9000, 4096}, {200, 9000, 200}, {40, 9000, 40}, {64, 9000, 64},
                 {224, 200, 192},    {512, 300, 256}}; /* 192 is between 128 and 224 */
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct synthetic s;
        struct synthetic_run run;
        struct plim_question q = synthetic_question();
        q.seq_by_default = true;
        q.seq_most = cases[i].limit;
        q.batch.listed = (const int64_t[]){1};
        q.batch.listed_count = 1;
        synthetic_init(&s, (INT64_C(1024) << 20) + (cases[i].fitting << 20));
        s.slack = s.squeeze = 0;
        s.per_sample_bytes = INT64_C(1024) << 20; /* a token takes 1 MiB */
        synthetic_tune(&run, &s, &q, PLIM_OBJECTIVE_LONGEST_SEQUENCE);
        cr_assert(run.decision.found, "%zu", i);
        cr_expect(eq(i64, run.decision.choice.seq, cases[i].expected), "%zu", i);
        synthetic_finish(&run);
    }
}

Test(decision, the_longest_of_a_list_is_taken)
{
    struct synthetic s;
    struct synthetic_run run;
    struct plim_question q = synthetic_question();
    synthetic_axis(&q, SYNTHETIC_SEQ, 4, (const int64_t[]){512, 65536, 4096, 2048});
    synthetic_init(&s, INT64_C(3) << 30);
    synthetic_tune(&run, &s, &q, PLIM_OBJECTIVE_LONGEST_SEQUENCE);
    cr_assert(run.decision.found);
    cr_expect(eq(i64, run.decision.choice.seq, 4096));
    synthetic_finish(&run);
}

/* A signal that comes at the n-th run. */
struct interruption {
    size_t after;
    volatile sig_atomic_t signalled;
};

static void count_down(void *user)
{
    struct interruption *i = user;
    if (!i->after--) i->signalled = 1;
}

/* The search is interrupted in its run number `after`, from 0. */
static void decide_interrupted(const struct plim_question *q, struct synthetic *s, size_t after,
                               struct synthetic_run *run)
{
    struct interruption interruption = {.after = after};
    struct plim_stop stop = {.signalled = &interruption.signalled};
    run->prober = (struct plim_prober){.runner = &s->runner,
                                     .cache = &run->cache,
                                     .stop = &stop,
                                     .on_run = count_down,
                                     .on_run_user = &interruption};
    cr_assert(eq(int, plim_decide(q, NULL, &run->prober, &run->decision, &run->err), PLIM_OK));
    cr_expect(eq(int, run->decision.ended, PLIM_CANCELLED));
    run->prober.stop = NULL;
    run->prober.on_run = NULL;
}

Test(decision, an_interruption_keeps_the_best_so_far)
{
    struct plim_question q = synthetic_question();
    int answers = 0;
    for (size_t after = 0; after < 12; after++) {
        struct synthetic s;
        struct synthetic_run run = {.err = PLIM_ERROR_INIT};
        synthetic_init(&s, INT64_C(11) << 30);
        decide_interrupted(&q, &s, after, &run);
        if (run.decision.found) {
            cr_expect(synthetic_fits(&s, &run.decision.choice.setting));
            cr_expect(lt(i64, 0, run.decision.choice.setting.micro_batch));
            cr_expect(lt(dbl, 0, run.decision.choice.tokens_per_second));
        }
        answers += run.decision.found;
        synthetic_finish(&run);
    }
    cr_expect(lt(int, 0, answers));
}

/* A trial of a program takes seconds: each that fitted is an answer. */
Test(decision, an_interruption_keeps_what_was_tried_of_a_program)
{
    struct plim_question q = synthetic_question();
    for (size_t after = 1; after < 8; after++) {
        struct synthetic s;
        struct synthetic_run run = {.err = PLIM_ERROR_INIT};
        int64_t largest = 0;
        synthetic_init(&s, INT64_C(11) << 30);
        s.runner.costly = true;
        decide_interrupted(&q, &s, after, &run);
        for (size_t i = 0; i < run.prober.samples.count; i++) {
            const struct plim_sample *sample = &run.prober.samples.items[i];
            int64_t batch = sample->verdict == PLIM_OK ? sample->setting.micro_batch : 0;
            if (batch > largest) largest = batch;
        }
        cr_expect(eq(int, run.decision.found, largest > 0), "%zu", after);
        if (largest) cr_expect(le(i64, run.decision.choice.setting.micro_batch, largest));
        synthetic_finish(&run);
    }
}

Test(decision, time_that_is_up_ends_it)
{
    struct synthetic s;
    struct synthetic_run run = {.err = PLIM_ERROR_INIT};
    struct plim_question q = synthetic_question();
    struct plim_stop stop = {.deadline_seconds = 1e-9};
    synthetic_init(&s, INT64_C(11) << 30);
    run.prober = (struct plim_prober){.runner = &s.runner, .cache = &run.cache, .stop = &stop};
    cr_assert(eq(int, plim_decide(&q, NULL, &run.prober, &run.decision, &run.err), PLIM_OK));
    cr_expect(eq(int, run.decision.ended, PLIM_TIMEOUT));
    cr_expect(not(run.decision.found));
    synthetic_finish(&run);
}
