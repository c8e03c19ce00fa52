/* The invariants of a decision with the real engine on simulated GPUs: small random models. */
#include "autotune/decide/fleet.h"
#include "autotune/search/space.h"
#include "synthetic.h"
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>

static const struct plim_allowance everything = {.overhead_given = true, .margin_bytes = 0};

static const int64_t sequences[] = {64, 128, 200, 777};

static void must(enum plim_status st, const struct plim_error *err)
{
    cr_assert(eq(int, st, PLIM_OK), "%s", err->text);
}

static int64_t pick(uint64_t *random, const int64_t *values, size_t count)
{
    return values[synthetic_random(random) % count];
}

/* A llama or a GPT-2 with one to three layers, odd vocabulary and sequence. */
static struct plim_spec random_spec(uint64_t *random)
{
    struct plim_spec spec;
    struct plim_error err = PLIM_ERROR_INIT;
    bool llama = synthetic_random(random) % 2;
    char value[64];
    int64_t head = pick(random, (const int64_t[]){16, 24, 64}, 3),
            heads = 2 * synthetic_between(random, 1, 4);
    const struct {
        const char *key;
        int64_t value;
    } keys[] = {
        {llama ? "model.num_hidden_layers" : "model.n_layer", synthetic_between(random, 1, 3)},
        {llama ? "model.num_attention_heads" : "model.n_head", heads},
        {llama ? "model.hidden_size" : "model.n_embd", head * heads},
        {"model.vocab_size", synthetic_between(random, 100, 40000)},
        {"data.seq", pick(random, sequences, 4)},
    };
    must(plim_spec_load(llama ? "tinyllama-1.1b" : "gpt2-124m", &spec, &err), &err);
    if (llama) must(plim_spec_set(&spec, "model.num_key_value_heads", "2", &err), &err);
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        snprintf(value, sizeof(value), "%lld", (long long)keys[i].value);
        must(plim_spec_set(&spec, keys[i].key, value, &err), &err);
    }
    snprintf(value, sizeof(value), "%s",
             plim_precision_names[synthetic_random(random) % PLIM_PRECISION_COUNT]);
    must(plim_spec_set(&spec, "train.precision", value, &err), &err);
    must(plim_spec_resolve(&spec, &err), &err);
    return spec;
}

static void random_uri(uint64_t *random, char uri[96])
{
    static const char *const gpus[] = {"A100-SXM4-80GB", "H100-SXM5-80GB", "RTX-3090", "RTX-4090"};
    int64_t mib = synthetic_between(random, 300, 6000); /* each compiler draws in the same order */
    const char *gpu = gpus[synthetic_random(random) % 4];
    snprintf(uri, 96, "sim:%s,memory=%lldMiB", gpu, (long long)mib);
}

static struct plim_report decide(const struct plim_spec *spec, const char *uri,
                                 const struct plim_allowance *allowance)
{
    struct plim_report report = {0};
    struct plim_error err = PLIM_ERROR_INIT;
    static struct plim_spec_question question;
    plim_spec_question_make(spec, PLIM_OBJECTIVE_THROUGHPUT, &question);
    struct plim_fleet fleet = {.question = &question, .allowance = allowance};
    must(plim_fleet_tune(&fleet, &uri, 1, &report, &err), &err);
    return report;
}

/* Runs one setting alone, on a new GPU of the same kind. */
static struct plim_trial run_alone(const struct plim_spec *spec, const char *uri,
                                   const struct plim_result_setting *s)
{
    static struct plim_spec_question question;
    static struct plim_run_device device;
    struct plim_trial trial;
    struct plim_error err = PLIM_ERROR_INIT;
    plim_spec_question_make(spec, PLIM_OBJECTIVE_THROUGHPUT, &question);
    const struct plim_axes *axes = &question.question.axes;
    struct plim_setting setting = plim_space_first(axes);
    setting.micro_batch = s->micro_batch;
    setting.accumulation = s->accumulation;
    setting.value[axes->seq] = s->seq;
    for (int i = 0; i < PLIM_CHECKPOINTING_COUNT; i++)
        if (!strcmp(plim_result_value(s, "checkpointing"), plim_checkpointing_names[i]))
            setting.value[plim_axes_find(axes, "checkpointing")] = i;
    const struct plim_run_options options = {
        .uri = uri, .allowance = &everything, .question = &question};
    must(plim_run_device_open(&device, &options, &err), &err);
    must(device.runner.run(device.runner.user, &setting, PLIM_RUN_LIMITED, &trial, &err), &err);
    plim_run_device_close(&device);
    return trial;
}

static bool fits_alone(const struct plim_spec *spec, const char *uri,
                       const struct plim_result_setting *s)
{
    return run_alone(spec, uri, s).verdict == PLIM_OK;
}

Test(engine, the_choice_fits_and_the_next_one_does_not)
{
    uint64_t random = 31;
    int found = 0;
    for (int i = 0; i < 25; i++) {
        char uri[96];
        struct plim_spec spec = random_spec(&random);
        random_uri(&random, uri);
        struct plim_report report = decide(&spec, uri, &everything);
        const struct plim_result *r = &report.results.items[0];
        if (r->choice.present) {
            found++;
            struct plim_result_setting next = r->largest_fit.setting;
            cr_assert(fits_alone(&spec, uri, &r->choice.setting), "model %d on %s", i, uri);
            cr_assert(fits_alone(&spec, uri, &r->largest_fit.setting), "model %d on %s", i, uri);
            next.micro_batch++;
            cr_assert(not(fits_alone(&spec, uri, &next)), "model %d on %s", i, uri);
            cr_assert(eq(i64, r->next.micro_batch, next.micro_batch));
            cr_assert(le(i64, r->choice.peak.reserved_bytes, r->limit.budget_bytes));
        }
        plim_report_finish(&report);
    }
    cr_assert(lt(int, 15, found));
}

