/* What the reports say: the schemas, the same tree in every format, and the answers behind them. */
#include "autotune/base/yaml.h"
#include "program.h"
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdlib.h>
#include <string.h>

#define A100 "--device sim:A100-SXM4-80GB,memory=24GiB --margin 0 --overhead 0 "

static bool says(json_t *root, const char *part)
{
    size_t i;
    json_t *reason;
    json_array_foreach(json_at(root, "why"), i,
                       reason) if (strstr(json_string_value(reason), part)) return true;
    return false;
}

Test(report, several_gpus_are_data_parallel_unless_told_otherwise)
{
    static const struct {
        const char *options;
        int64_t overhead_mib;
        bool buckets;
        const char *said;
    } cases[] = {{"", 610, false, NULL},
                 {"--world 4", 610 + 512, true, "4 GPUs train as DistributedDataParallel"},
                 {"--world 4 --sharding none", 610, false, "4 GPUs are counted each as if"},
                 {"--world 4 --sharding fsdp --weights fp32 --precision bf16-mixed", 610 + 512, true,
                  "Shown is rank 0"},
                 {"--world 4 --sharding zero2 --weights fp32 --precision bf16-mixed", 610 + 512, true,
                  "share gradients and optimizer states (DeepSpeed's ZeRO 2)"},
                 {"--sharding ddp", 610, true, NULL}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char command[256];
        snprintf(command, sizeof(command),
                 "explain gpt2-124m --device sim:A100-SXM4-80GB --batch 2 --seq 256 "
                 "--checkpointing none --json %s",
                 cases[i].options);
        struct program p = program_run(command);
        json_t *root = program_json(&p);
        int64_t held = json_int_at(root, "breakdown.communication_bytes");
        cr_expect(eq(int, held > 0, cases[i].buckets), "%s", cases[i].options);
        cr_expect(
            eq(i64, json_int_at(root, "breakdown.overhead_bytes"), cases[i].overhead_mib << 20),
            "%s", cases[i].options);
        cr_expect(eq(int, says(root, "communicator"), cases[i].overhead_mib > 610));
        cr_expect(
            eq(int, says(root, "an estimate from the GPU's links"), cases[i].overhead_mib > 610));
        if (cases[i].said) cr_expect(says(root, cases[i].said), "%s", cases[i].options);
        json_decref(root);
        program_finish(&p);
    }
}

Test(report, a_vllm_server_is_another_group_of_gpus)
{
    static const struct {
        const char *options, *said;
        int64_t overhead_mib;
    } cases[] = {{"", "an assumption for NCCL's communicator.", 610 + 512},
                 {"--world 2", "an assumption for NCCL's communicators.", 610 + 2 * 512}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char command[256];
        snprintf(command, sizeof(command),
                 "explain gpt2-124m --device sim:A100-SXM4-80GB --batch 8 --seq 256 --loop trl-grpo "
                 "--set data.prompt=64 --json %s",
                 cases[i].options);
        struct program p = program_run(command);
        json_t *root = program_json(&p);
        cr_expect(eq(i64, json_int_at(root, "breakdown.overhead_bytes"), cases[i].overhead_mib << 20));
        cr_expect(says(root, cases[i].said), "%s", cases[i].options);
        json_decref(root);
        program_finish(&p);
    }
}

