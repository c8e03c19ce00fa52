/* The report of a decision: every number of the choice, and the sentences. */
#include "autotune/search/inspect.h"
#include "synthetic.h"
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <string.h>

static const int64_t MIB = INT64_C(1) << 20;

/* The sentences of a report are these, and no others. The list ends with NULL. */
static void expect_reasons(const struct plim_result *result, const char *const *sentences)
{
    size_t i = 0;
    for (; sentences[i]; i++)
        cr_expect(eq(str, (char *)(i < result->reason_count ? result->reasons[i] : ""),
                     (char *)sentences[i]));
    cr_expect(eq(sz, result->reason_count, i), "%s",
              result->reason_count > i ? result->reasons[i] : "");
}

struct reported {
    struct synthetic gpu;
    struct plim_question question;
    struct synthetic_run run;
    struct plim_result result;
};

/* A GPU whose samples need exactly this much, with no additional memory for its allocator. */
static void prepare(struct reported *r, int64_t budget_mib)
{
    *r = (struct reported){.question = synthetic_question()};
    synthetic_init(&r->gpu, budget_mib * MIB);
    r->gpu.slack = r->gpu.squeeze = 0;
    r->gpu.gradient_bytes = 0;
}

static void report(struct reported *r, enum plim_objective objective)
{
    synthetic_tune(&r->run, &r->gpu, &r->question, objective);
    cr_assert(eq(int, r->run.status, PLIM_OK), "%s", r->run.err.text);
    synthetic_answer(&r->run, &r->result);
}

static void finish(struct reported *r)
{
    plim_result_finish(&r->result);
    synthetic_finish(&r->run);
}

#define NO_CHANGE "A larger micro-batch would change the effective batch."

/* 30 samples fit, and are faster than 20, but 22 to 29 do not fit. */
static void prepare_luck(struct reported *r)
{
    prepare(r, 1024 + 3000);
    r->gpu.tile = 30;
    r->gpu.fault = PLIM_OOM;
    r->gpu.fault_from = 22;
    r->gpu.fault_to = 29;
    r->gpu.fault_limited_only = true;
    r->question.batch.effective_batch = 60;
}

Test(reasons, what_fits_by_luck_is_not_chosen)
{
    struct reported r;
    prepare_luck(&r);
    report(&r, PLIM_OBJECTIVE_THROUGHPUT);
    cr_expect(eq(i64, r.run.decision.choice.batch.micro_batch, 20));
    cr_expect(eq(int, r.run.decision.after_choice.verdict, PLIM_OK));
    cr_expect(synthetic_says(
        &r.result, "Micro-batch 30 happens to fit, but smaller ones do not: not to be relied on."));
    finish(&r);
}

Test(reasons, what_is_larger_by_luck_is_not_chosen_for_its_size)
{
    struct reported r;
    prepare_luck(&r);
    report(&r, PLIM_OBJECTIVE_LARGEST_BATCH);
    cr_expect(eq(i64, r.run.decision.choice.batch.micro_batch, 20));
    cr_expect(synthetic_says(
        &r.result, "Micro-batch 30 happens to fit, but smaller ones do not: not to be relied on."));
    finish(&r);
}

Test(reasons, the_next_one_is_no_faster)
{
    struct reported r;
    prepare(&r, 1024 + 4000);
    r.gpu.step_seconds = 0;
    report(&r, PLIM_OBJECTIVE_THROUGHPUT);
    expect_reasons(&r.result,
                   (const char *const[]){
                       "Micro-batch 2 fits too, but is only 0.0 % faster (noise is 1 %) and takes "
                       "100 MiB more.",
                       "The largest micro-batch that fits is 40; 41 does not: out of memory.",
                       NULL});
    finish(&r);
    prepare(&r, 1024 + 1000);
    r.gpu.step_seconds = 0;
    r.gpu.tile = 8;
    report(&r, PLIM_OBJECTIVE_THROUGHPUT);
    expect_reasons(&r.result,
                   (const char *const[]){
                       "Micro-batch 9 fits too, but is 43.8 % slower.",
                       "The largest micro-batch that fits is 10; 11 does not: out of memory.",
                       NULL});
    finish(&r);
    prepare(&r, 1024 + 1000);
    report(&r, PLIM_OBJECTIVE_LEAST_MEMORY);
    expect_reasons(&r.result,
                   (const char *const[]){
                       "Micro-batch 2 fits too, but takes 100 MiB more.",
                       "The largest micro-batch that fits is 10; 11 does not: out of memory.",
                       NULL});
    finish(&r);
}