Test(engine, the_effective_batch_is_kept)
{
    uint64_t random = 32;
    for (int i = 0; i < 15; i++) {
        char uri[96];
        struct plim_spec spec = random_spec(&random);
        random_uri(&random, uri);
        spec.effective_batch = 48;
        spec.world = 2;
        struct plim_report report = decide(&spec, uri, &everything);
        const struct plim_result_choice *c = &report.results.items[0].choice;
        if (c->present)
            cr_assert(eq(i64, c->setting.micro_batch * c->setting.accumulation * 2, 48), "model %d",
                      i);
        plim_report_finish(&report);
    }
}

Test(engine, more_memory_is_never_worse)
{
    uint64_t random = 33;
    for (int i = 0; i < 6; i++) {
        double best = 0;
        int64_t largest = 0;
        struct plim_spec spec = random_spec(&random);
        spec.checkpointing.count = 1;
        for (int mib = 400; mib <= 6000; mib += mib / 3) {
            char uri[96];
            snprintf(uri, sizeof(uri), "sim:RTX-3090,memory=%dMiB", mib);
            struct plim_report report = decide(&spec, uri, &everything);
            const struct plim_result *r = &report.results.items[0];
            double rate = r->choice.tokens_per_second;
            cr_assert(ge(dbl, rate, best * 0.98), "model %d, %d MiB", i, mib);
            cr_assert(ge(i64, r->largest_fit.setting.micro_batch, largest), "model %d, %d MiB", i,
                      mib);
            if (rate > best) best = rate;
            largest = r->largest_fit.setting.micro_batch;
            plim_report_finish(&report);
        }
        cr_assert(lt(i64, 0, largest));
    }
}

Test(engine, a_smaller_margin_is_never_a_smaller_batch)
{
    uint64_t random = 34;
    for (int i = 0; i < 8; i++) {
        int64_t largest = 0;
        struct plim_spec spec = random_spec(&random);
        spec.checkpointing.count = 1;
        for (int percent = 20; percent >= 0; percent -= 4) {
            struct plim_allowance allowance = {
                .overhead_given = true, .margin_bytes = -1, .margin_share = percent / 100.0};
            struct plim_report report = decide(&spec, "sim:A100-SXM4-40GB,memory=3GiB", &allowance);
            const struct plim_result *r = &report.results.items[0];
            cr_assert(ge(i64, r->largest_fit.setting.micro_batch, largest), "model %d, %d %%", i,
                      percent);
            largest = r->largest_fit.setting.micro_batch;
            plim_report_finish(&report);
        }
        cr_assert(lt(i64, 0, largest), "model %d", i);
    }
}

/* What the search leaves out is not much better than what it chose. */
Test(engine, the_choice_is_within_noise_of_the_best)
{
    uint64_t random = 35;
    for (int i = 0; i < 6; i++) {
        char uri[96];
        struct plim_spec spec = random_spec(&random);
        random_uri(&random, uri);
        spec.checkpointing.count = 1;
        struct plim_report report = decide(&spec, uri, &everything);
        const struct plim_result *r = &report.results.items[0];
        int64_t largest = r->largest_fit.setting.micro_batch;
        double best = 0;
        for (int64_t b = 1; b <= largest && b <= 256; b++) {
            struct plim_result_setting setting = r->choice.setting;
            setting.micro_batch = b;
            struct plim_trial trial = run_alone(&spec, uri, &setting);
            double rate = (double)(b * setting.seq) / trial.seconds;
            if (trial.verdict == PLIM_OK && rate > best) best = rate;
        }
        cr_assert(ge(dbl, r->choice.tokens_per_second, 0.98 * best), "model %d on %s", i, uri);
        plim_report_finish(&report);
    }
}

/* More micro-steps than a real GPU is searched with need no more memory (runner.h). */
Test(engine, many_micro_steps_need_what_a_few_need)
{
    uint64_t random = 36;
    for (int i = 0; i < 20; i++) {
        static struct plim_spec_question question;
        static struct plim_run_device device;
        struct plim_trial few, many;
        struct plim_error err = PLIM_ERROR_INIT;
        struct plim_spec spec = random_spec(&random);
        plim_spec_question_make(&spec, PLIM_OBJECTIVE_THROUGHPUT, &question);
        const struct plim_axes *axes = &question.question.axes;
        struct plim_setting setting = plim_space_first(axes);
        setting.micro_batch = synthetic_between(&random, 1, 9);
        setting.accumulation = PLIM_PROBED_MICRO_STEPS;
        setting.value[plim_axes_find(axes, "checkpointing")] = i % 2;
        const struct plim_run_options options = {
            .uri = "sim:A100-SXM4-80GB", .allowance = &everything, .question = &question};
        must(plim_run_device_open(&device, &options, &err), &err);
        const struct plim_runner *runner = &device.runner;
        must(runner->run(runner->user, &setting, PLIM_RUN_UNLIMITED, &few, &err), &err);
        int64_t allocated = ((const struct plim_replay *)few.details)->peak_allocated_bytes;
        setting.accumulation = 19;
        must(runner->run(runner->user, &setting, PLIM_RUN_UNLIMITED, &many, &err), &err);
        cr_expect(
            eq(i64, allocated, ((const struct plim_replay *)many.details)->peak_allocated_bytes),
            "model %d", i);
        cr_expect(eq(i64, few.reserved_bytes, many.reserved_bytes), "model %d", i);
        plim_run_device_close(&device);
    }
}
