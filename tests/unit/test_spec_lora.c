/* Specs of adapters: which modules have them, and of which rank. */
#include "support/spec_files.h"
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>
#include <string.h>

TestSuite(spec_lora, .fini = spec_files_remove);

static void load(const char *model, const char *lora, struct plim_spec *spec)
{
    char text[1024];
    snprintf(text, sizeof(text), "model: {%s}\ntrain:\n  lora: {r: 4, %s}\n", model, lora);
    spec_load_text("s.yaml", text, spec);
}

static void expect_refusal(const char *model, const char *lora, const char *line)
{
    char text[1024];
    snprintf(text, sizeof(text), "model: {%s}\ntrain:\n  lora: {r: 4, %s}\n", model, lora);
    cr_expect(eq(str, (char *)spec_refusal("s.yaml", text), (char *)line), "%s", text);
}

Test(spec_lora, all_linear_may_stand_beside_names)
{
    struct plim_spec s;
    load("family: phi3", "targets: [all-linear, self_attn.o_proj, qkv_proj]", &s);
    cr_expect(eq(str, s.lora.targets, "qkv_proj,o_proj,gate_up_proj,down_proj,self_attn.o_proj"));
}

/* They match nothing, as in peft. */
Test(spec_lora, names_of_other_families_are_left_out)
{
    struct plim_spec s;
    load("family: phi3", "targets: [q_proj, k_proj, o_proj, down_proj, lm_head]", &s);
    cr_expect(eq(str, s.lora.targets, "o_proj,down_proj,lm_head"));
    load("family: mixtral", "targets: [q_proj, gate_proj, mlp.up_proj, down_proj]", &s);
    cr_expect(eq(str, s.lora.targets, "q_proj"));
    expect_refusal("family: phi3", "targets: [q_proj, k_proj]",
                   "s.yaml:3:25: train.lora.targets has 'q_proj', expected linear modules of phi3: qkv_proj, o_proj, "
                   "gate_up_proj, down_proj");
    expect_refusal("family: phi3", "targets: [o_proj, x_proj]",
                   "s.yaml:3:25: train.lora.targets has 'x_proj', expected linear modules of phi3: qkv_proj, o_proj, "
                   "gate_up_proj, down_proj");
}

#define STACKED(what, key)                                                                          \
    "s.yaml:3:25: train.lora adapts parameters of " what ", which peft refuses beside train.lora." key \
    ", expected none, or modules of attention alone as targets"

/* axolotl's and LLaMA-Factory's, by which no expert has an adapter; peft's all-linear means them. */
Test(spec_lora, names_of_linears_are_not_those_of_experts)
{
    struct plim_spec s;
    load("family: mixtral", "targets: linear-names, dropout: 0.05", &s);
    cr_expect(eq(str, s.lora.targets, "q_proj,k_proj,v_proj,o_proj"));
    load("family: qwen3_moe", "targets: [linear-names, q_proj]", &s);
    cr_expect(eq(str, s.lora.targets, "q_proj,k_proj,v_proj,o_proj"));
    load("family: qwen2_moe", "targets: linear-names", &s);
    cr_expect(eq(str, s.lora.targets, "q_proj,k_proj,v_proj,o_proj,gate_proj,up_proj,down_proj,shared_expert_gate"));
    expect_refusal("family: mixtral", "targets: [q_proj, w1, w2, w3], dropout: 0.05",
                   STACKED("mixtral (gate_up_proj,down_proj)", "dropout"));
}

