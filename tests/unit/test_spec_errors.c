/* Specs that are wrong: one clear line each, in bounded time and memory. */
#include "support/spec_files.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TestSuite(spec_errors, .fini = spec_files_remove);

struct refusal {
    const char *text, *line;
};

static void check_all(const char *name, const struct refusal *cases, size_t count)
{
    for (size_t i = 0; i < count; i++)
        cr_expect(eq(str, (char *)spec_refusal(name, cases[i].text), (char *)cases[i].line), "%s", cases[i].text);
}

#define CHECK_ALL(name, cases) check_all(name, cases, sizeof(cases) / sizeof((cases)[0]))
#define FAMILIES_BUT_VIT \
    "gpt2, llama, mistral, qwen2, qwen3, phi3, phi, gemma2, gemma3_text, gpt_neox, opt, bloom, olmo2, " \
    "gemma, starcoder2, smollm3, granite, granitemoehybrid, olmo, olmo3, stablelm, cohere, cohere2, glm, " \
    "glm4, qwen3_5_text, ministral3, ministral, arcee, apertus, nemotron, exaone4, seed_oss, ernie4_5, " \
    "hunyuan_v1_dense, lfm2, falcon, falcon_h1, nemotron_h, gptj, gpt_bigcode, bert, roberta, xlm-roberta, electra, " \
    "distilbert, modernbert, deberta-v2, albert, mpnet, esm, mixtral, qwen2_moe, qwen3_moe, gpt_oss, " \
    "qwen3_5_moe_text, qwen3_next, olmoe, granitemoe, ernie4_5_moe, lfm2_moe, minimax_m2, afmoe, glm4_moe, " \
    "deepseek_v2, deepseek_v3, " \
    "glm4_moe_lite, qwen2_vl, qwen2_5_vl, qwen3_vl, qwen3_vl_moe, qwen3_5, qwen3_5_moe, gemma3, mistral3, " \
    "llava, internvl, t5, mt5, whisper, bart, mbart, gemma4, gemma4_unified, gemma4_text, gemma4_unified_text"
#define FAMILIES FAMILIES_BUT_VIT ", vit"
#define RUN_IT " (plimsoll exec runs any training program)"

/* --- sizes ------------------------------------------------------------------------------------ */

Test(spec_errors, sizes_have_limits)
{
    static const struct refusal cases[] = {
        {"model: {family: gpt2, n_layer: 0}\n",
         "s.yaml:1:32: model.n_layer is '0', expected an integer from 1 to 1024"},
        {"model: {family: gpt2, n_layer: -4}\n",
         "s.yaml:1:32: model.n_layer is '-4', expected an integer from 1 to 1024"},
        {"model: {family: gpt2, n_layer: 1025}\n",
         "s.yaml:1:32: model.n_layer is '1025', expected an integer from 1 to 1024"},
        {"model:\n  family: gpt2\n  n_embd: 1000000000000000000\n",
         "s.yaml:3:11: model.n_embd is '1000000000000000000', expected an integer from 1 to "
         "1048576"},
        {"model:\n  family: gpt2\n  n_embd: 99999999999999999999999999\n",
         "s.yaml:3:11: model.n_embd is '99999999999999999999999999', expected an integer from 1 to "
         "1048576"},
        {"model:\n  family: gpt2\n  n_embd: 1e3\n",
         "s.yaml:3:11: model.n_embd is '1e3', expected an integer from 1 to 1048576"},
        {"model:\n  family: gpt2\n  n_embd: .nan\n",
         "s.yaml:3:11: model.n_embd is '.nan', expected an integer from 1 to 1048576"},
        {"model:\n  family: gpt2\n  n_embd: 768.5\n",
         "s.yaml:3:11: model.n_embd is '768.5', expected an integer from 1 to 1048576"},
        {"model: {family: gpt2, resid_pdrop: .nan}\n",
         "s.yaml:1:36: model.resid_pdrop is '.nan', expected a number from 0 to 1"},
        {"model: {family: gpt2, resid_pdrop: 1.5}\n",
         "s.yaml:1:36: model.resid_pdrop is '1.5', expected a number from 0 to 1"},
        {"model: {family: gpt2, resid_pdrop: .inf}\n",
         "s.yaml:1:36: model.resid_pdrop is '.inf', expected a number from 0 to 1"},
        {"model: {family: llama, hidden_size: 1048576, num_attention_heads: 1, intermediate_size: "
         "4194304,\n"
         "  num_hidden_layers: 1024}\n",
         "s.yaml:1:37: the model has about 1.8e+16 parameters, expected at most 1e+14"},
    };
    CHECK_ALL("s.yaml", cases);
}

