/* The types that a spec leads to, and what was taken by default. */
#include "support/spec_files.h"
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TestSuite(spec_types, .fini = spec_files_remove);

static void resolve(struct plim_spec *spec)
{
    struct plim_error err = PLIM_ERROR_INIT;
    cr_assert(eq(int, plim_spec_resolve(spec, &err), PLIM_OK), "%s", err.text);
}

static void expect_types(const char *train, const char *precision, const char *weights)
{
    struct plim_spec s;
    char text[256], seen[2][64] = {"", ""};
    snprintf(text, sizeof(text), "model: {family: llama, dtype: bfloat16}\ntrain: {%s}\n", train);
    spec_load_text("s.yaml", text, &s);
    for (size_t i = 0; i < s.precision.count; i++)
        snprintf(seen[0] + strlen(seen[0]), sizeof(seen[0]) - strlen(seen[0]), "%s%s",
                 i ? " " : "", plim_precision_names[s.precision.values[i]]);
    for (size_t i = 0; i < s.weights.count; i++)
        snprintf(seen[1] + strlen(seen[1]), sizeof(seen[1]) - strlen(seen[1]), "%s%s",
                 i ? " " : "", plim_weights_names[s.weights.values[i]]);
    cr_expect(eq(str, seen[0], (char *)precision), "%s", train);
    cr_expect(eq(str, seen[1], (char *)weights), "%s", train);
}

Test(spec_types, weights_are_the_models_and_no_autocast_is_theirs)
{
    expect_types("", "bf16", "bf16");
    expect_types("weights: auto", "bf16", "bf16");
    expect_types("weights: fp32", "fp32", "fp32");
    expect_types("weights: [auto, fp32, bf16]", "bf16 fp32", "bf16 fp32");
    expect_types("precision: bf16-mixed", "bf16-mixed", "bf16");
    expect_types("precision: [bf16-mixed, fp32]", "bf16-mixed fp32", "bf16");
    expect_types("precision: fp32", "fp32", "fp32");
    expect_types("precision: [tf32, fp16]", "tf32 fp16", "fp32 fp16");
    expect_types("precision: fp16-mixed, weights: fp16, lora: {r: 8}", "fp16-mixed", "fp16");
    expect_types("precision: fp16-mixed, weights: fp16", "fp16-mixed", "fp16");
}

Test(spec_types, follow_what_is_set_later)
{
    struct plim_spec s;
    spec_load_text("s.yaml", "model: {family: llama, dtype: float16}\n", &s);
    cr_assert(eq(int, plim_spec_set(&s, "train.precision", "fp32", NULL), PLIM_OK));
    resolve(&s);
    cr_expect(eq(int, s.weights.values[0], PLIM_WEIGHTS_FP32));
    cr_assert(eq(int, plim_spec_set(&s, "train.precision", "null", NULL), PLIM_OK));
    cr_assert(eq(int, plim_spec_set(&s, "model.dtype", "bfloat16", NULL), PLIM_OK));
    resolve(&s);
    cr_expect(eq(int, s.weights.values[0], PLIM_WEIGHTS_BF16));
    cr_expect(eq(int, s.precision.values[0], PLIM_PRECISION_BF16));
}

#define PLAIN "a plain loop (--loop trainer plays transformers' Trainer), "

#define ROWS "rows of one document, all of full length, "
#define NO_EVALUATIONS "no evaluations (--evaluation plays them), "