/* Four samples need as much as one. */
Test(reasons, the_next_one_needs_the_same)
{
    struct reported r;
    prepare(&r, 2048);
    r.gpu.per_sample_bytes = 0;
    r.gpu.tile = 3;
    r.question.batch.last = 4;
    report(&r, PLIM_OBJECTIVE_LEAST_MEMORY);
    expect_reasons(&r.result,
                   (const char *const[]){"Micro-batch 4 fits too, but takes 0 B more.",
                                         "The largest micro-batch that fits is 4.", NULL});
    finish(&r);
}

Test(reasons, between_the_choice_and_the_next_nothing_divides)
{
    struct reported r;
    prepare(&r, 1024 + 350);
    r.gpu.tile = 3;
    r.question.batch.effective_batch = 12;
    report(&r, PLIM_OBJECTIVE_THROUGHPUT);
    expect_reasons(&r.result,
                   (const char *const[]){"Micro-batch 4 does not fit: out of memory.", NULL});
    finish(&r);
    prepare(&r, 1024 + 1350);
    r.gpu.tile = 12;
    r.question.batch.effective_batch = 24;
    report(&r, PLIM_OBJECTIVE_THROUGHPUT);
    expect_reasons(&r.result,
                   (const char *const[]){
                       "No micro-batch from 13 to 23 divides the effective batch of 24.",
                       "Micro-batch 24 does not fit: out of memory.",
                       "The largest micro-batch that fits is 13; 14 does not: out of memory.",
                       NULL});
    finish(&r);
    prepare(&r, 1024 + 450);
    r.gpu.tile = 4;
    r.question.batch.effective_batch = 12;
    report(&r, PLIM_OBJECTIVE_THROUGHPUT);
    expect_reasons(&r.result,
                   (const char *const[]){"Micro-batch 5 does not divide the effective batch of 12.",
                                         "Micro-batch 6 does not fit: out of memory.", NULL});
    finish(&r);
    prepare(&r, 1024 + 5000);
    r.gpu.tile = 12;
    r.question.batch.effective_batch = 12;
    report(&r, PLIM_OBJECTIVE_THROUGHPUT);
    expect_reasons(&r.result, (const char *const[]){NO_CHANGE, NULL});
    finish(&r);
}

Test(reasons, a_deviation_has_its_sign)
{
    struct reported r;
    static const int64_t less = 33, more = 34;
    prepare(&r, 1024 + 9000);
    r.question.batch.effective_batch = 100;
    r.question.batch.effective_batch_tolerance = 0.05;
    r.question.batch.listed_count = 1;
    r.question.batch.listed = &less;
    report(&r, PLIM_OBJECTIVE_THROUGHPUT);
    cr_expect(synthetic_says(
        &r.result, "The effective batch is 99 instead of 100 (-1.00 %), within the tolerance."));
    finish(&r);
    r.question.batch.listed = &more;
    r.result = (struct plim_result){0};
    report(&r, PLIM_OBJECTIVE_THROUGHPUT);
    cr_expect(synthetic_says(
        &r.result, "The effective batch is 102 instead of 100 (+2.00 %), within the tolerance."));
    finish(&r);
}