Test(spec_errors, sizes_of_a_config_json_have_limits)
{
    static const struct refusal cases[] = {
        {"{\"model_type\": \"gpt2\",\n \"n_layer\": -1}",
         "config.json:2:13: n_layer is '-1', expected an integer from 1 to 1024"},
        {"{\"model_type\": \"gpt2\",\n \"vocab_size\": 1000000000000000000}",
         "config.json:2:16: vocab_size is '1000000000000000000', expected an integer from 1 to "
         "67108864"},
        {"{\"model_type\": \"gpt2\",\n \"embd_pdrop\": NaN}",
         "config.json:2:16: embd_pdrop is 'NaN', expected a number from 0 to 1"},
        {"{\"model_type\": \"gpt2\",\n \"n_layer\": \"12\"}",
         "config.json:2:13: n_layer is '12', expected an integer from 1 to 1024"},
        {"{\"model_type\": \"gpt2\",\n \"n_layer\": [12]}",
         "config.json:2:13: n_layer is a list, expected an integer from 1 to 1024"},
        {"{\"model_type\": \"gpt2\",\n \"n_layer\": null}",
         "config.json:2:13: n_layer is null, expected an integer from 1 to 1024"},
        {"{\"model_type\": \"llama\",\n \"pad_token_id\": 32000}",
         "config.json:2:18: pad_token_id is 32000, expected a token of the vocabulary of 32000, or "
         "null"},
    };
    CHECK_ALL("config.json", cases);
}

Test(spec_errors, heads_must_divide)
{
    static const struct refusal cases[] = {
        {"model:\n  family: gpt2\n  n_head: 7\n",
         "s.yaml:3:11: n_embd is 768 and n_head is 7, expected heads that divide it"},
        {"model:\n  family: qwen2\n  hidden_size: 100\n  num_attention_heads: 3\n  "
         "num_key_value_heads: 3\n",
         "s.yaml:4:24: hidden_size is 100 and num_attention_heads is 3, expected heads that divide "
         "it"},
        {"model:\n  family: llama\n  num_key_value_heads: 5\n",
         "s.yaml:3:24: num_attention_heads is 32 and num_key_value_heads is 5, expected key-value "
         "heads that divide it"},
        {"model:\n  family: llama\n  num_key_value_heads: 64\n",
         "s.yaml:3:24: num_attention_heads is 32 and num_key_value_heads is 64, expected key-value "
         "heads that divide it"},
        {"model:\n  family: llama\n  hidden_size: 2080\n",
         "s.yaml:2:3: 65 elements of a head rotate (head_dim 65), expected an even number from 2 "
         "on"},
    };
    CHECK_ALL("s.yaml", cases);
}

Test(spec_errors, layers_must_agree)
{
    static const struct refusal cases[] = {
        {"model:\n  family: gemma2\n  layer_types: [full_attention]\n",
         "s.yaml:3:16: layer_types has 1 entries, expected num_hidden_layers = 26"},
        {"model:\n  family: qwen2\n  num_hidden_layers: 1\n  layer_types: [sliding_attention]\n",
         "s.yaml:2:3: layer 0 is sliding without a sliding_window, expected a window and "
         "use_sliding_window: true"},
        {"model:\n  family: qwen2\n  layer_types: [chunked_attention]\n",
         "s.yaml:3:17: model.layer_types is 'chunked_attention', expected full_attention or "
         "sliding_attention"},
        {"model:\n  family: smollm3\n  num_hidden_layers: 3\n  no_rope_layers: [1, 0]\n",
         "s.yaml:4:19: no_rope_layers has 2 entries, expected num_hidden_layers = 3 or more"},
        {"model:\n  family: smollm3\n  no_rope_layers: [1, 2]\n",
         "s.yaml:3:23: model.no_rope_layers is '2', expected an integer from 0 to 1"},
        {"model: {family: llama, layer_types: [full_attention]}\n",
         "s.yaml:1:24: unknown key model.layer_types for llama, expected a key of its config.json"},
    };
    CHECK_ALL("s.yaml", cases);
}

/* --- keys and types --------------------------------------------------------------------------- */

