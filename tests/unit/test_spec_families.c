/* What is refused for single families, in addition to what is refused for all. */
#include "support/spec_files.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <string.h>

static const struct refusal {
    const char *text, *line;
} of_specs[] =
    {
        {"model: {family: lfm2, num_hidden_layers: 2, full_attn_idxs: []}\n",
         "s.yaml:1:8: all layers are convolutions, expected one of full_attention: transformers "
         "fails without"},
        {"model: {family: lfm2, full_attn_idxs: [1, -1]}\n",
         "s.yaml:1:43: model.full_attn_idxs is '-1', expected an integer from 0 to 1023"},
        {"model: {family: lfm2, full_attn_idxs: 2}\n",
         "s.yaml:1:39: model.full_attn_idxs is '2', expected a list of layers, counted from 0"},
        {"model: {family: lfm2, layer_types: [linear_attention]}\n",
         "s.yaml:1:37: model.layer_types is 'linear_attention', expected full_attention or conv"},
        {"model: {family: lfm2, layer_types: conv}\n",
         "s.yaml:1:36: model.layer_types is 'conv', expected one of full_attention or conv for "
         "each layer"},
        {"model: {family: lfm2_moe}\n",
         "s.yaml:1:8: layer_types is missing, without which transformers fails to build lfm2_moe, "
         "expected conv or full_attention for each layer"},
        {"model: {family: lfm2_moe, num_hidden_layers: 2, full_attn_idxs: [1]}\n",
         "s.yaml:1:49: unknown key model.full_attn_idxs for lfm2_moe, expected a key of its "
         "config.json"},
        {"model: {family: afmoe}\ntrain: {lora: {r: 8, targets: all-linear}}\n",
         "s.yaml:1:17: train.lora of a router with afmoe is not supported (plimsoll exec runs any training program)"},
        {"model: {family: falcon, new_decoder_architecture: true, parallel_attn: false}\n",
         "s.yaml:1:72: parallel_attn is false beside new_decoder_architecture, expected true: "
         "transformers fails without"},
        {"model: {family: falcon, num_ln_in_parallel_attn: 2}\n",
         "s.yaml:1:50: num_ln_in_parallel_attn is 2 without new_decoder_architecture, expected 1 "
         "or null: transformers fails"},
        {"model: {family: falcon, num_attention_heads: 8, hidden_size: 64, multi_query: false, "
         "num_kv_heads: 2}\n",
         "s.yaml:1:100: num_kv_heads is 2 and num_attention_heads is 8 without multi_query, "
         "expected as many: transformers fails"},
        {"model: {family: granitemoe}\ntrain: {loop: trl-sft}\n",
         "s.yaml:2:15: train.loop is trl-sft and model.router_aux_loss_coef is 0.001, with which "
         "TRL fails for granitemoe ('GraniteMoeConfig' object has no attribute 'num_experts'), expected 0"},
        {"model: {family: lfm2}\ntrain: {causal_conv1d: true}\n",
         "s.yaml:2:24: train.causal_conv1d is true, and the package's convolution of lfm2 is not supported, expected "
         "false (plimsoll exec runs any training program)"},
        {"model: {family: ernie4_5_moe, num_hidden_layers: 2, moe_layer_start_index: 2}\n",
         "s.yaml:1:8: no layer has experts by moe_layer_start_index, moe_layer_end_index and "
         "moe_layer_interval, expected one"},
        {"model: {family: ernie4_5_moe}\ntrain: {world: 2, sharding: fsdp}\n",
         "s.yaml:1:17: a plain loop with ZeRO or FSDP2 with ernie4_5_moe is not supported (plimsoll exec runs any "
         "training program)"},
        {"model: {family: granitemoehybrid}\ntrain: {causal_conv1d: true}\n",
         "s.yaml:2:24: train.causal_conv1d is true, and the package's convolution of granitemoehybrid is not "
         "supported, expected false (plimsoll exec runs any training program)"},
        {"model: {family: falcon_h1}\ntrain: {lora: {r: 8, targets: all-linear}}\n",
         "s.yaml:2:31: train.lora.targets has out_proj, which peft refuses for falcon_h1 and which all-linear and "
         "regular expressions may mean, too, expected names without it"},
        {"model: {family: falcon_h1}\ntrain: {lora: {r: 8, targets: [q_proj, out_proj]}}\n",
         "s.yaml:2:31: train.lora.targets has out_proj, which peft refuses for falcon_h1 and which all-linear and "
         "regular expressions may mean, too, expected names without it"},
        {"model: {family: nemotron_h, hybrid_override_pattern: M-}\ntrain: {lora: {r: 8, targets: [out_proj]}}\n",
         "s.yaml:2:31: train.lora.targets has out_proj, which peft refuses for nemotron_h and which all-linear and "
         "regular expressions may mean, too, expected names without it"},
        {"model: {family: nemotron_h, hybrid_override_pattern: M-, num_hidden_layers: 3}\n",
         "s.yaml:1:54: the pattern of layers is M-, expected num_hidden_layers = 3 letters"},
        {"model: {family: granitemoehybrid}\ntrain: {loop: trl-sft}\n",
         "s.yaml:1:17: trl-sft with granitemoehybrid is not supported (plimsoll exec runs any training program)"},
        {"model: {family: llama, hidden_act: xielu}\n",
         "s.yaml:1:36: the activation function is xielu, which has parameters and is supported for apertus alone, "
         "expected another one"},
},
  of_configs[] = {
      {"{\"model_type\": \"falcon\", \"alibi\": true}",
       "config.json:1:35: alibi: falcon's alibi is not supported, expected false (plimsoll exec runs any training "
       "program)"},
      {"{\"model_type\": \"lfm2\", \"conv_bias\": true}",
       "config.json:1:37: conv_bias: biases of convolutions are not supported, expected false (plimsoll exec runs "
       "any training program)"},
      {"{\"model_type\": \"granitemoehybrid\", \"num_hidden_layers\": 3, \"layer_types\": [\"attention\"]}",
       "config.json:1:75: layer_types has 1 entries, expected num_hidden_layers = 3"},
      {"{\"model_type\": \"granitemoehybrid\", \"num_hidden_layers\": 1, \"layer_types\": [\"conv\"]}",
       "config.json:1:76: layer_types is 'conv', expected full_attention, linear_attention, attention or mamba"},
      {"{\"model_type\": \"nemotron_h\", \"hybrid_override_pattern\": \"MEX\"}",
       "config.json:1:57: hybrid_override_pattern is 'MEX', expected a string of M, *, - and E, one letter for each "
       "layer"},
      {"{\"model_type\": \"nemotron_h\", \"hybrid_override_pattern\": \"M-\", \"tie_word_embeddings\": true}",
       "config.json:1:86: tie_word_embeddings: transformers makes a head of its own all the same, expected false "
       "(plimsoll exec runs any training program)"},
      {"{\"model_type\": \"nemotron_h\", \"num_local_experts\": 0}",
       "config.json:1:51: n_routed_experts is 0, and a letter E of the pattern of layers ME*- is experts, expected 1 "
       "or more"},
      {"{\"model_type\": \"nemotron_h\", \"moe_latent_size\": 1024}",
       "config.json:1:49: moe_latent_size: experts of another width than hidden_size are not supported, expected a "
       "config.json without it (plimsoll exec runs any training program)"},
      {"{\"model_type\": \"nemotron_h\", \"hybrid_override_pattern\": \"M-\", \"n_groups\": 3}",
       "config.json:1:75: mamba_num_heads is 128 and n_groups is 3, expected groups that divide it"},
      {"{\"model_type\": \"granitemoehybrid\", \"mamba_n_heads\": 96}",
       "config.json:1:53: mamba_n_heads is 96 and mamba_d_head 85, expected heads as wide as mamba_expand * "
       "hidden_size = 8192 together"},
      {"{\"model_type\": \"granitemoehybrid\", \"mamba_n_groups\": 3}",
       "config.json:1:54: mamba_n_heads is 128 and mamba_n_groups is 3, expected groups that divide it"},
      {"{\"model_type\": \"granitemoehybrid\", \"hidden_act\": \"gelu\"}",
       "config.json:1:50: hidden_act is another function than silu, which is not supported beside Mamba-2 layers, "
       "expected silu"},
      {"{\"model_type\": \"granitemoehybrid\", \"num_experts_per_tok\": 0}",
       "config.json:1:59: num_experts_per_tok is 0 for 8 experts, expected 1 or more"},
      {"{\"model_type\": \"granitemoehybrid\", \"output_router_logits\": true}",
       "config.json:1:60: output_router_logits: the load-balancing loss is not supported, expected false (plimsoll "
       "exec runs any training program)"},
};