/* Its share of 79.15 GiB is set aside all the time, or where it sleeps while others compute, taken in a generation. */
Test(report, a_vllm_in_the_process_has_its_share)
{
    static const struct {
        const char *options, *said;
        int64_t overhead_mib;
        bool is_awake, fits;
    } cases[] = {
        {"", "23.7 GiB are set aside for vLLM", 610 + 24314, false, true},
        {"--overhead 1GiB --set train.grpo.vllm_memory=0.5", "39.6 GiB are set aside", 1024 + 40524, false, true},
        {"--set train.grpo.vllm_memory=0.93", "It does not fit: ", 610 + 75376, false, false},
        {"--set train.grpo.vllm_sleeps=true", "vLLM holds 23.7 GiB in addition to", 610, true, true},
        {"--set train.grpo.vllm_sleeps=true --set train.grpo.vllm_memory=0.93", "generation, step 2", 610, true, false},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char command[512];
        snprintf(command, sizeof(command),
                 "explain gpt2-124m --device sim:A100-SXM4-80GB --batch 8 --seq 256 --loop trl-grpo "
                 "--set data.prompt=64 --set train.grpo.vllm=colocate --json %s",
                 cases[i].options);
        struct program p = program_run(command);
        json_t *root = program_json(&p);
        int64_t set_aside = cases[i].is_awake ? 0 : json_int_at(root, "limit.vllm_bytes"),
                peak = json_int_at(root, "peak.reserved_bytes");
        cr_expect(eq(int, json_true_at(root, "fits"), cases[i].fits), "%s", cases[i].options);
        cr_expect(eq(i64, json_int_at(root, "breakdown.overhead_bytes"), cases[i].overhead_mib << 20), "%s",
                  cases[i].options);
        cr_expect(eq(int, set_aside > 0, !cases[i].is_awake));
        cr_expect(eq(int, peak > INT64_C(20) << 30, cases[i].is_awake), "%s", cases[i].options);
        cr_expect(says(root, cases[i].said), "%s", cases[i].options);
        json_decref(root);
        program_finish(&p);
    }
}

/* 30 is what PyTorch itself reached in this memory (golden case
 * gpt2/bf16-mixed/adamw/ckpt/fit24g). */
Test(report, plan_has_the_schema_and_the_answer)
{
    static const char *const keys[] = {"schema", "spec",        "device",    "limit",
                                       "choice", "largest_fit", "breakdown", "samples",
                                       "advice", "seconds",     NULL};
    struct program p =
        program_run("plan gpt2-124m " A100 "--seq 1024 --precision bf16-mixed --optimizer adamw "
                    "--checkpointing full --json");
    cr_assert(eq(int, p.exit_code, 0), "%s", p.err);
    json_t *root = program_json(&p);
    json_expect_text(root, "schema", "plimsoll.result/1");
    json_expect_keys(root, keys);
    cr_expect(eq(i64, json_int_at(root, "limit.budget_bytes"), INT64_C(25769803776)));
    cr_expect(eq(i64, json_int_at(root, "largest_fit.micro_batch"), 30));
    cr_expect(eq(i64, json_int_at(root, "largest_fit.next.micro_batch"), 31));
    json_expect_text(root, "largest_fit.next.verdict", "oom");
    cr_expect(json_true_at(root, "choice.verified"));
    cr_expect(json_true_at(root, "device.simulated"));
    cr_expect(json_at(root, "choice.effective_batch_target") == NULL,
              "what was not asked for is absent");
    json_decref(root);
    program_finish(&p);
}

/* The base's type stands in the first lines, and what no device holds below the bytes. */
Test(report, says_what_the_base_below_adapters_is_kept_in)
{
    struct program p = program_run(
        "explain llama-3.2-1b --device sim:RTX-4090 --batch 1 --seq 512 --precision bf16-mixed "
        "--checkpointing full --lora r=64,targets=all-linear --optimizer paged-adamw-8bit "
        "--quantization nf4,double=true,compute=bf16 --json");
    json_t *root = program_json(&p);
    cr_expect(eq(str, (char *)json_text_at(root, "spec.quantization"),
                 "nf4 (double quantisation, computes in bf16, the rest in fp32)"));
    cr_expect(lt(i64, 50000000, json_int_at(root, "breakdown.managed_bytes")));
    json_decref(root);
    program_finish(&p);
    p = program_run("explain llama-3.2-1b --device sim:RTX-4090 --batch 1 --seq 512 --lora r=64 "
                    "--quantization fp4");
    cr_expect(strstr(p.out, "base in fp4 (computes in fp32, the rest in fp32)") != NULL, "%s",
              p.out);
    cr_expect(strstr(p.out, "fp4 computes in fp32 (BitsAndBytesConfig)") != NULL, "%s", p.out);
    program_finish(&p);
}

static void expect_quantization(const char *options, const char *expected)
{
    char arguments[256];
    snprintf(arguments, sizeof(arguments), "explain qwen1.5-moe-a2.7b --device sim:B200 --batch 1 --seq 64 --json "
             "--lora r=8,targets=q_proj --quantization %s", options);
    struct program p = program_run(arguments);
    json_t *root = program_json(&p);
    cr_expect(eq(str, (char *)json_text_at(root, "spec.quantization"), (char *)expected));
    json_decref(root);
    program_finish(&p);
}