Test(spec_errors, unknown_keys_get_the_nearest)
{
    static const struct refusal cases[] = {
        {"modell: {family: gpt2}\n",
         "s.yaml:1:1: unknown key modell, expected the nearest known key model"},
        {"data: {seq: 3}\n", "s.yaml:1:1: this spec has no model, expected a section model with "
                             "family, hf or zoo (or a config.json with a "
                             "model_type)"},
        {"model: {family: gpt2}\ntrian:\n  clip: 1\n",
         "s.yaml:2:1: unknown key trian, expected the nearest known key train"},
        {"model: {family: gpt2}\ntrain:\n  optimiser: adamw\n",
         "s.yaml:3:3: unknown key train.optimiser, expected the nearest known key train.optimizer"},
        {"model: {family: gpt2}\ntrain:\n  lora: {r: 4, target: [c_attn]}\n",
         "s.yaml:3:16: unknown key train.lora.target, expected the nearest known key "
         "train.lora.targets"},
        {"model: {family: gpt2}\ntrain: {seq: 512}\n",
         "s.yaml:2:9: unknown key train.seq, expected the nearest known key data.seq"},
        {"model: {family: gpt2}\nprecision: fp32\n",
         "s.yaml:2:1: unknown key precision, expected the nearest known key train.precision"},
        {"model: {family: gpt2}\ndata: {xyzzy: 1}\n",
         "s.yaml:2:8: unknown key data.xyzzy, expected one of seq, target_seq, vocab_size, packing, "
         "documents, padding, prompt, images, image_pixels, image_height, image_width"},
        {"model: {family: gpt2, n_layers: 3}\n", "s.yaml:1:23: unknown key model.n_layers for "
                                                 "gpt2, expected the nearest known key n_layer"},
        {"model: {family: gpt2}\ntrain.clip: 1\n",
         "s.yaml:2:1: the key train.clip has a dot, expected sections below each other"},
    };
    CHECK_ALL("s.yaml", cases);
}

Test(spec_errors, values_have_types)
{
    static const struct refusal cases[] = {
        {"model: gpt2\n", "s.yaml:1:8: model is 'gpt2', expected a mapping with family, hf or zoo"},
        {"model: {}\n", "s.yaml:1:8: the model has no origin, expected family, hf or zoo"},
        {"model: {family: gpt3}\n",
         "s.yaml:1:17: model.family is 'gpt3', expected " FAMILIES_BUT_VIT " or vit"},
        {"model: {family: gpt2, zoo: gpt2-124m}\n",
         "s.yaml:1:28: model.zoo is given with model.family, expected one of them"},
        {"model: {family: gpt2, activation_function: mish}\n",
         "s.yaml:1:44: model.activation_function is 'mish', expected gelu, gelu_new, "
         "gelu_pytorch_tanh, silu, relu, relu2, quick_gelu, xielu, gelu_python or swish"},
        {"model: {family: gpt2, scale_attn_weights: 1}\n",
         "s.yaml:1:43: model.scale_attn_weights is '1', expected true or false"},
        {"model: {family: gpt2}\ntrain: 3\n", "s.yaml:2:8: train is '3', expected a mapping"},
        {"model: {family: gpt2}\ntrain: {precision: bf8}\n",
         "s.yaml:2:20: train.precision is 'bf8', expected fp32, tf32, bf16-mixed, fp16-mixed, bf16 "
         "or fp16, or a list of them, or null"},
        {"model: {family: gpt2}\ntrain: {precision: [fp32, fp32]}\n",
         "s.yaml:2:27: train.precision has fp32 twice, expected it once"},
        {"model: {family: gpt2}\ntrain: {precision: []}\n",
         "s.yaml:2:20: train.precision is a list, expected fp32, tf32, bf16-mixed, fp16-mixed, "
         "bf16 or fp16, or a list of them, or null"},
        {"model: {family: gpt2}\ntrain: {precision: bf16, weights: fp32}\n",
         "s.yaml:2:35: train.weights is fp32, but train.precision bf16 has weights in bf16 and no "
         "autocast, expected precision fp32, or bf16-mixed for autocast over weights in fp32"},
        {"model: {family: gpt2, dtype: bfloat16}\ntrain: {precision: fp16-mixed}\n",
         "s.yaml:2:8: train.precision is fp16-mixed and the weights are in bf16, whose gradients "
         "PyTorch's GradScaler refuses, expected train.weights fp32"},
        {"model: {family: gpt2}\ntrain: {precision: fp16-mixed, weights: fp16, clip: 1.0}\n",
         "s.yaml:2:41: train.precision is fp16-mixed and the weights are in fp16, whose gradients "
         "PyTorch's GradScaler refuses, expected train.weights fp32"},
        {"model: {family: gpt2}\ntrain: {world: many}\n",
         "s.yaml:2:16: train.world is 'many', expected an integer from 1 to 1048576"},
        {"model: {family: gpt2}\ntrain: {world: null}\n",
         "s.yaml:2:16: train.world is null, expected an integer from 1 to 1048576"},
        {"model: {family: gpt2}\ntrain: {clip: -1}\n",
         "s.yaml:2:15: train.clip is '-1', expected a number from 0 to 1e+09, or null"},
        {"model: {family: gpt2}\ntrain: {effective_batch_tolerance: 200%}\n",
         "s.yaml:2:36: train.effective_batch_tolerance is '200%', expected a share such as 2% or "
         "0.02, from 0 to 0.99"},
        {"model: {family: gpt2}\ntrain: {dropout: 2}\n",
         "s.yaml:2:18: train.dropout is '2', expected a number from 0 to 1, or null"},
        {"name: [a]\nmodel: {family: gpt2}\n",
         "s.yaml:1:7: name is a list, expected a text of at most 63 characters"},
        {"name: 0123456789012345678901234567890123456789012345678901234567890123\nmodel: {family: "
         "gpt2}\n",
         "s.yaml:1:7: name is '0123456789012345678901234567890123456789'..., expected a text of at "
         "most 63 characters"},
    };
    CHECK_ALL("s.yaml", cases);
}