static void check(const char *name, const struct refusal *cases, size_t count)
{
    for (size_t i = 0; i < count; i++)
        cr_expect(eq(str, (char *)spec_refusal(name, cases[i].text), (char *)cases[i].line), "%s",
                  cases[i].text);
}

Test(spec_families, specs_are_refused)
{
    check("s.yaml", of_specs, sizeof(of_specs) / sizeof(of_specs[0]));
}

Test(spec_families, configs_are_refused)
{
    check("config.json", of_configs, sizeof(of_configs) / sizeof(of_configs[0]));
}

/* full_attn_idxs names the layers that attend, and gives way to layer_types. */
Test(spec_families, convolutions_stand_where_no_layer_attends)
{
    struct plim_spec s;
    spec_load_text(
        "config.json",
        "{\"model_type\": \"lfm2\", \"num_hidden_layers\": 4, \"full_attn_idxs\": [1, 3, 9]}", &s);
    bool expected[] = {true, false, true, false, false};
    cr_expect(eq(int, memcmp(s.model.layer_is_linear, expected, sizeof(expected)), 0));
    spec_load_text("config.json",
                   "{\"model_type\": \"lfm2\", \"num_hidden_layers\": 2, \"full_attn_idxs\": [1], "
                   "\"layer_types\": [\"full_attention\", \"conv\"]}",
                   &s);
    cr_expect(eq(u8, s.model.layer_is_linear[0], false));
    cr_expect(eq(u8, s.model.layer_is_linear[1], true));
}