Test(reasons, a_sequence_that_was_not_given_is_told)
{
    struct reported r;
    for (int given = 0; given < 2; given++) {
        prepare(&r, 1024 + 1000);
        r.question.seq_by_default = !given;
        report(&r, PLIM_OBJECTIVE_THROUGHPUT);
        cr_expect(
            eq(int, !given,
               synthetic_says(&r.result, "No sequence length was given: 1024 is the default.")));
        finish(&r);
    }
    prepare(&r, 1024 + 1000);
    r.question.seq_by_default = true;
    r.question.seq_most = 1024;
    report(&r, PLIM_OBJECTIVE_THROUGHPUT);
    cr_expect(synthetic_says(&r.result, "No sequence length was given: 1024 is the model's."));
    finish(&r);
    prepare(&r, 1024 + 1000);
    r.question.seq_by_default = true;
    report(&r, PLIM_OBJECTIVE_LONGEST_SEQUENCE); /* it was looked for */
    cr_expect(not(synthetic_says(&r.result, "No sequence length was given")));
    finish(&r);
}

/* The share of the peak is one GPU's: as much of a second GPU's is used, too. */
Test(reasons, rates_are_of_all_gpus_and_mfu_of_one)
{
    for (int64_t world = 1; world <= 4; world *= 4) {
        struct reported r;
        prepare(&r, 1024 + 1000);
        r.gpu.details.flops_per_token = 1e9;
        r.gpu.tile = 8;
        r.question.batch.world = world;
        r.question.batch.effective_batch = 8 * world;
        report(&r, PLIM_OBJECTIVE_THROUGHPUT);
        const struct plim_result_choice *c = &r.result.choice;
        cr_expect(eq(i64, c->setting.micro_batch, 8));
        cr_expect(eq(i64, c->world, world));
        cr_expect(eq(i64, c->effective_batch, 8 * world));
        cr_expect(eq(i64, c->effective_batch_target, 8 * world));
        cr_expect(epsilon_eq(dbl, c->step_seconds, 0.03, 1e-12));
        cr_expect(epsilon_eq(dbl, c->samples_per_second, 8 / 0.03 * (double)world, 1e-9));
        cr_expect(epsilon_eq(dbl, c->tokens_per_second, 8 * 1024 / 0.03 * (double)world, 1e-6));
        cr_expect(epsilon_eq(dbl, c->mfu, 1e9 * 8 * 1024 / 0.03 / 1e15, 1e-9));
        cr_expect(
            eq(int,
               synthetic_says(&r.result,
                              "Rates are 4 times those of one GPU; communication is not counted."),
               world == 4));
        finish(&r);
    }
}

Test(reasons, more_than_the_peak_rate_is_of_another_precision)
{
    static const double flops[] = {1e9, 3.6e9, 4e9}; /* of 3.66e9 in all */
    for (size_t i = 0; i < 3; i++) {
        struct reported r;
        prepare(&r, 1024 + 1000);
        r.gpu.details.flops_per_token = flops[i];
        r.gpu.tile = 8;
        r.question.batch.effective_batch = 8;
        report(&r, PLIM_OBJECTIVE_THROUGHPUT);
        cr_expect(eq(int, r.result.choice.mfu > 1, i == 2));
        cr_expect(eq(int, synthetic_says(&r.result, "(MFU above 100 %)"), i == 2));
        finish(&r);
    }
}

/* The sequence length is reported separately; hidden values are not reported. */
Test(reasons, a_setting_has_the_values_of_its_axes)
{
    struct reported r;
    prepare(&r, 1024 + 1000);
    r.question.axes.axis[SYNTHETIC_CHECKPOINTING].is_users = true;
    report(&r, PLIM_OBJECTIVE_THROUGHPUT);
    const struct plim_result_setting *s = &r.result.choice.setting;
    cr_assert(eq(sz, s->value_count, 2));
    cr_expect(eq(str, (char *)s->values[0].name, (char *)"precision"));
    cr_expect(eq(str, (char *)s->values[0].text, (char *)"bf16-mixed"));
    cr_expect(not(s->values[0].is_size));
    cr_expect(eq(str, (char *)s->values[1].name, (char *)"checkpointing"));
    cr_expect(s->values[1].is_size);
    finish(&r);
    prepare(&r, 1024 + 1000);
    r.question.axes.axis[SYNTHETIC_PRECISION].is_hidden = true;
    r.question.batch.is_unknown = true;
    report(&r, PLIM_OBJECTIVE_THROUGHPUT);
    cr_assert(eq(sz, r.result.choice.setting.value_count, 1));
    cr_expect(eq(str, r.result.choice.setting.values[0].name, (char *)"checkpointing"));
    cr_expect(eq(i64, r.result.choice.setting.micro_batch, 0));
    finish(&r);
}