Test(report, says_what_experts_beside_quantised_linears_are_kept_in)
{
    expect_quantization("nf4", "nf4 (computes in fp32, experts and the rest in fp32)");
    expect_quantization("int8,prepare=false", "int8 (activations without outliers, experts as they are)");
}

Test(report, adapters_of_stacked_experts_are_refused_under_zero3)
{
    struct program p = program_run("explain mixtral-8x7b --device sim:B200 --batch 1 --seq 64 --loop trainer --world 8 "
                                   "--sharding zero3 --precision bf16-mixed --lora r=4,targets=w1+w3");
    cr_expect(strstr(p.err, "adapters of experts' stacked weights are not supported under ZeRO 3") != NULL, "%s",
              p.err);
    program_finish(&p);
}

/* As transformers loads and trains the model; what was not asked for is said. */
Test(report, says_what_was_taken_by_default_and_what_lora_trains)
{
    struct program p = program_run("explain llama-3.2-1b --device sim:RTX-4090 --batch 1 "
                                   "--checkpointing full --lora r=16 --json");
    cr_assert(eq(int, p.exit_code, 0), "%s", p.err);
    json_t *root = program_json(&p);
    cr_expect(eq(str, (char *)json_text_at(root, "setting.precision"), "bf16"));
    cr_expect(eq(str, (char *)json_text_at(root, "setting.weights"), "bf16"));
    cr_expect(eq(str, (char *)json_text_at(root, "setting.optimizer"), "adamw-fused"));
    cr_expect(eq(str, (char *)json_text_at(root, "spec.lora"), "r=16 on q_proj, v_proj"));
    cr_expect(eq(str, (char *)json_text_at(root, "spec.defaults"),
                 "weights bf16 (the model's dtype), precision bf16 (no autocast), optimizer "
                 "adamw-fused, checkpointing with use_reentrant=False (--use-reentrant), rows of one document, "
                 "all of full length, "
                 "a plain loop (--loop trainer plays transformers' Trainer), "
                 "PyTorch 2.11 with transformers 5.17"));
    json_decref(root);
    program_finish(&p);
    p = program_run("explain llama-3.2-1b --device sim:T4 --batch 1 --lora r=16");
    cr_expect(ne(ptr, strstr(p.out, "LoRA r=16 on q_proj, v_proj: 1703936 of"), NULL));
    cr_expect(ne(ptr, strstr(p.out, "Defaults: weights bf16"), NULL));
    cr_expect(ne(ptr, strstr(p.out, "This GPU has no bf16"), NULL));
    program_finish(&p);
}

/* A precision without autocast has its own weights, and is asked about once. */
Test(report, weights_go_with_the_precision)
{
    struct program p =
        program_run("plan gpt2-124m --device sim:T4 --seq 64 --batch 1 --precision "
                    "fp16,bf16-mixed --weights fp32,bf16 --checkpointing none --json");
    cr_assert(eq(int, p.exit_code, 0), "%s", p.err);
    json_t *root = program_json(&p), *samples = json_at(root, "samples"), *sample;
    size_t i, plain = 0, mixed = 0;
    json_array_foreach(samples, i, sample)
    {
        bool is_plain = !strcmp(json_text_at(sample, "precision"), "fp16");
        cr_expect(eq(int, is_plain, !strcmp(json_text_at(sample, "weights"), "fp16")));
        if (json_int_at(sample, "micro_batch") != 1) continue;
        plain += is_plain;
        mixed += !is_plain;
    }
    cr_expect(eq(sz, plain, 1));
    cr_expect(eq(sz, mixed, 2));
    json_decref(root);
    program_finish(&p);
}