#define AXIS                                                                                       \
    "expected integers from 1 to 16777216: one, a list, or a range such as 512:4096:512, or null"

Test(spec_errors, ranges_are_checked)
{
    static const struct refusal cases[] = {
        {"model: {family: llama}\ndata: {seq: 0}\n", "s.yaml:2:13: data.seq is '0', " AXIS},
        {"model: {family: llama}\ndata: {seq: 512:4096}\n",
         "s.yaml:2:13: data.seq is '512:4096', " AXIS},
        {"model: {family: llama}\ndata: {seq: '512:4096:0'}\n",
         "s.yaml:2:13: data.seq is '512:4096:0', " AXIS},
        {"model: {family: llama}\ndata: {seq: '4096:512:512'}\n",
         "s.yaml:2:13: data.seq is '4096:512:512', " AXIS},
        {"model: {family: llama}\ndata: {seq: '1:2:3:4'}\n",
         "s.yaml:2:13: data.seq is '1:2:3:4', " AXIS},
        {"model: {family: llama}\ndata: {seq: '1:16777216:1'}\n",
         "s.yaml:2:13: data.seq has too many values, expected at most 64"},
        {"model: {family: llama}\ndata: {seq: [512, 512]}\n",
         "s.yaml:2:19: data.seq has 512 twice, expected it once"},
        {"model: {family: llama}\ndata: {seq: [512, [1]]}\n",
         "s.yaml:2:13: data.seq is a list, " AXIS},
        {"model: {family: llama}\ndata: {seq: '512,'}\n", "s.yaml:2:13: data.seq is '512,', " AXIS},
        {"model: {family: gpt2}\ndata: {seq: [512, 2048]}\n",
         "s.yaml:2:13: data.seq is 2048, expected at most n_positions = 1024: gpt2 has learned positions"},
        {"model: {family: llama}\ndata: {seq: 16777216}\ntrain: {micro_batch: 1048576}\n",
         "s.yaml:2:13: data.seq 16777216 with train.micro_batch 1048576 makes a tensor of 3.8e+22 "
         "bytes, expected less than 2e+16"},
    };
    CHECK_ALL("s.yaml", cases);
}

Test(spec_errors, batches_must_multiply)
{
    static const struct refusal cases[] = {
        {"model: {family: gpt2}\ntrain:\n  world: 8\n  effective_batch: 100\n",
         "s.yaml:4:20: train.effective_batch is 100, which world 8 cannot make, "
         "expected 96 or 104"},
        {"model: {family: gpt2}\ntrain: {effective_batch: 100, micro_batch: 3, accumulation: 4}\n",
         "s.yaml:2:26: train.effective_batch is 100, which micro_batch 3 x accumulation 4 x world "
         "1 cannot make, expected 12"},
        {"model: {family: gpt2}\ntrain: {effective_batch: 100, micro_batch: [3, 7], "
         "effective_batch_tolerance: 0.5%}\n",
         "s.yaml:2:26: train.effective_batch is 100, which any micro_batch of the list x world 1 "
         "cannot make within 0.5 %, expected 99 or 102"},
        {"model: {family: gpt2}\ntrain: {accumulation: 2, accumulation_schedule: {0: 4}}\n",
         "s.yaml:2:8: train.accumulation is given with train.accumulation_schedule, expected one of them"},
        {"model: {family: gpt2}\ntrain: {accumulation_schedule: {0: 4, 8: 2, 4: 1}}\n",
         "s.yaml:2:45: train.accumulation_schedule has epoch 4 behind epoch 8, expected increasing "
         "epochs"},
        {"model: {family: gpt2}\ntrain: {accumulation_schedule: {0: 0}}\n",
         "s.yaml:2:36: train.accumulation_schedule is '0', expected an integer from 1 to 1048576"},
        {"model: {family: gpt2}\ntrain: {accumulation_schedule: [4, 2]}\n",
         "s.yaml:2:32: train.accumulation_schedule is a list, expected a mapping from epoch to "
         "accumulation such as "
         "{0: 4, 4: 2, 8: 1}, or null"},
    };
    CHECK_ALL("s.yaml", cases);
}

