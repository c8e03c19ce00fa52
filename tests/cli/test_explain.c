/* What `explain` says of one setting: where the bytes are, whether it fits, its steps. */
#include "program.h"
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define A100 "--device sim:A100-SXM4-80GB,memory=24GiB --margin 0 --overhead 0 "

Test(explain, explain_has_the_schema)
{
    static const char *const keys[] = {"spec",      "device", "limit",  "setting", "peak",
                                       "breakdown", "fits",   "advice", "steps",   NULL};
    static const char *const step[] = {"after_forward_bytes", "peak_allocated_bytes",
                                       "peak_reserved_bytes", "end_allocated_bytes", NULL};
    static const char *const setting[] = {
        "micro_batch", "seq",          "accumulation",      "world",     "effective_batch",
        "precision",   "optimizer",    "checkpointing",     "attention", "sharding",
        "sizes",       "step_seconds", "tokens_per_second", "mfu",       NULL};
    struct program p = program_run("explain gpt2-124m --device sim:A100-SXM4-80GB,memory=64TiB "
                                   "--margin 0 --overhead 0 --batch 8 --seq 1024 "
                                   "--precision bf16-mixed --optimizer adamw --checkpointing none "
                                   "--attention sdpa --accumulation 2 --json");
    cr_assert(eq(int, p.exit_code, 0), "%s", p.err);
    json_t *root = program_json(&p);
    json_expect_text(root, "schema", "plimsoll.explain/1");
    json_expect_keys(root, keys);
    json_expect_keys(json_at(root, "setting"), setting);
    cr_expect(eq(sz, json_array_size(json_at(root, "steps")), 4));
    for (size_t i = 0; i < 4; i++)
        json_expect_keys(json_array_get(json_at(root, "steps"), i), step);
    cr_expect(json_true_at(root, "fits"));
    cr_expect(eq(i64, json_int_at(root, "limit.budget_bytes"), INT64_C(64) << 40));
    cr_expect(eq(i64, json_int_at(root, "setting.effective_batch"), 16));
    json_decref(root);
    program_finish(&p);
}

Test(explain, the_breakdown_adds_up_to_the_peak)
{
    static const char *const classes[] = {
        "parameters_bytes", "gradients_bytes",   "optimizer_bytes", "activations_bytes",
        "logits_bytes",     "temporaries_bytes", "workspace_bytes", "communication_bytes"};
    struct program p =
        program_run("explain gpt2-124m --device sim:RTX-4090 --batch 4 --seq 256 --json");
    json_t *root = program_json(&p), *breakdown = json_at(root, "breakdown");
    json_int_t sum = 0;
    for (size_t i = 0; i < sizeof(classes) / sizeof(classes[0]); i++)
        sum += json_int_at(breakdown, classes[i]);
    cr_expect(eq(i64, sum, json_int_at(root, "peak.allocated_bytes")));
    cr_expect(lt(i64, 0, json_int_at(breakdown, "logits_bytes")));
    sum += json_int_at(breakdown, "cached_bytes");
    cr_expect(eq(i64, sum, json_int_at(root, "peak.reserved_bytes")));
    sum += json_int_at(breakdown, "overhead_bytes");
    cr_expect(eq(i64, sum, json_int_at(root, "peak.device_bytes")));
    json_decref(root);
    program_finish(&p);
}

static double seconds_of(const char *command, const char *task)
{
    static const char *const tasks[] = {"matmul_seconds", "attention_seconds", "other_seconds",
                                        "copies_seconds", "waits_seconds", "idle_seconds"};
    struct program p = program_run(command);
    json_t *root = program_json(&p), *time = json_at(root, "time");
    double sum = 0, out = json_number_value(json_at(time, task));
    for (size_t i = 0; i < sizeof(tasks) / sizeof(tasks[0]); i++)
        sum += json_number_value(json_at(time, tasks[i]));
    cr_expect(epsilon_eq(dbl, sum, json_number_value(json_at(root, "setting.step_seconds")), 1e-9), "%s", command);
    json_decref(root);
    program_finish(&p);
    return out;
}