/* The zoo's sequence is ours, not the user's. */
Test(report, the_longest_sequence_goes_beyond_the_zoos)
{
    static const struct {
        const char *more;
        int64_t seq;
    } cases[] = {{"", 1024}, {" --set model.n_positions=4096", 4096}, {" --seq 256", 256}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char arguments[200];
        snprintf(arguments, sizeof(arguments),
                 "plan gpt2-124m --device sim:A100-SXM4-80GB --batch 1 --checkpointing full "
                 "--objective longest-sequence --json%s",
                 cases[i].more);
        struct program p = program_run(arguments);
        cr_assert(eq(int, p.exit_code, 0), "%s", p.err);
        json_t *root = program_json(&p);
        cr_expect(eq(i64, json_int_at(root, "choice.seq"), cases[i].seq));
        json_decref(root);
        program_finish(&p);
    }
}

Test(report, the_effective_batch_is_kept)
{
    struct program p =
        program_run("tune gpt2-124m " A100 "--seq 512 --effective-batch 96 --world 2 --json");
    json_t *root = program_json(&p);
    json_int_t made =
        json_int_at(root, "choice.micro_batch") * json_int_at(root, "choice.accumulation") * 2;
    cr_expect(eq(i64, made, 96));
    cr_expect(eq(i64, json_int_at(root, "choice.effective_batch_target"), 96));
    json_decref(root);
    program_finish(&p);
}

Test(report, a_schedule_is_rewritten_phase_by_phase)
{
    struct program p = program_run("plan gpt2-124m " A100 "--seq 512 --effective-batch 64 "
                                   "--set train.accumulation_schedule={0:~4,~4:~2,~8:~1} --json");
    json_t *root = program_json(&p);
    for (size_t i = 0; i < 3; i++) {
        json_t *phase = json_array_get(json_at(root, "choice.accumulation_schedule"), i);
        cr_expect(eq(i64, json_int_at(phase, "effective_batch"), 64 >> i));
        cr_expect(eq(i64,
                     json_int_at(phase, "accumulation") * json_int_at(root, "choice.micro_batch"),
                     64 >> i));
    }
    json_decref(root);
    program_finish(&p);
}

Test(report, nothing_fits_is_an_answer)
{
    struct program p = program_run("plan llama-3-8b --device sim:RTX-3070 --seq 512 --json");
    cr_expect(eq(int, p.exit_code, 1));
    json_t *root = program_json(&p);
    cr_expect(json_null_at(root, "choice"));
    cr_expect(json_null_at(root, "largest_fit"));
    cr_expect(json_at(root, "breakdown") == NULL);
    cr_expect(lt(i64, 0, json_int_at(root, "short_bytes")));
    cr_expect(lt(sz, 2, json_array_size(json_at(root, "advice"))));
    json_decref(root);
    program_finish(&p);
}

/* Whole numbers and texts at a few places; the writers share the rest. */
Test(report, yaml_and_text_files_say_the_same_as_json)
{
    char arguments[512];
    char *yaml_path = program_file("report.yaml", ""), *text_path = program_file("report.txt", "");
    snprintf(arguments, sizeof(arguments),
             "plan gpt2-124m --device sim:T4 --seq 256 --json --out %s --out=%s", yaml_path,
             text_path);
    struct program p = program_run(arguments),
                   plain = program_run("plan gpt2-124m --device sim:T4 --seq 256");
    json_t *root = program_json(&p);
    struct plim_yaml yaml;
    int64_t bytes;
    cr_assert(eq(int, plim_yaml_read_file(yaml_path, &yaml, NULL), PLIM_OK));
    const struct plim_yaml_node *peak = plim_yaml_get(plim_yaml_get(yaml.root, "choice"), "peak");
    cr_assert(eq(int, plim_yaml_int(&yaml, plim_yaml_get(peak, "reserved_bytes"), &bytes, NULL),
                 PLIM_OK));
    cr_expect(eq(i64, bytes, json_int_at(root, "choice.peak.reserved_bytes")));
    cr_expect(eq(sz, yaml.root->count, json_object_size(root)));
    cr_expect(eq(sz, plim_yaml_get(yaml.root, "samples")->count,
                 json_array_size(json_at(root, "samples"))));
    plim_yaml_finish(&yaml);

    char text[8192] = "";
    FILE *file = fopen(text_path, "r");
    cr_assert(file != NULL);
    cr_expect(lt(sz, 0, fread(text, 1, sizeof(text) - 1, file)));
    fclose(file);
    cr_expect(eq(str, text, plain.out));
    json_decref(root);
    program_finish(&p);
    program_finish(&plain);
    program_file_remove(yaml_path);
    program_file_remove(text_path);
}