Test(reasons, without_a_time_there_are_no_rates)
{
    struct reported r;
    prepare(&r, 1024 + 1000);
    r.gpu.step_seconds = r.gpu.tile_seconds = 0;
    r.gpu.details.flops_per_token = 1e9;
    report(&r, PLIM_OBJECTIVE_LARGEST_BATCH);
    const struct plim_result_choice *c = &r.result.choice;
    cr_expect(eq(i64, c->setting.micro_batch, 10));
    cr_expect(c->step_seconds == 0 && c->tokens_per_second == 0 && c->samples_per_second == 0);
    cr_expect(eq(dbl, c->mfu, 0));
    finish(&r);
}

Test(reasons, the_peak_is_of_the_allocator_and_of_the_device)
{
    struct reported r;
    prepare(&r, 1024 + 1000);
    r.gpu.tile = 10;
    report(&r, PLIM_OBJECTIVE_THROUGHPUT);
    const struct plim_result_peak *peak = &r.result.choice.peak;
    cr_expect(eq(i64, peak->reserved_bytes, 2024 * MIB));
    cr_expect(eq(i64, peak->allocated_bytes, 2024 * MIB - 2024 * MIB / 16));
    cr_expect(eq(i64, peak->device_bytes, (1024 + 2024) * MIB));
    cr_expect(eq(i64, r.result.largest_fit.peak.reserved_bytes, 2024 * MIB));
    cr_expect(eq(i64, r.result.next.micro_batch, 11));
    cr_expect(eq(str, (char *)r.result.next.verdict, (char *)"oom"));
    cr_expect(eq(str, (char *)r.result.next.why, (char *)"out of memory"));
    cr_expect(eq(i64, r.result.short_bytes, 0));
    for (size_t i = 0; i < r.result.samples.count; i++) {
        const struct plim_result_sample *s = &r.result.samples.items[i];
        int64_t needs = (1024 + 100 * s->setting.micro_batch) * MIB;
        if (!strcmp(s->verdict, "ok")) cr_expect(eq(i64, s->peak.reserved_bytes, needs));
        cr_expect(eq(int, s->seconds > 0, !strcmp(s->verdict, "ok")));
        if (s->peak.reserved_bytes) cr_expect(eq(i64, s->peak.device_bytes, needs + 1024 * MIB));
        cr_expect(s->simulated);
        cr_expect(eq(i64, s->setting.seq, 1024));
        cr_expect(eq(i64, s->setting.accumulation, 1));
        cr_expect(
            eq(str, (char *)plim_result_value(&s->setting, "precision"), (char *)"bf16-mixed"));
    }
    finish(&r);
}

Test(reasons, a_schedule_says_each_phase)
{
    struct reported r;
    prepare(&r, 1024 + 1000);
    r.question.batch.world = 2;
    r.question.batch.effective_batch = 32;
    r.question.batch.phase_count = 2;
    r.question.batch.phases[0] = (struct plim_phase_request){0, 4};
    r.question.batch.phases[1] = (struct plim_phase_request){5, 1};
    r.gpu.tile = 4;
    report(&r, PLIM_OBJECTIVE_THROUGHPUT);
    const struct plim_result_choice *c = &r.result.choice;
    cr_expect(eq(i64, c->setting.micro_batch, 4));
    cr_assert(eq(sz, c->phase_count, 2));
    cr_expect(eq(i64, c->phases[0].epoch, 0));
    cr_expect(eq(i64, c->phases[0].accumulation, 4));
    cr_expect(eq(i64, c->phases[0].effective_batch, 32));
    cr_expect(eq(i64, c->phases[1].epoch, 5));
    cr_expect(eq(i64, c->phases[1].accumulation, 1));
    cr_expect(eq(i64, c->phases[1].effective_batch, 8));
    finish(&r);
}