/* Of a step that was replayed and of one that is made of micro-steps that repeat; of one GPU and of several. */
Test(explain, the_seconds_add_up_to_the_step)
{
#define EXPLAIN "explain gpt2-124m --device sim:RTX-4090 --seq 256 --json --batch "
    double one = seconds_of(EXPLAIN "8", "matmul_seconds");
    cr_expect(lt(dbl, 0, one));
    cr_expect(epsilon_eq(dbl, seconds_of(EXPLAIN "8 --accumulation 64", "matmul_seconds"), 64 * one, 1e-6));
    cr_expect(lt(dbl, 0, seconds_of(EXPLAIN "8", "attention_seconds")));
    cr_expect(eq(dbl, seconds_of(EXPLAIN "8 --attention eager", "attention_seconds"), 0));
    cr_expect(lt(dbl, 0, seconds_of(EXPLAIN "8 --world 4", "waits_seconds")));
    cr_expect(lt(dbl, 0, seconds_of(EXPLAIN "1", "idle_seconds")));
#undef EXPLAIN
}

Test(explain, a_setting_that_does_not_fit_is_explained_in_full)
{
    struct program p =
        program_run("explain gpt2-124m " A100 "--batch 64 --seq 1024 --checkpointing none --json");
    cr_expect(eq(int, p.exit_code, 1));
    json_t *root = program_json(&p);
    cr_expect(not(json_true_at(root, "fits")));
    cr_expect(eq(sz, json_array_size(json_at(root, "steps")), 4));
    cr_expect(lt(i64, json_int_at(root, "limit.budget_bytes"), json_int_at(root, "steps.3.peak_reserved_bytes")));
    cr_expect(
        eq(i64, json_int_at(root, "short_bytes"),
           json_int_at(root, "peak.reserved_bytes") - json_int_at(root, "limit.budget_bytes")));
    cr_expect(json_true_at(root, "advice.0.fits"));
    cr_expect(lt(i64, 0, json_int_at(root, "advice.0.peak.reserved_bytes")));
    json_decref(root);
    program_finish(&p);
}

/* What needs so many GPUs, as advised, fits on so many and not on half as many. */
Test(explain, the_fewest_gpus_that_would_share_it_are_named)
{
    static const struct {
        const char *device, *change;
        int accumulation, gpus;
    } cases[] = {{"A100-SXM4-80GB", "sharding fsdp over 2 GPUs, effective batch 2", 1, 2},
                 {"RTX-4090", "sharding fsdp over 16 GPUs, effective batch 16", 6, 16},
                 {"RTX-3090", "sharding fsdp over 16 GPUs", 16, 16}};
    const char *common = "explain llama-3-8b --batch 1 --seq 2048 --precision bf16-mixed "
                         "--weights fp32 --checkpointing full --json";
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[320], found[128] = "";
        size_t k;
        json_t *advice;
        snprintf(text, sizeof(text), "%s --device sim:%s --accumulation %d", common,
                 cases[i].device, cases[i].accumulation);
        struct program p = program_run(text);
        json_t *root = program_json(&p);
        json_array_foreach(json_at(root, "advice"), k, advice)
        {
            const char *change = json_text_at(advice, "change");
            if (strstr(change, "sharding")) snprintf(found, sizeof(found), "%s", change);
        }
        cr_expect(eq(str, found, (char *)cases[i].change));
        json_decref(root);
        program_finish(&p);
        for (int gpus = cases[i].gpus / 2; gpus <= cases[i].gpus; gpus *= 2) {
            snprintf(text, sizeof(text), "%s --device sim:%s --world %d --sharding %s", common,
                     cases[i].device, gpus, gpus > 1 ? "fsdp" : "none");
            p = program_run(text);
            cr_expect(eq(int, p.exit_code, gpus == cases[i].gpus ? 0 : 1), "%s", text);
            program_finish(&p);
        }
    }
}

/* Of ZeRO's ranks, each asked for by itself; here it is neither the first nor the one with most
 * weights. */