Test(spec_types, what_was_taken_by_default_is_said)
{
    static const struct {
        const char *train, *said;
    } cases[] = {
        {"", "weights bf16 (the model's dtype), precision bf16 (no autocast), optimizer "
             "adamw-fused, " ROWS PLAIN "PyTorch 2.11 with transformers 5.17"},
        {"precision: bf16-mixed",
         "weights bf16 (the model's dtype), optimizer adamw-fused, " ROWS PLAIN "PyTorch 2.11 with transformers 5.17"},
        {"precision: fp32, optimizer: sgd", ROWS PLAIN "PyTorch 2.11 with transformers 5.17"},
        {"torch: 2.15, precision: fp32, optimizer: sgd", ROWS PLAIN "transformers 5.17"},
        {"torch: 2.15, transformers: 5.24, precision: fp32, optimizer: sgd, loop: trainer",
         ROWS NO_EVALUATIONS "Trainer's loop as in transformers 5.17"},
        {"torch: 2.15, transformers: 5.24, precision: fp32, optimizer: sgd, loop: trainer, evaluation: {batch: 8}",
         ROWS "Trainer's loop as in transformers 5.17"},
        {"precision: fp32, optimizer: sgd, loop: trl-sft, evaluation: {batch: 8}",
         ROWS "every token has a label (data.prompt: those of a prompt have none), "
         "PyTorch 2.11 with transformers 5.17"},
        {"precision: fp32, optimizer: sgd, loop: trl-dpo, evaluation: {batch: 8}",
         ROWS "every token has a label (data.prompt: those of a prompt have none), a sample is a pair of rows, "
         "PyTorch 2.11 with transformers 5.17"},
        {"precision: bf16-mixed, optimizer: sgd, loop: trainer, world: 2, sharding: fsdp",
         "weights bf16 (the model's dtype), " ROWS NO_EVALUATIONS
         "PyTorch 2.11 with transformers 5.17, "
         "weights fp32 under FSDP in mixed precision, as accelerate makes them"},
        {"precision: bf16, optimizer: sgd, loop: trainer, world: 2, sharding: fsdp",
         ROWS NO_EVALUATIONS "PyTorch 2.11 with transformers 5.17"},
        {"torch: 2.15, transformers: 5.24, precision: bf16-mixed, weights: bf16, optimizer: sgd, loop: trainer, "
         "world: 2, sharding: fsdp, evaluation: {batch: 8}, quantization: 'nf4,compute=bf16'",
         ROWS "Trainer's loop as in transformers 5.17, codes in uint8, which FSDP leaves whole on "
         "every GPU (train.quantization.storage), all of the base on every GPU before it is sharded "
         "(train.quantization.loaded_on)"},
        {"torch: 2.15, transformers: 5.24, precision: bf16-mixed, weights: bf16, optimizer: sgd, loop: trainer, "
         "world: 2, sharding: fsdp, evaluation: {batch: 8}, "
         "quantization: 'nf4,compute=bf16,storage=bf16,loaded_on=host'",
         ROWS "Trainer's loop as in transformers 5.17"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct plim_spec s;
        char text[320], said[512];
        snprintf(text, sizeof(text), "model: {family: llama, dtype: bfloat16}\ntrain: {%s}\n",
                 cases[i].train);
        spec_load_text("s.yaml", text, &s);
        plim_spec_describe_defaults(&s, said, sizeof(said));
        cr_expect(eq(str, said, (char *)cases[i].said));
    }
}

Test(spec_types, balanced_routing_is_an_assumption_that_is_said)
{
    struct plim_spec s;
    char said[256];
    spec_load_text("s.yaml", "model: {family: mixtral}\ndata: {packing: yes}\n"
                             "train: {precision: fp32, optimizer: sgd}\n", &s);
    plim_spec_describe_defaults(&s, said, sizeof(said));
    cr_expect(eq(str, said, PLAIN "PyTorch 2.11 with transformers 5.17, each expert sees as many rows as any other"));
}

Test(spec_types, whose_answers_are_timed_is_said)
{
    static const char *const cases[][2] = {
        {"vllm: none", "a sample is an answer of the model itself, as long as it may be, whose time is in the speed, "},
        {"vllm: none, updates: 2", "as long as it may be, whose time is in no speed, nor is that of scoring it, "},
        {"vllm: none, iterations: 2", "as long as it may be, whose time is in no speed, nor is that of scoring it, "},
        {"vllm: server", "from a vLLM server on other GPUs, whose time is in no speed, "}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct plim_spec s;
        char text[320], said[512];
        snprintf(text, sizeof(text), "model: {family: llama}\ndata: {prompt: 9}\n"
                 "train: {loop: trl-grpo, effective_batch: 8, grpo: {%s}}\n", cases[i][0]);
        spec_load_text("s.yaml", text, &s);
        plim_spec_describe_defaults(&s, said, sizeof(said));
        cr_expect(strstr(said, cases[i][1]) != NULL, "%s", said);
    }
}

/* What transformers and accelerate fill in for "auto" hangs on the model. */
Test(spec_types, settings_of_zero_may_be_auto)
{
    static const char text[] = "model: {family: llama, hidden_size: 2048}\n"
                               "train: {world: 2, sharding: zero3, zero: {reduce_bucket_size: auto,\n"
                               "  stage3_prefetch_bucket_size: auto, stage3_param_persistence_threshold: auto}}\n";
    struct plim_spec s;
    char defaults[512];
    spec_load_text("s.yaml", text, &s);
    const struct plim_zero zero = plim_spec_zero(&s);
    cr_expect(eq(i64, zero.bucket_elements, 2048 * 2048));
    cr_expect(eq(i64, zero.prefetch_elements, 3774873)); /* int(0.9 * 2048 * 2048) */
    cr_expect(eq(i64, zero.persistent_elements, 20480));
    cr_expect(eq(i64, zero.reuse_elements, 1000000000));
    plim_spec_describe_defaults(&s, defaults, sizeof(defaults));
    cr_expect(strstr(defaults, "reduce_bucket_size") == NULL, "%s", defaults);
    cr_expect(strstr(defaults, "DeepSpeed's own overlap_comm") != NULL, "%s", defaults);
    struct plim_error err = PLIM_ERROR_INIT;
    char *written;
    cr_assert(eq(int, plim_spec_content(&s, &written, &err), PLIM_OK), "%s", err.text);
    cr_expect(strstr(written, "reduce_bucket_size: auto\n") != NULL, "%s", written);
    free(written);
}