Test(spec_errors, lora_names_modules_of_the_family)
{
    static const struct refusal cases[] = {
        {"model: {family: gpt2}\ntrain: {lora: {r: 4, targets: [q_proj]}}\n",
         "s.yaml:2:31: train.lora.targets has 'q_proj', expected linear modules of gpt2: c_attn, "
         "c_proj, c_fc"},
        {"model: {family: opt}\ntrain: {lora: {r: 4, targets: [project_in]}}\n",
         "s.yaml:2:31: train.lora.targets has 'project_in', expected linear modules of opt: "
         "q_proj, "
         "k_proj, v_proj, out_proj, fc1, fc2"},
        {"model: {family: phi3}\ntrain: {lora: {r: 4}}\n",
         "s.yaml:2:15: train.lora has no targets and peft no default for phi3, expected module names, or all-linear"},
        {"model: {family: gpt2}\ntrain: {lora: {targets: [c_attn]}}\n",
         "s.yaml:2:15: train.lora has no r, expected the adapters' rank"},
        {"model: {family: gpt2}\ntrain: {lora: all}\n",
         "s.yaml:2:15: train.lora is 'all', expected a mapping, or a text such as "
         "r=16,targets=q_proj+v_proj,dropout=0"},
    };
    CHECK_ALL("s.yaml", cases);
}

/* --- models that are not for us --------------------------------------------------------------- */

Test(spec_errors, encoders_have_limits_of_their_own)
{
    static const struct refusal cases[] = {
        {"model: {family: llama, task: classification, num_labels: 0}\n",
         "s.yaml:1:58: model.num_labels is '0', expected an integer from 1 to 16777216"},
        {"model: {family: llama, task: masked-lm}\n",
         "s.yaml:1:30: task is masked-lm, expected of llama: causal-lm, classification"},
        {"model: {family: granite, task: classification}\n",
         "s.yaml:1:26: unknown key model.task for granite, expected a key of its config.json"},
        {"model: {family: roberta, max_position_embeddings: 514}\ndata: {seq: 513}\n",
         "s.yaml:2:13: data.seq is 513, expected at most max_position_embeddings - pad_token_id - 1 = 512: roberta "
         "has learned positions"},
        {"model: {family: bert}\ntrain: {quantization: fp4, lora: {r: 8}}\n",
         "s.yaml:2:23: train.quantization is fp4, expected none for the encoder bert" RUN_IT},
        {"model: {family: llama}\ndata: {packing: yes, padding: yes}\n",
         "s.yaml:2:31: data.padding is yes and data.packing yes, expected one of them: transformers does not look for "
         "documents in rows that come with an attention mask"},
        {"model: {family: vit}\ndata: {padding: yes}\n",
         "s.yaml:2:17: data.padding is yes, expected no for the images of vit"},
    };
    CHECK_ALL("s.yaml", cases);
}

Test(spec_errors, one_row_has_position_ids_and_no_padding)
{
    static const struct refusal cases[] = {
        {"model: {family: bert}\ndata: {packing: one-row}\n",
         "s.yaml:2:17: data.packing is one-row, expected no for bert, which is given no position ids"},
        {"model: {family: bloom}\ndata: {packing: one-row}\n",
         "s.yaml:2:17: data.packing is one-row, expected no for bloom, which is given no position ids"},
        {"model: {family: llama}\ndata: {packing: one-row, padding: yes}\n",
         "s.yaml:2:17: data.packing is one-row, in which nothing is padded, and data.padding is yes, expected one of "
         "them"},
        {"model: {family: llama}\ndata: {packing: yes, documents: 2}\n",
         "s.yaml:2:17: data.documents is 2 and data.packing is yes, expected one-row"},
        {"model: {family: llama}\ndata: {packing: one-row, documents: 65, seq: [128, 64]}\n",
         "s.yaml:2:17: data.documents is 65, expected at most one for each of 64 tokens"},
    };
    CHECK_ALL("s.yaml", cases);
}

Test(spec_errors, bloom_has_no_sdpa)
{
    static const struct refusal cases[] = {
        {"model: {family: bloom}\ntrain: {attention: [eager, sdpa]}\n",
         "s.yaml:2:20: train.attention is sdpa, expected eager, transformers' own for bloom"},
    };
    CHECK_ALL("s.yaml", cases);
}