Test(explain, the_rank_that_needs_the_most_is_told)
{
    static const char job[] =
        "explain tinyllama-1.1b --device sim:80GiB --batch 1 --seq 512 --world 4 "
        "--sharding zero2 --precision bf16-mixed --json";
    char command[320];
    int64_t most = 0, first = 0;
    for (int rank = 0; rank < 4; rank++) {
        snprintf(command, sizeof(command), "%s --set train.zero.rank=%d", job, rank);
        struct program p = program_run(command);
        json_t *root = program_json(&p);
        int64_t reserved = json_int_at(root, "peak.reserved_bytes");
        if (rank == 0) first = reserved;
        if (reserved > most) most = reserved;
        json_decref(root);
        program_finish(&p);
    }
    struct program p = program_run(job);
    json_t *root = program_json(&p);
    cr_expect(lt(i64, first, most));
    cr_expect(eq(i64, json_int_at(root, "peak.reserved_bytes"), most));
    cr_expect(eq(i64, json_int_at(root, "breakdown.rank"), 2));
    cr_expect(eq(i64, json_int_at(root, "breakdown.rank0_reserved_bytes"), first));
    cr_expect(strstr(p.out, "Shown is rank 2, which needs the most") != NULL);
    json_decref(root);
    program_finish(&p);
}

/* On a GPU on which the fourteenth step is the first to find no memory. */
/* Of the rank that is reported, like its peak. */
Test(explain, steps_and_a_timeline_are_those_of_the_rank_that_needs_the_most)
{
    static const char job[] =
        "explain tinyllama-1.1b --device sim:A100-SXM4-80GB --batch 2 --seq 512 --world 4 "
        "--sharding zero2 --precision bf16 --checkpointing full --json ";
    char command[256];
    struct program p = program_run(job);
    json_t *root = program_json(&p);
    json_int_t reserved = json_int_at(root, "peak.reserved_bytes"),
               allocated = json_int_at(root, "peak.allocated_bytes"), most = 0;
    cr_assert(json_int_at(root, "breakdown.rank0_reserved_bytes") < reserved);
    json_decref(root);
    program_finish(&p);

    snprintf(command, sizeof(command), "%s --steps 4", job);
    p = program_run(command);
    root = program_json(&p);
    cr_expect(eq(i64, json_int_at(root, "peak.reserved_bytes"), reserved));
    cr_expect(eq(i64, json_int_at(root, "steps.3.peak_reserved_bytes"), reserved));
    json_decref(root);
    program_finish(&p);

    snprintf(command, sizeof(command), "%s --timeline", job);
    p = program_run(command);
    root = program_json(&p);
    size_t i;
    const json_t *moment;
    json_array_foreach(json_at(root, "timeline"), i, moment)
    {
        const char *name;
        const json_t *bytes;
        json_int_t sum = 0;
        json_object_foreach(json_object_get(moment, "breakdown"), name, bytes)
            if (strcmp(name, "cached_bytes") && strcmp(name, "overhead_bytes"))
                sum += json_integer_value(bytes);
        if (sum > most) most = sum;
    }
    cr_expect(eq(i64, most, allocated));
    json_decref(root);
    program_finish(&p);
}

Test(explain, explain_replays_as_many_steps_as_are_asked_for)
{
    static const struct {
        const char *steps;
        size_t kept;
        int exit_code;
    } cases[] = {{"--steps 2", 2, 0}, {"--steps 13", 4, 0}, {"--steps 14", 4, 1}, {"", 4, 1}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char arguments[640];
        snprintf(arguments, sizeof(arguments),
                 "explain tinyllama-1.1b --set model.num_hidden_layers=3 "
                 "--set model.num_attention_heads=4 --set model.num_key_value_heads=2 "
                 "--set model.hidden_size=256 --set model.vocab_size=20966 --batch 24 --seq 320 "
                 "--accumulation 4 --precision fp16 --packing yes --optimizer adamw-fused "
                 "--checkpointing none "
                 "--device sim:RTX-3090,memory=3488706416B,placement=ascending --overhead 0 --margin 0 "
                 "--alloc-conf expandable_segments:True,max_split_size_mb:100 --json %s",
                 cases[i].steps);
        struct program p = program_run(arguments);
        cr_assert(eq(int, p.exit_code, cases[i].exit_code), "%s %s", cases[i].steps, p.err);
        json_t *root = program_json(&p);
        cr_expect(eq(sz, json_array_size(json_at(root, "steps")), cases[i].kept));
        json_decref(root);
        program_finish(&p);
    }
}