Test(reasons, what_only_fits_with_retries_says_so)
{
    struct reported r;
    prepare(&r, 1024 + 1000);
    r.gpu.slack = 0.1;
    r.gpu.tile = 10;
    report(&r, PLIM_OBJECTIVE_THROUGHPUT);
    expect_reasons(
        &r.result,
        (const char *const[]){
            "Micro-batch 11 does not fit: out of memory.",
            "It fits only because the allocator frees cached memory and retries, 1 time.",
            NULL});
    for (size_t i = 0; i < r.result.samples.count; i++)
        if (!strcmp(r.result.samples.items[i].verdict, "ok"))
            cr_expect(lt(i64, 0, r.result.samples.items[i].peak.reserved_bytes));
    finish(&r);
}

Test(reasons, a_choice_with_very_many_micro_steps_is_run_in_full)
{
    struct reported r;
    prepare(&r, 1024 + 1000);
    r.gpu.tile = 10;
    r.gpu.runner.probed_micro_steps = 4;
    r.question.batch.accumulation = 300;
    report(&r, PLIM_OBJECTIVE_THROUGHPUT);
    cr_expect(not(synthetic_says(&r.result, "Run with 4 of the 300 micro-steps of a step.")));
    cr_expect(r.result.choice.verified);
    cr_expect(eq(i64, r.result.choice.setting.accumulation, 300));
    finish(&r);
}

Test(reasons, nothing_fits_and_what_is_missing)
{
    struct reported r;
    prepare(&r, 1100);
    report(&r, PLIM_OBJECTIVE_THROUGHPUT);
    expect_reasons(&r.result,
                   (const char *const[]){
                       "Nothing fits. Micro-batch 1 at sequence 1024 (bf16-mixed, checkpointing "
                       "none) needs 1.10 GiB if there is enough memory, more than the budget of 1.07 GiB.",
                       "It runs out of memory.", NULL});
    cr_expect(eq(i64, r.result.short_bytes, 24 * MIB));
    cr_expect(not(r.result.choice.present));
    cr_assert(eq(sz, r.result.points.count, 1));
    cr_expect(eq(i64, r.result.points.items[0].short_bytes, 24 * MIB), "of the smallest one");
    cr_expect(eq(str, (char *)r.result.points.items[0].verdict, (char *)"oom"));
    bool told = false; /* what a sample needs, not how much it had allocated when it failed */
    for (size_t i = 0; i < r.result.samples.count; i++)
        told |= !strcmp(r.result.samples.items[i].verdict, "oom") &&
                r.result.samples.items[i].peak.reserved_bytes == 1124 * MIB;
    cr_expect(told);
    cr_assert(lt(sz, 0, r.result.advice.count));
    cr_expect(r.result.advice.items[0].fits);
    cr_expect(eq(str, r.result.advice.items[0].change, (char *)"checkpointing full"));
    cr_expect(eq(i64, r.result.advice.items[0].peak.reserved_bytes, 1049 * MIB));
    finish(&r);
    prepare(&r, -3);
    report(&r, PLIM_OBJECTIVE_THROUGHPUT);
    expect_reasons(&r.result, (const char *const[]){
                                  "Overhead and margin together take all of the 0.997 GiB.", NULL});
    finish(&r);
}