Test(spec_errors, flash_attention_2_computes_in_16_bits_and_not_on_packed_rows)
{
#define FLASH2 "\ntrain: {attention: [sdpa, flash_attention_2], precision: "
    static const struct refusal cases[] = {
        {"model: {family: gpt2}" FLASH2 "[bf16, fp32]}\n",
         "s.yaml:2:20: train.attention is flash_attention_2, which computes in 16 bits only, and "
         "train.precision is fp32, expected bf16-mixed (autocast over the same weights), fp16-mixed, "
         "bf16 or fp16"},
        {"model: {family: gpt2}" FLASH2 "bf16}\ndata: {packing: yes}\n",
         "s.yaml:2:20: train.attention is flash_attention_2 and data.packing is yes, whose rows of several documents "
         "are not supported, expected no or one-row, or sdpa (plimsoll exec runs the training script as it is)"},
        {"model: {family: gpt2}" FLASH2 "bf16, transformers: 5.24}\ndata: {packing: one-row}\n",
         "s.yaml:2:20: train.attention is flash_attention_2 and data.packing is one-row, which is not supported for "
         "train.transformers 5.24, expected 5.17"},
        {"model: {family: llama, head_dim: 264}" FLASH2 "bf16}\n",
         "s.yaml:2:20: train.attention is flash_attention_2, which takes heads of at most 256, and "
         "this model's have 264, expected sdpa"},
        {"model: {family: gemma2, attention_dropout: 0.1}" FLASH2 "bf16}\n",
         "s.yaml:2:20: train.attention is flash_attention_2, which refuses softcapping with attention "
         "dropout, and the model has both, expected sdpa or eager"},
        {"model: {family: vit}" FLASH2 "bf16}\n",
         "s.yaml:2:20: train.attention is flash_attention_2, which is not supported for vit, expected sdpa or eager "
         "(plimsoll exec runs the training script as it is)"},
    };
#undef FLASH2
    CHECK_ALL("s.yaml", cases);
}

Test(spec_errors, liger_is_known_for_some)
{
    static const struct refusal cases[] = {
        {"model: {family: gpt2}\ntrain: {liger: true, liger_kernels: {loss: fused_linear_cross_entropy}}\n",
         "s.yaml:2:16: train.liger_kernels.loss is fused_linear_cross_entropy, which Liger does not have for gpt2, "
         "expected auto"},
        {"model: {family: granite}\ntrain: {liger: true, liger_kernels: {loss: fused_linear_cross_entropy}}\n",
         "s.yaml:2:16: train.liger_kernels.loss is fused_linear_cross_entropy, which Liger does not have for granite, "
         "expected auto"},
        {"model: {family: mixtral}\ntrain: {liger: true}\n",
         "s.yaml:2:16: train.liger is true, and Liger's kernels for the experts of mixtral are not supported, "
         "expected train.liger_kernels.glu false (plimsoll exec runs the training script as it is)"},
        {"model: {family: nemotron, num_key_value_heads: 8}\ntrain: {liger: true}\n",
         "s.yaml:2:16: train.liger is true, and Liger's kernels for the activation of nemotron are not supported, "
         "expected train.liger_kernels.glu false (plimsoll exec runs the training script as it is)"},
        {"model: {family: llama, hidden_act: gelu}\ntrain: {liger: true}\n",
         "s.yaml:2:16: train.liger is true, and Liger's SwiGLU wants the activation silu"},
        {"model: {family: llama}\ntrain: {liger: true, sharding: [ddp, fsdp]}\n",
         "s.yaml:2:16: train.liger is true and train.sharding is fsdp, which is supported with train.loop trainer or "
         "one of TRL's, expected ddp or none"},
    };
    CHECK_ALL("s.yaml", cases);
}

Test(spec_errors, what_trainer_does_otherwise_with_zero)
{
    static const struct refusal cases[] = {
        {"model: {family: llama}\ntrain: {loop: trainer, world: 2, sharding: [ddp, zero2], precision: bf16}\n",
         "s.yaml:2:69: train.precision is bf16 and train.loop trainer with ZeRO, which is not supported, expected "
         "bf16-mixed: Trainer's bf16=True, with which DeepSpeed computes in it"},
    };
    CHECK_ALL("s.yaml", cases);
}

Test(spec_errors, other_models_are_named)
{
    static const struct refusal cases[] = {
        {"{\"model_type\": \"dbrx\"}",
         "config.json:1:16: model_type dbrx (a mixture of experts) is not supported, expected one of "
         "" FAMILIES RUN_IT},
        {"{\"model_type\": \"roformer\"}",
         "config.json:1:16: model_type roformer (an encoder) is not supported, expected one of " FAMILIES RUN_IT},
        {"{\"model_type\": \"mamba\"}",
         "config.json:1:16: model_type mamba (a state-space model) is not supported, expected one of "
         "" FAMILIES RUN_IT},
        {"{\"model_type\": \"lama\"}", "config.json:1:16: model_type 'lama' is not known (did you "
                                       "mean llama?), expected one of " FAMILIES RUN_IT},
        {"{\"vocab_size\": 3}",
         "config.json:1:1: this config.json has no model_type, expected one of " FAMILIES},
    };
    CHECK_ALL("config.json", cases);
}

