/* What is reported to fit runs a thousand steps: small random models at the edge of random GPUs,
 * with all kinds of allocator options and accumulation. In parts, so that they run beside each
 * other; PLIM_EDGES in each part, the more the faster the build is (meson.build). */
#include "autotune/decide/fleet.h"
#include "autotune/search/space.h"
#include "synthetic.h"
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>

enum { EDGES = PLIM_EDGES, STEPS = 1000 };

static void must(enum plim_status st, const struct plim_error *err)
{
    cr_assert(eq(int, st, PLIM_OK), "%s", err->text);
}

static const char *pick(uint64_t *random, const char *const *texts, size_t count)
{
    return texts[synthetic_random(random) % count];
}

static void set(struct plim_spec *spec, const char *key, const char *value)
{
    struct plim_error err = PLIM_ERROR_INIT;
    must(plim_spec_set(spec, key, value, &err), &err);
}

static void set_number(struct plim_spec *spec, const char *key, int64_t number)
{
    char value[32];
    snprintf(value, sizeof(value), "%lld", (long long)number);
    set(spec, key, value);
}

/* One case of the property: a question and its GPU. */
struct edge_case {
    struct plim_spec spec;
    struct plim_spec_question question;
    struct plim_allowance allowance;
    char uri[96];
};

static void random_model(struct plim_spec *spec, uint64_t *random)
{
    struct plim_error err = PLIM_ERROR_INIT;
    bool llama = synthetic_random(random) % 2;
    int64_t heads = 2 * synthetic_between(random, 1, 4);
    must(plim_spec_load(llama ? "tinyllama-1.1b" : "gpt2-124m", spec, &err), &err);
    if (llama) set(spec, "model.num_key_value_heads", "2");
    set_number(spec, llama ? "model.num_hidden_layers" : "model.n_layer",
               synthetic_between(random, 1, 2));
    set_number(spec, llama ? "model.num_attention_heads" : "model.n_head", heads);
    set_number(spec, llama ? "model.hidden_size" : "model.n_embd",
               heads * 16 * synthetic_between(random, 1, 4));
    set_number(spec, "model.vocab_size", synthetic_between(random, 100, 40000));
    int64_t tiles = synthetic_between(random, 1, 12); /* each compiler draws in the same order */
    set_number(spec, "data.seq", 64 * tiles + synthetic_between(random, 0, 9));
}

static void random_training(struct plim_spec *spec, uint64_t *random)
{
    static const char *const optimizers[] = {"adamw", "adamw-fused", "sgd", "adafactor",
                                             "adamw-8bit"};
    static const char *const accumulations[] = {"1", "1", "2", "3", "7", "64", "5000"};
    struct plim_error err = PLIM_ERROR_INIT;
    set(spec, "train.precision",
        plim_precision_names[synthetic_random(random) % PLIM_PRECISION_COUNT]);
    set(spec, "train.optimizer", pick(random, optimizers, 5));
    set(spec, "train.checkpointing", synthetic_random(random) % 3 ? "none" : "full");
    set(spec, "train.clip", synthetic_random(random) % 2 ? "1" : "0");
    if (synthetic_random(random) % 4)
        set(spec, "train.accumulation", pick(random, accumulations, 7));
    else
        set_number(spec, "train.effective_batch", INT64_C(1) << synthetic_between(random, 2, 9));
    must(plim_spec_resolve(spec, &err), &err);
}

static void random_case(struct edge_case *c, uint64_t *random)
{
    static const char *const gpus[] = {"A100-SXM4-80GB", "H100-SXM5-80GB", "RTX-3090", "RTX-4090"};
    static const char *const options[] = {
        "", "expandable_segments:True", "max_split_size_mb:64", "roundup_power2_divisions:4",
        "expandable_segments:True,max_split_size_mb:100",
        "garbage_collection_threshold:0.8,per_process_memory_fraction:0.9"};
    random_model(&c->spec, random);
    random_training(&c->spec, random);
    c->allowance = (struct plim_allowance){
        .overhead_given = true, .margin_bytes = 0, .alloc_conf = pick(random, options, 6)};
    snprintf(c->uri, sizeof(c->uri), "sim:%s,memory=%lldMiB", pick(random, gpus, 4),
             (long long)synthetic_between(random, 300, 2000));
    plim_spec_question_make(&c->spec, PLIM_OBJECTIVE_THROUGHPUT, &c->question);
}

/* Replays STEPS steps of what was chosen. */
static void expect_it_runs(const struct edge_case *c, const struct plim_result_choice *choice,
                           int i)
{
    static struct plim_run_device device;
    const struct plim_run_options options = {
        .uri = c->uri, .allowance = &c->allowance, .question = &c->question, .steps = STEPS};
    struct plim_setting setting = plim_space_first(&c->question.question.axes);
    struct plim_error err = PLIM_ERROR_INIT;
    struct plim_trial trial;
    setting.micro_batch = choice->setting.micro_batch;
    setting.accumulation = choice->setting.accumulation;
    must(plim_run_device_open(&device, &options, &err), &err);
    must(device.runner.run(device.runner.user, &setting, PLIM_RUN_LIMITED, &trial, &err), &err);
    cr_expect(eq(int, trial.verdict, PLIM_OK), "edge %d on %s with '%s': %s", i, c->uri,
              c->allowance.alloc_conf, trial.why);
    cr_expect(eq(int, trial.steps_done, STEPS));
    cr_expect(choice->verified, "edge %d", i);
    plim_run_device_close(&device);
}

static void check_edges(uint64_t seed)
{
    static struct edge_case c;
    int found = 0;
    for (int i = 0; i < EDGES; i++) {
        struct plim_report report = {0};
        struct plim_error err = PLIM_ERROR_INIT;
        random_case(&c, &seed);
        const char *uri = c.uri;
        const struct plim_fleet fleet = {.question = &c.question, .allowance = &c.allowance};
        must(plim_fleet_tune(&fleet, &uri, 1, &report, &err), &err);
        const struct plim_result *r = &report.results.items[0];
        if (r->largest_fit.present) expect_it_runs(&c, &r->largest_fit, i);
        if (r->choice.present &&
            r->choice.setting.micro_batch != r->largest_fit.setting.micro_batch)
            expect_it_runs(&c, &r->choice, i);
        found += r->largest_fit.present;
        plim_report_finish(&report);
    }
    cr_expect(lt(int, EDGES / 2, found));
}

Test(for_ever, a_third_of_the_edges) { check_edges(101); }
Test(for_ever, another_third) { check_edges(202); }
Test(for_ever, the_last_third) { check_edges(303); }