Test(explain, explain_says_after_how_many_steps_everything_repeats)
{
    struct program p =
        program_run("explain tiny-gpt2 --device sim:24GiB --batch 8 --seq 64 --json");
    cr_assert(eq(int, p.exit_code, 0), "%s", p.err);
    json_t *root = program_json(&p);
    cr_expect(eq(i64, json_int_at(root, "setting.repeats_after_steps"), 3));
    json_decref(root);
    program_finish(&p);
}

/* A larger batch that is a little faster is no hole: the objective does without it. */
Test(explain, what_the_objective_does_without_is_said)
{
    struct program p = program_run("plan gpt2-124m --device sim:8GiB --seq 512 --objective balanced "
                                   "--effective-batch 12 --overhead 0");
    cr_expect(eq(int, p.exit_code, 0), "%s", p.err);
    cr_expect(strstr(p.out, "differences below 10 %") != NULL && strstr(p.out, "happens to fit") == NULL, "%s", p.out);
    program_finish(&p);
}

/* Each stream's pools have ranges of their own, and a GPU without limits has addresses for all of them. */
Test(explain, many_streams_with_expandable_segments_have_an_answer)
{
    struct program p = program_run("explain gpt2-124m --device sim:8GiB --seq 128 --precision fp32 --batch 300 "
                                   "--accumulation 2 --checkpointing none --world 2 --sharding fsdp "
                                   "--alloc-conf expandable_segments:True");
    cr_expect(eq(int, p.exit_code, 1), "%s", p.err);
    cr_expect(strstr(p.out, "DOES NOT FIT") != NULL, "%s", p.out);
    program_finish(&p);
}

/* The stacks of a layer's eight experts are cut in their first dimension. */
Test(explain, of_experts_under_fsdp2_it_is_said_how_many_gpus_have_one)
{
    for (int gpus = 8; gpus <= 16; gpus += 8) {
        char command[160];
        snprintf(command, sizeof command,
                 "explain mixtral-8x7b --device sim:A100-SXM4-80GB --batch 1 --seq 64 --sharding fsdp --world %d",
                 gpus);
        struct program p = program_run(command);
        bool says = strstr(p.out, "8 GPUs have one each,\n    the others none") != NULL;
        cr_expect(eq(int, says, gpus > 8), "%d: %s", gpus, p.out);
        program_finish(&p);
    }
}

Test(explain, an_explanation_has_no_choice_to_write_down)
{
    char path[64], command[192];
    snprintf(path, sizeof(path), "/tmp/plimsoll-explained-%ld.json", (long)getpid());
    snprintf(command, sizeof(command), "explain gpt2-124m --device sim:RTX-4090 --batch 1 --seq 64 -o %s", path);
    struct program p = program_run(command);
    cr_expect(eq(int, p.exit_code, 0), "%s", p.err);
    program_finish(&p);
    snprintf(command, sizeof(command), "emit %s hf.cli", path);
    p = program_run(command);
    cr_expect(eq(int, p.exit_code, 2));
    cr_expect(strstr(p.err, "explains a setting and chooses none") != NULL, "%s", p.err);
    program_finish(&p);
    unlink(path);
}

Test(explain, linear_attention_is_not_counted_as_attention_to_all)
{
    struct program p = program_run("explain qwen3.5-0.8b --device sim:A100-SXM4-80GB --batch 1 --seq 8192 "
                                   "--precision bf16 --checkpointing full --json");
    cr_assert(eq(int, p.exit_code, 0), "%s", p.err);
    json_t *root = program_json(&p);
    double tokens = json_real_value(json_at(root, "tokens_per_second")), peak = 312e12;
    double full = 6 * 12.0 * 8 * 256 * 8192, linear = 18 * 18.0 * 16 * 128 * 128; /* of 24 layers */
    double mfu = (6 * 752393024.0 + full + linear) * tokens / peak;
    cr_expect(epsilon_eq(dbl, json_real_value(json_at(root, "mfu")), mfu, 0.01 * mfu));
    json_decref(root);
    program_finish(&p);
}