/* As nvidia publishes it, and as transformers 5.17 saves it, whose list takes precedence. */
Test(spec_families, a_pattern_tells_what_layers_are)
{
    struct plim_spec s;
    spec_load_text("config.json", "{\"model_type\": \"nemotron_h\", \"num_hidden_layers\": 4, "
                                  "\"hybrid_override_pattern\": \"M-*M\"}", &s);
    cr_expect(eq(str, s.model.layer_pattern, "M-*M"));
    spec_load_text("config.json", "{\"model_type\": \"nemotron_h\", \"layers_block_type\": [\"mlp\", \"mamba\", "
                                  "\"full_attention\"], \"hybrid_override_pattern\": \"M-*M\"}", &s);
    cr_expect(eq(str, s.model.layer_pattern, "-M*"));
    cr_expect(eq(i64, s.model.layers, 3));
    bool expected[] = {false, true, false, false};
    cr_expect(eq(int, memcmp(s.model.layer_is_linear, expected, sizeof(expected)), 0));
}

/* Older configs call layers mamba and attention, and their list layers_block_type; published ones without experts have
 * num_experts_per_tok 0. */
Test(spec_families, mamba_layers_have_older_names)
{
    struct plim_spec s;
    spec_load_text("config.json",
                   "{\"model_type\": \"granitemoehybrid\", \"num_hidden_layers\": 3, \"mamba_d_head\": \"auto\", "
                   "\"num_local_experts\": 0, \"num_experts_per_tok\": 0, \"position_embedding_type\": \"nope\", "
                   "\"layers_block_type\": [\"mamba\", \"attention\", \"linear_attention\"]}",
                   &s);
    bool expected[] = {true, false, true};
    cr_expect(eq(int, memcmp(s.model.layer_is_linear, expected, sizeof(expected)), 0));
    cr_expect(eq(i64, s.model.linear_value_dim, 64)); /* 2 * 4096 / 128 */
    cr_expect(eq(i64, s.model.experts_per_token, 0));
    cr_expect(eq(u8, s.model.layer_is_nope[1], true));
}