static char *without_seconds(const char *arguments)
{
    struct program p = program_run(arguments);
    json_t *root = program_json(&p), *results = json_at(root, "results"), *result;
    size_t i;
    json_object_del(root, "seconds");
    json_array_foreach(results, i, result) json_object_del(result, "seconds");
    char *text = json_dumps(root, 0);
    json_decref(root);
    program_finish(&p);
    return text;
}

Test(report, the_same_input_gives_the_same_bytes)
{
    const char *arguments =
        "plan gpt2-124m --device sim:T4 --device sim:L4 --device sim:A100-SXM4-40GB --device "
        "sim:A100-SXM4-80GB --device sim:RTX-4090 --seq 256,512 --precision bf16,bf16-mixed --json";
    char *one = without_seconds(arguments), *two = without_seconds(arguments);
    cr_expect(eq(str, one, two));
    free(one);
    free(two);
}

Test(report, the_allocator_options_of_the_environment_are_used_and_shown)
{
    const char *arguments = "explain gpt2-124m --device sim:T4 --batch 2 --seq 256 --json";
    struct program without = program_run(arguments);
    setenv("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True", 1);
    struct program with = program_run(arguments);
    json_t *a = program_json(&without), *b = program_json(&with);
    cr_expect(json_at(a, "limit.alloc_conf") == NULL);
    json_expect_text(b, "limit.alloc_conf", "expandable_segments:True");
    cr_expect(
        ne(i64, json_int_at(a, "peak.reserved_bytes"), json_int_at(b, "peak.reserved_bytes")));
    cr_expect(strstr(with.err, "PYTORCH_CUDA_ALLOC_CONF") != NULL);
    json_decref(a);
    json_decref(b);
    program_finish(&without);
    program_finish(&with);
}

#define SHORT "explain gpt2-124m --device sim:T4 --batch 1 --seq 64 --json --quiet "

Test(report, stdout_gets_the_report_even_if_a_file_cannot_be_written)
{
    static const char *const options[] = {"--out /nonexistent/report.json",
                                          "--trace /nonexistent/trace"};
    char *path = program_file("second.json", ""), arguments[512];
    for (size_t i = 0; i < 2; i++) {
        snprintf(arguments, sizeof(arguments), SHORT "%s --out %s", options[i], path);
        struct program p = program_run(arguments);
        cr_expect(eq(int, p.exit_code, 2));
        cr_expect(strstr(p.err, "/nonexistent/") != NULL, "%s", p.err);
        json_t *root = program_json(&p), *second = json_load_file(path, 0, NULL);
        json_expect_text(root, "schema", "plimsoll.explain/1");
        cr_expect(json_equal(root, second), "the other file is there all the same");
        json_decref(root);
        json_decref(second);
        program_finish(&p);
        remove(path);
    }
    program_file_remove(path);
}

Test(report, a_path_that_is_no_text_is_escaped)
{
    char *path = program_file("caf\xe9.yaml", "model: {zoo: gpt2-124m}\n"), arguments[512];
    snprintf(arguments, sizeof(arguments), "explain %s --device sim:T4 --batch 1 --seq 64 --json",
             path);
    struct program p = program_run(arguments);
    cr_expect(eq(int, p.exit_code, 0), "%s", p.err);
    json_t *root = program_json(&p);
    cr_expect(strstr(json_text_at(root, "spec.source"), "/caf\\xe9.yaml") != NULL);
    json_decref(root);
    program_finish(&p);
    program_file_remove(path);
}

/* A tensor that no address range of the GPU could hold. */
Test(report, what_is_larger_than_the_gpu_gets_a_report_with_expandable_segments_too)
{
    struct program p = program_run("explain gpt2-124m --device sim:8GiB --batch 256 --seq 1024 "
                                   "--attention eager --json "
                                   "--alloc-conf expandable_segments:True");
    cr_expect(eq(int, p.exit_code, 1), "%s", p.err);
    json_t *root = program_json(&p);
    cr_expect(eq(sz, json_array_size(json_at(root, "steps")), 4));
    cr_expect(lt(i64, INT64_C(500) << 30, json_int_at(root, "peak.allocated_bytes")));
    json_decref(root);
    program_finish(&p);
}