Test(spec_errors, what_would_make_the_answer_wrong_is_refused)
{
    static const struct refusal cases[] = {
        {"{\"model_type\": \"llama\", \"quantization_config\": {\"bits\": 4}}",
         "config.json:1:48: quantization_config: its weights are stored in other types than they "
         "are trained in, expected bitsandbytes in 4 or 8 bits, or a config.json without it" RUN_IT},
        {"{\"model_type\": \"llama\", \"quantization_config\": {\"quant_method\": \"bitsandbytes\", "
         "\"load_in_4bit\": true, \"llm_int8_skip_modules\": [\"lm_head\", \"down_proj\"]}}",
         "config.json:1:140: quantization_config.llm_int8_skip_modules: modules that are not quantised are not "
         "supported, expected lm_head alone" RUN_IT},
        {"{\"model_type\": \"llama\", \"attn_implementation\": \"flex_attention\"}",
         "config.json:1:48: attn_implementation is 'flex_attention', expected sdpa, eager or flash_attention_2"},
        {"{\"model_type\": \"bert\", \"architectures\": [\"BertForSequenceClassification\"], \"problem_type\": "
         "\"multi_label_classification\"}",
         "config.json:1:92: problem_type: its loss is not supported, expected single_label_classification" RUN_IT},
        {"{\"model_type\": \"mixtral\", \"hidden_size\": 60, \"num_attention_heads\": 3, \"num_key_value_heads\": 1, "
         "\"dtype\": \"bfloat16\"}",
         "config.json:1:1: rows of 60 and 14336 numbers for experts: PyTorch multiplies experts by rows of whole 16 "
         "bytes, expected hidden_size and the width of an expert to be multiples of 8"},
        {"{\"model_type\": \"mixtral\", \"experts_implementation\": \"eager\"}",
         "config.json:1:53: experts_implementation: only grouped products of experts are supported, expected "
         "grouped_mm" RUN_IT},
        {"{\"model_type\": \"modernbert\", \"rope_parameters\": {\"full_attention\": {\"rope_type\": \"dynamic\"}}}",
         "config.json:1:82: rope_parameters.full_attention: frequencies that depend on the sequence length are not "
         "supported for these layers, expected another rope_type" RUN_IT},
        {"{\"model_type\": \"llama\", \"per_layer_config\": {\"3\": {\"hidden_size\": 4}}}",
         "config.json:1:45: per_layer_config: its layers differ, expected a config.json without "
         "it" RUN_IT},
        {"{\"model_type\": \"phi3\", \"auto_map\": {\"AutoConfig\": \"x.Y\"}}",
         "config.json:1:36: auto_map: this model brings its own code, expected transformers' own "
         "class (to plan it as that, "
         "write a spec with model: {hf: FILE, family: NAME}; plimsoll exec runs any training "
         "program)"},
        {"{\"model_type\": \"gpt2\", \"add_cross_attention\": true}",
         "config.json:1:47: add_cross_attention: cross-attention is not supported, expected false" RUN_IT},
        {"{\"model_type\": \"gemma2\", \"use_bidirectional_attention\": true}",
         "config.json:1:57: use_bidirectional_attention: a decoder's bidirectional attention is not supported, "
         "expected false" RUN_IT},
        {"{\"model_type\": \"llama\", \"is_causal\": false}",
         "config.json:1:38: is_causal: a decoder's bidirectional attention is not supported, expected true" RUN_IT},
        {"{\"model_type\": \"stablelm\", \"qk_layernorm\": true}", "config.json:1:44: qk_layernorm: separate norms "
                                                                   "for each head are not supported, expected "
                                                                   "false" RUN_IT},
        {"{\"model_type\": \"bloom\", \"slow_but_exact\": true}",
         "config.json:1:43: slow_but_exact: bloom's sliced projections are not supported, expected false" RUN_IT},
        {"{\"model_type\": \"llama\", \"architectures\": [\"LlamaForTokenClassification\"]}",
         "config.json:1:43: architectures names LlamaForTokenClassification, expected a causal "
         "language model or a sequence classification (to plan it as one, write a spec with model: "
         "{hf: FILE, family: NAME}; plimsoll exec runs any training program)"},
        {"{\"model_type\": \"bert\", \"architectures\": [\"BertForMultipleChoice\"]}",
         "config.json:1:42: architectures names BertForMultipleChoice, expected a masked language model, a "
         "classification of sequences or of tokens, or question answering (to plan it as one, write a spec with "
         "model: {hf: FILE, family: NAME, task: TASK}; plimsoll exec runs any training program)"},
        {"{\"model_type\": \"bert\", \"is_decoder\": true}",
         "config.json:1:38: is_decoder: an encoder's causal attention is not supported, expected false" RUN_IT},
        {"{\"model_type\": \"bert\", \"chunk_size_feed_forward\": 64}",
         "config.json:1:51: chunk_size_feed_forward: chunked MLPs are not supported, expected 0" RUN_IT},
        {"{\"model_type\": \"modernbert\", \"sparse_prediction\": true}",
         "config.json:1:51: sparse_prediction: how many tokens the head sees depends on their "
         "values, expected false" RUN_IT},
        {"{\"model_type\": \"qwen3_moe\", \"mlp_only_layers\": [0]}",
         "config.json:1:48: mlp_only_layers: layers without experts but by decoder_sparse_step are not supported, "
         "expected a config.json without it" RUN_IT},
        {"{\"model_type\": \"qwen3_next\", \"mlp_only_layers\": [2]}",
         "config.json:1:49: mlp_only_layers: layers without experts but by decoder_sparse_step are not supported, "
         "expected a config.json without it" RUN_IT},
        {"{\"model_type\": \"olmoe\", \"output_router_logits\": true}",
         "config.json:1:49: output_router_logits: the load-balancing loss is not supported, expected false" RUN_IT},
        {"{\"model_type\": \"mixtral\", \"output_router_logits\": true}",
         "config.json:1:51: output_router_logits: the load-balancing loss is not supported, expected false" RUN_IT},
        {"{\"model_type\": \"mixtral\", \"router_jitter_noise\": 0.1}",
         "config.json:1:50: router_jitter_noise: router noise is not supported, expected 0" RUN_IT},
    };
    CHECK_ALL("config.json", cases);
}