/* Copies in 16 bits have gradients in 16 bits; a base that peft prepared has its embeddings in fp32. */
Test(spec_lora, copies_in_16_bits_go_with_no_scaler)
{
#define HALF "model: {family: llama}\ntrain:\n  precision: fp16-mixed\n  weights: fp16\n  clip: 1\n"
    struct plim_spec s;
    spec_load_text("s.yaml", HALF "  lora: {r: 4, targets: q_proj}\n", &s);
    spec_load_text("s.yaml",
                   HALF "  lora: {r: 4, targets: q_proj, modules_to_save: lm_head}\n  quantization: {type: nf4}\n", &s);
    const char *refusal = spec_refusal("s.yaml", HALF "  lora: {r: 4, targets: q_proj, modules_to_save: lm_head}\n");
    cr_expect(eq(str, (char *)refusal,
                 "s.yaml:4:12: train.precision is fp16-mixed and the weights are in fp16, whose gradients PyTorch's "
                 "GradScaler refuses, expected train.weights fp32"));
#undef HALF
}

Test(spec_lora, modules_to_save_are_told)
{
    struct plim_spec s;
    char text[200];
    load("family: llama", "targets: q_proj, modules_to_save: [embed_tokens, lm_head], ensure_weight_tying: true", &s);
    cr_expect(eq(str, s.lora.saved, "embed_tokens,lm_head"));
    plim_spec_describe_lora(&s, text, sizeof(text));
    cr_expect(eq(str, text, "r=4 on q_proj; and tied copies of embed_tokens, lm_head"));
    plim_spec_describe_lora(&s, text, 24);
    cr_expect(eq(str, text, "r=4 on q_proj; and tied"));
    expect_refusal("family: llama", "modules_to_save: 're:.*'",
                   "s.yaml:3:9: train.lora.modules_to_save is a regular expression, expected names such as "
                   "embed_tokens");
}

Test(spec_lora, some_layers_and_several_ranks)
{
    struct plim_spec s;
    char text[200];
    load("family: llama",
         "targets: [q_proj, mlp.up_proj], exclude: 're:.*\\.3\\..*', layers: [1, 3], layers_pattern: layers, "
         "rank_pattern: {'mlp\\..*': 2, q_proj: 8}",
         &s);
    cr_expect(eq(str, s.lora.exclude, "re:.*\\.3\\..*"));
    cr_assert(eq(sz, s.lora.layers.count, 2));
    cr_expect(eq(str, s.lora.layers_pattern, "layers"));
    cr_assert(eq(sz, s.lora.rank_count, 2));
    cr_expect(s.lora.ranks[1].r == 8 && !strcmp(s.lora.ranks[0].regex, "mlp\\..*"));
    plim_spec_describe_lora(&s, text, sizeof(text));
    cr_expect(eq(str, text, "r=4 on q_proj, mlp.up_proj; r=2 on mlp\\..*, 8 on q_proj; of layers 1, 3; "
                            "not on re:.*\\.3\\..*"));
}

Test(spec_lora, expressions_are_read_as_python_reads_them)
{
    expect_refusal("family: llama", "targets: 're:(?i)q_proj'",
                   "s.yaml:3:25: train.lora.targets has '(?i)q_proj', which is not read here: a group of a kind that "
                   "is not supported, expected a regular expression without it");
    expect_refusal("family: llama", "rank_pattern: {'(': 3}",
                   "s.yaml:3:31: train.lora.rank_pattern has '(', which is not read here: a group without an end, "
                   "expected a regular expression without it");
    expect_refusal("family: mixtral", "targets: 're:.*q_proj'",
                   "s.yaml:3:25: train.lora.targets has a regular expression, which peft reads otherwise beside the "
                   "experts of mixtral, expected names of modules, as q_proj");
}

Test(spec_lora, what_peft_refuses_is_refused)
{
    expect_refusal("family: llama", "targets: ['.*q_proj']",
                   "s.yaml:3:26: train.lora.targets is '.*q_proj', expected module names such as [q_proj, v_proj], or "
                   "a regular expression such as 're:.*_proj', or null");
    expect_refusal("family: llama", "targets: 're:.*q_proj', layers: 3",
                   "s.yaml:3:25: train.lora.targets is a regular expression and train.lora.layers is there, too, which "
                   "peft refuses, expected the layers in the expression");
    expect_refusal("family: llama", "rank_pattern: {q_proj: 0}",
                   "s.yaml:3:39: train.lora.rank_pattern is '0', expected an integer from 1 to 65536");
}