Test(report, the_largest_sizes_do_not_overflow)
{
    struct program p = program_run("explain gpt2-124m --device sim:1048576TiB --overhead "
                                   "1048576TiB --margin 1048576TiB --batch 1 --seq 64 --json");
    json_t *root = program_json(&p);
    int64_t most = INT64_C(1) << 60, reserved = json_int_at(root, "peak.reserved_bytes");
    cr_expect(eq(int, p.exit_code, 1));
    cr_expect(eq(i64, json_int_at(root, "limit.budget_bytes"), -most));
    cr_expect(eq(i64, json_int_at(root, "peak.device_bytes"), reserved + most));
    json_decref(root);
    program_finish(&p);
    p = program_run("plan gpt2-124m --device sim:24GiB --overhead 8388607TiB");
    cr_expect(eq(int, p.exit_code, 2), "%s", p.out);
    program_finish(&p);
}

Test(report, overhead_and_margin_are_taken_off)
{
    struct program p = program_run("explain gpt2-124m --device sim:24GiB --overhead 600MiB "
                                   "--margin 10% --batch 1 --seq 64 --json");
    json_t *root = program_json(&p);
    int64_t usable = INT64_C(24) << 30, overhead = INT64_C(600) << 20,
            margin = json_int_at(root, "limit.margin_bytes");
    cr_expect(le(i64, llabs(margin - usable / 10), 1));
    cr_expect(eq(i64, json_int_at(root, "limit.budget_bytes"), usable - overhead - margin));
    cr_expect(eq(i64, json_int_at(root, "peak.device_bytes"),
                 json_int_at(root, "peak.reserved_bytes") + overhead));
    json_expect_text(root, "limit.overhead_source", "given");
    json_decref(root);
    program_finish(&p);
}

Test(report, objective_version_and_what_a_generic_gpu_is_like_are_said)
{
    const char *arguments = "plan gpt2-124m --device sim:24GiB --seq 256 --objective least-memory ";
    char with_json[256];
    snprintf(with_json, sizeof(with_json), "%s--json", arguments);
    struct program p = program_run(with_json), text = program_run(arguments);
    json_t *root = program_json(&p);
    json_expect_text(root, "objective", "least-memory");
    cr_expect(eq(int, strncmp(json_text_at(root, "version"), "0.", 2), 0));
    json_expect_text(root, "device.based_on", "A100-SXM4-40GB");
    cr_expect(strstr(text.out, "generic GPU") != NULL &&
              strstr(text.out, "A100-SXM4-40GB") != NULL);
    cr_expect(strstr(text.out, "\nobjective least-memory, plimsoll 0.") != NULL, "%s", text.out);
    json_decref(root);
    program_finish(&p);
    program_finish(&text);
}

Test(report, a_program_that_uses_no_gpu_is_no_matter_of_memory)
{
    struct program p = program_run("exec --device sim:T4 -- true");
    cr_expect(eq(int, p.exit_code, 2));
    cr_expect(strstr(p.out, "NO GPU WAS USED") != NULL && strstr(p.out, "FITS") == NULL, "%s",
              p.out);
    cr_expect(strstr(p.err, "did not use a GPU") != NULL, "%s", p.err);
    program_finish(&p);
}

/* What the formats are is for test_report_writers.c. */
Test(report, every_format_is_written)
{
    static const struct {
        const char *name, *begins;
    } files[] = {{"report.csv", "spec,device,"},
                 {"report.md", "# gpt2-124m on T4"},
                 {"report.yml", "schema: 'plimsoll.result/1'"},
                 {"REPORT.JSON", "{"}};
    char arguments[512], text[64];
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        char *path = program_file(files[i].name, "");
        snprintf(arguments, sizeof(arguments),
                 "plan gpt2-124m --device sim:T4 --seq 64 --batch 1 --quiet --out %s", path);
        struct program p = program_run(arguments);
        FILE *file = fopen(path, "r");
        cr_assert(file && fgets(text, sizeof(text), file));
        cr_expect(eq(int, strncmp(text, files[i].begins, strlen(files[i].begins)), 0), "%s", text);
        fclose(file);
        program_finish(&p);
        program_file_remove(path);
    }
}