Test(reasons, nothing_fits_says_the_setting_also_of_a_list_of_one)
{
    static const int64_t one[] = {1};
    struct reported r;
    prepare(&r, 1100);
    r.question.batch.listed = one;
    r.question.batch.listed_count = 1;
    report(&r, PLIM_OBJECTIVE_THROUGHPUT);
    cr_expect(synthetic_says(&r.result, "Nothing fits. Micro-batch 1 at sequence 1024"));
    finish(&r);
}

/* A setting that is only looked at. */
static void inspect(struct reported *r, int64_t micro_batch, struct plim_inspection *inspection)
{
    struct plim_setting setting = synthetic_setting(micro_batch);
    setting.accumulation = 2;
    r->run = (struct synthetic_run){.decision = {.question = &r->question}};
    r->run.prober = (struct plim_prober){.runner = &r->gpu.runner, .cache = &r->run.cache};
    r->gpu.details.flops_per_token = 1e9;
    cr_assert(
        eq(int, plim_inspect(&r->question, &r->run.prober, &setting, inspection, NULL), PLIM_OK));
    synthetic_explain(&r->run, inspection, &r->result);
}

Test(reasons, an_inspected_setting)
{
    struct reported r;
    struct plim_inspection inspection = {0};
    prepare(&r, 1024 + 1000);
    r.question.batch.world = 3;
    inspect(&r, 10, &inspection);
    expect_reasons(&r.result,
                   (const char *const[]){
                       "It fits: 1.98 GiB reserved at the peak, of a budget of 1.98 GiB.",
                       "Rates are 3 times those of one GPU; communication is not counted.", NULL});
    cr_expect(r.result.fits && r.result.choice.verified);
    cr_expect(eq(i64, r.result.choice.effective_batch, 60));
    cr_expect(epsilon_eq(dbl, r.result.choice.samples_per_second, 60 / 0.41, 1e-9));
    cr_expect(epsilon_eq(dbl, r.result.choice.mfu, 1e9 * 20 * 1024 / 0.41 / 1e15, 1e-9));
    cr_expect(eq(i64, r.result.short_bytes, 0));
    finish(&r);
    plim_inspection_finish(&inspection);

    prepare(&r, 1024 + 1000);
    inspection = (struct plim_inspection){0};
    inspect(&r, 11, &inspection);
    expect_reasons(&r.result,
                   (const char *const[]){
                       "It does not fit: it needs 2.07 GiB if there is enough memory, more than the budget "
                       "of 1.98 GiB.",
                       "It runs out of memory.", NULL});
    cr_expect(not(r.result.fits));
    cr_expect(eq(i64, r.result.short_bytes, 100 * MIB));
    cr_expect(lt(sz, 0, r.result.advice.count));
    finish(&r);
    plim_inspection_finish(&inspection);
}

/* Of a point that was not searched: why not. */
static void expect_untried(double rate_limit, const char *why)
{
    struct reported r;
    prepare(&r, 1024 + 800);
    synthetic_axis(&r.question, SYNTHETIC_CHECKPOINTING, 2,
                   (const int64_t[]){SYNTHETIC_NONE, SYNTHETIC_FULL});
    synthetic_tune(&r.run, &r.gpu, &r.question, PLIM_OBJECTIVE_THROUGHPUT);
    cr_assert(eq(sz, r.run.decision.edges.count, 2));
    size_t other = 1 - r.run.decision.choice.point;
    r.run.decision.edges.items[other].searched = false;
    r.run.decision.edges.items[other].rate_limit = rate_limit;
    synthetic_answer(&r.run, &r.result);
    const struct plim_result_point *point = &r.result.points.items[other];
    cr_expect(eq(str, (char *)point->verdict, "untried"));
    cr_expect(eq(str, (char *)point->why, (char *)why));
    cr_expect(ieee_ulp_eq(dbl, point->rate_limit, rate_limit, 1));
    finish(&r);
}

Test(reasons, of_a_point_that_was_not_searched)
{
    expect_untried(1234, "it cannot be faster than 1234 tokens/s");
    expect_untried(0, "the search ended before it");
}