Test(spec_errors, experts_have_limits_of_their_own)
{
    static const struct refusal cases[] = {
        {"model: {family: mixtral, num_experts_per_tok: 9}\n",
         "s.yaml:1:47: num_experts_per_tok is 9, expected at most num_local_experts = 8"},
        {"model: {family: gpt_oss}\ntrain: {precision: fp16}\n",
         "s.yaml:2:8: train.precision is fp16, in which transformers keeps the norms of gpt_oss in fp32: that is not "
         "supported, expected bf16 or fp32" RUN_IT},
    };
    CHECK_ALL("s.yaml", cases);
}

Test(spec_errors, a_family_does_not_rename_a_known_model)
{
    spec_file("m.json", "{\"model_type\": \"mistral\"}");
    spec_file("x.json", "{\"model_type\": \"dbrx\"}");
    cr_expect(eq(
        str, (char *)spec_refusal("s.yaml", "model: {hf: m.json, family: llama}\n"),
        "m.json:1:16: model_type is mistral, but the spec says family llama, expected the same"));
    cr_expect(eq(str, (char *)spec_refusal("s.yaml", "model: {hf: x.json, family: mistral}\n"),
                 "x.json:1:16: model_type dbrx (a mixture of experts) is not supported, expected one of "
                 "" FAMILIES RUN_IT));
}

/* --- the command line ------------------------------------------------------------------------- */

Test(spec_errors, settings_name_their_key)
{
    static const struct {
        const char *key, *value, *line;
    } cases[] = {
        {"train.world", "0", "train.world is '0', expected an integer from 1 to 1048576"},
        {"train.wrld", "2", "unknown key train.wrld, expected the nearest known key train.world"},
        {"model.n_layr", "2",
         "unknown key model.n_layr for gpt2, expected the nearest known key n_layer"},
        {"model.family", "opt", "model.family cannot be changed, expected it in the spec file"},
        {"model", "{family: opt}",
         "model is a section, expected one of its keys, such as model.vocab_size"},
        {"train.clip", "", "train.clip has no value, expected one"},
        {"train.precision", "bf16,fp8",
         "train.precision is 'fp8', expected fp32, tf32, bf16-mixed, fp16-mixed, bf16 or fp16, or "
         "a list of them, or null"},
        {"model.dtype", "float8", "model.dtype is 'float8', expected auto, float32, bfloat16 or "
                                  "float16"},
        {"train.lora", "r=4,rank=3",
         "train.lora is 'r=4,rank=3', expected a mapping, or a text such as "
         "r=16,targets=q_proj+v_proj,dropout=0"},
        {"train.lora", "r=4,dropout=0,r=8", "train.lora is 'r=4,dropout=0,r=8', expected each of its keys once"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct plim_spec spec;
        struct plim_error err = PLIM_ERROR_INIT;
        char message[1024];
        spec_load_text("s.yaml", "model: {family: gpt2}\n", &spec);
        cr_expect(eq(int, plim_spec_set(&spec, cases[i].key, cases[i].value, &err), PLIM_SPEC),
                  "%s", cases[i].key);
        plim_error_format(&err, message, sizeof(message));
        cr_expect(eq(str, message, (char *)cases[i].line));
    }
}

Test(spec_errors, settings_that_disagree_are_seen_when_resolved)
{
    struct plim_spec spec;
    struct plim_error err = PLIM_ERROR_INIT;
    spec_load_text("s.yaml", "model: {family: gpt2}\n", &spec);
    cr_assert(eq(int, plim_spec_set(&spec, "data.seq", "2048", &err), PLIM_OK));
    cr_expect(eq(int, plim_spec_resolve(&spec, &err), PLIM_SPEC));
    cr_expect(
        eq(str, err.text,
           "data.seq is 2048, expected at most n_positions = 1024: gpt2 has learned positions"));
}