/* _convert_peft_config_moe(): names from before the experts were stacked */
Test(spec_lora, names_of_experts_mean_their_stacked_weights)
{
    struct plim_spec s;
    char text[200];
    load("family: mixtral", "targets: all-linear", &s);
    cr_expect(eq(str, s.lora.targets, "q_proj,k_proj,v_proj,o_proj"));
    cr_expect(eq(str, s.lora.parameters, "gate.weight,gate_up_proj,down_proj"));
    cr_assert(eq(sz, s.lora.rank_count, 1));
    cr_expect(s.lora.ranks[0].r == 8 && !strcmp(s.lora.ranks[0].regex, ".*\\.gate_up_proj"));
    plim_spec_describe_lora(&s, text, sizeof(text));
    cr_expect(eq(str, text, "r=4 on q_proj, k_proj, v_proj, o_proj and parameters gate.weight, gate_up_proj, "
                            "down_proj; r=8 on .*\\.gate_up_proj"));
    load("family: qwen3_moe", "targets: [q_proj, mlp.experts.down_proj]", &s);
    cr_expect(eq(str, s.lora.targets, "q_proj"));
    cr_expect(eq(str, s.lora.parameters, "down_proj"));
    cr_expect(eq(sz, s.lora.rank_count, 0));
    load("family: mixtral", "targets: [w3, w1]", &s);
    cr_expect(eq(str, s.lora.targets, "none"));
    cr_expect(eq(str, s.lora.parameters, "gate_up_proj"));
    load("family: olmoe", "targets: all-linear", &s);
    cr_expect(eq(str, s.lora.targets, "q_proj,k_proj,v_proj,o_proj"));
    cr_expect(eq(str, s.lora.parameters, "gate.weight,gate_up_proj,down_proj"));
    load("family: qwen3_next", "targets: [in_proj_ba, down_proj, gate]", &s); /* of the shared expert, too */
    cr_expect(eq(str, s.lora.targets, "in_proj_ba"));
    cr_expect(eq(str, s.lora.parameters, "down_proj,gate.weight"));
    for (int i = 0; i < 2; i++) {
        load(i ? "family: qwen3_5_moe_text" : "family: qwen2_moe", "targets: [down_proj]", &s);
        cr_expect(eq(str, s.lora.targets, "down_proj"));
        cr_expect(eq(str, s.lora.parameters, ""));
    }
}

Test(spec_lora, parameters_are_those_of_experts)
{
    struct plim_spec s;
    load("family: gpt_oss", "targets: none, parameters: [7.mlp.experts.gate_up_proj, mlp.router.weight]", &s);
    cr_expect(eq(str, s.lora.targets, "none"));
    load("family: llama", "targets: q_proj, parameters: mlp.down_proj, dropout: 0.05", &s);
    expect_refusal("family: mixtral", "targets: q_proj, parameters: 're:.*down_proj'",
                   "s.yaml:3:25: train.lora.parameters is a regular expression, expected names such as "
                   "mlp.experts.down_proj");
    expect_refusal("family: mixtral", "targets: q_proj, parameters: q_proj.weight",
                   "s.yaml:3:25: train.lora.parameters has 'q_proj.weight', which is not supported, expected "
                   "gate_up_proj or down_proj of experts, or a router's gate.weight (plimsoll exec runs any training "
                   "program)");
    expect_refusal("family: gpt_oss", "targets: q_proj, parameters: mlp.experts.down_proj, dora: true",
                   STACKED("gpt_oss (mlp.experts.down_proj)", "dora"));
    expect_refusal("family: mixtral", "targets: [q_proj, w3]",
                   "s.yaml:3:25: train.lora.targets has 'w3' alone, which peft refuses, as it is one half of the "
                   "experts' gate_up_proj, expected both halves");
}

#define HALF "loop: trainer, precision: bf16-mixed, weights: bf16"
#define ALL "lora: {r: 8, qkv_kernel: true, o_kernel: true, mlp_kernel: true"

Test(spec_lora, axolotls_functions_stand_where_axolotl_can_put_them)
{
    static const struct {
        const char *family, *train, *why; /* NULL: nothing is wrong */
    } cases[] = {
        {"llama", HALF ", " ALL "}", NULL},
        {"gpt_oss", HALF ", " ALL ", targets: q_proj}", NULL},
        {"olmo2", HALF ", lora: {r: 8, mlp_kernel: true, targets: up_proj}", NULL},
        {"olmo2", HALF ", " ALL ", targets: q_proj}", "train.lora.qkv_kernel is true, which axolotl cannot"},
        {"phi3", HALF ", lora: {r: 8, o_kernel: true, targets: o_proj}", "train.lora.o_kernel is true, which axolotl"},
        {"arcee", HALF ", lora: {r: 8, o_kernel: true, targets: o_proj}", "train.lora.o_kernel is true, and what"},
        {"gpt2", HALF ", lora: {r: 8, mlp_kernel: true}", "train.lora.mlp_kernel is true, which axolotl cannot put"},
        {"qwen3_5_text", HALF ", " ALL ", targets: [q_proj, down_proj]}", NULL},
        {"qwen3_5_text", HALF ", " ALL ", targets: all-linear}", NULL},
        {"llama", "precision: fp32, " ALL "}", NULL},
        {"llama", "precision: bf16, " ALL "}", NULL},
        {"llama", "precision: bf16-mixed, weights: fp32, " ALL "}", "autocast is to another type than that of activ"},
        {"llama", "precision: fp16-mixed, weights: bf16, " ALL "}", "autocast is to another type than that of activ"},
        {"llama", HALF ", upcast: kept, " ALL "}", "autocast is to another type than that of activations"},
        {"llama", HALF ", " ALL "}, quantization: nf4", "train.quantization.prepare false or train.upcast undone"},
        {"llama", HALF ", upcast: undone, " ALL "}, quantization: nf4", NULL},
        {"starcoder2", HALF ", " ALL ", targets: q_proj}", "autocast is to another type than that of activations"},
        {"starcoder2", "precision: bf16, " ALL ", targets: q_proj}", NULL},
        {"llama", HALF ", upcast: undone, " ALL "}, quantization: int8", "int8, which axolotl refuses, expected false"},
        {"llama", HALF ", " ALL ", dora: true}", "beside train.lora.dora, which is not supported"},
        {"llama", "loop: trl-sft, precision: bf16, " ALL "}", "beside one of TRL's trainers"},
        {"llama", HALF ", world: 2, sharding: [ddp, fsdp], " ALL "}", "beside fsdp without train.fsdp_plan axolotl"},
        {"llama", HALF ", world: 2, sharding: fsdp, fsdp_plan: axolotl, " ALL "}", NULL},
        {"llama", HALF ", world: 2, sharding: zero3, " ALL "}", "beside zero3, which is not supported"},
        {"llama", HALF ", world: 2, sharding: zero2, " ALL "}", NULL},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct plim_spec s;
        char text[512];
        snprintf(text, sizeof(text), "model: {family: %s}\ntrain: {%s}\n", cases[i].family, cases[i].train);
        if (!cases[i].why) {
            spec_load_text("s.yaml", text, &s);
            continue;
        }
        const char *why = spec_refusal("s.yaml", text);
        cr_expect(strstr(why, cases[i].why) != NULL, "%s: %s", cases[i].family, why);
    }
}

Test(spec_lora, axolotls_functions_are_told)
{
    struct plim_spec s;
    char text[200];
    load("family: llama", "targets: q_proj, o_kernel: true, mlp_kernel: true", &s);
    plim_spec_describe_lora(&s, text, sizeof(text));
    cr_expect(eq(str, text, "r=4 on q_proj; axolotl's functions o, mlp"));
}
