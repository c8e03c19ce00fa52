/* The modules of models, with their names in transformers. */
#include "model.h"
#include "workloads/spec/family.h"
#include "workloads/spec/lora_modules.h"
#include <stdio.h>
#include <string.h>

#define EXPERTS                                                                                    \
    BLOCK("mlp.experts.gate_up_proj", experts_gate_up, PARAMETER),                                    \
        BLOCK("mlp.experts.down_proj", experts_down, PARAMETER)
#define PROJECTIONS                                                                                \
    BLOCK("self_attn.q_proj", q, LINEAR), BLOCK("self_attn.k_proj", k, LINEAR),                    \
        BLOCK("self_attn.v_proj", v, LINEAR), BLOCK("self_attn.o_proj", o, LINEAR)
#define ATTENTION                                                                                  \
    PROJECTIONS, BLOCK("self_attn.q_norm", q_norm, NORM), BLOCK("self_attn.k_norm", k_norm, NORM)
#define MLP                                                                                        \
    BLOCK("mlp.gate_proj", gate, LINEAR), BLOCK("mlp.up_proj", up, LINEAR),                        \
        BLOCK("mlp.down_proj", down, LINEAR)
#define GATED_MLP ATTENTION, MLP
#define TWO_NORMS                                                                                  \
    BLOCK("input_layernorm", norm[0], NORM), BLOCK("post_attention_layernorm", norm[2], NORM)
/* Experts and a shared expert, which processes every token. In a layer without experts, the MLP is listed as the shared
 * expert's linears (find_other_name()). */
#define SHARED_EXPERT                                                                              \
    BLOCK("mlp.gate", router, WEIGHT), EXPERTS,                                                    \
        BLOCK("mlp.shared_expert.gate_proj", gate, LINEAR),                                        \
        BLOCK("mlp.shared_expert.up_proj", up, LINEAR),                                            \
        BLOCK("mlp.shared_expert.down_proj", down, LINEAR),                                        \
        BLOCK("mlp.shared_expert_gate", shared_gate, LINEAR)
#define SHARED_MLP                                                                                 \
    BLOCK("mlp.shared_experts.gate_proj", gate, LINEAR),                                           \
        BLOCK("mlp.shared_experts.up_proj", up, LINEAR),                                           \
        BLOCK("mlp.shared_experts.down_proj", down, LINEAR)
/* The same for shared experts after the other experts and the router, without a gate. */
#define SHARED_EXPERTS                                                                             \
    EXPERTS, BLOCK("mlp.gate", router, WEIGHT),                                                    \
        BLOCK("mlp.gate.e_score_correction_bias", router_correction, PARAMETER),                   \
        SHARED_MLP
/* The same for ernie4_5_moe: the router and its correction come first. */
#define CORRECTED_EXPERTS                                                                          \
    BLOCK("mlp.gate", router, WEIGHT),                                                             \
        BLOCK("mlp.gate.moe_statics.e_score_correction_bias", router_correction, PARAMETER), EXPERTS, \
        SHARED_MLP
#define GRANITEMOE_EXPERTS                                                                         \
    BLOCK("block_sparse_moe.router", router, WEIGHT),                                              \
        BLOCK("block_sparse_moe.experts.gate_up_proj", experts_gate_up, PARAMETER),                \
        BLOCK("block_sparse_moe.experts.down_proj", experts_down, PARAMETER)
#define LINEAR_ATTENTION                                                                           \
    BLOCK("linear_attn.dt_bias", dt_bias, PARAMETER), BLOCK("linear_attn.A_log", a_log, PARAMETER), \
        BLOCK("linear_attn.conv1d", conv, WEIGHT), BLOCK("linear_attn.norm", linear_norm, NORM),   \
        BLOCK("linear_attn.out_proj", linear_out, LINEAR),                                         \
        BLOCK("linear_attn.in_proj_qkv", in_qkv, LINEAR),                                          \
        BLOCK("linear_attn.in_proj_z", in_z, LINEAR), BLOCK("linear_attn.in_proj_b", in_b, LINEAR), \
        BLOCK("linear_attn.in_proj_a", in_a, LINEAR)

/* --- modules of blocks ------------------------------------------------------------------------ */

static const struct module llama_block[] = {GATED_MLP,
                                            TWO_NORMS,
                                            {0}};
static const struct module gemma_block[] = {GATED_MLP,
                                            BLOCK("input_layernorm", norm[0], NORM),
                                            BLOCK("post_attention_layernorm", norm[1], NORM),
                                            BLOCK("pre_feedforward_layernorm", norm[2], NORM),
                                            BLOCK("post_feedforward_layernorm", norm[3], NORM),
                                            {0}};
static const struct module gemma4_block[] = {
    BLOCK("self_attn.q_proj", q, LINEAR), BLOCK("self_attn.q_norm", q_norm, NORM),
    BLOCK("self_attn.k_norm", k_norm, NORM), BLOCK("self_attn.k_proj", k, LINEAR),
    BLOCK("self_attn.v_proj", v, LINEAR), BLOCK("self_attn.o_proj", o, LINEAR), MLP,
    BLOCK("input_layernorm", norm[0], NORM), BLOCK("post_attention_layernorm", norm[1], NORM),
    BLOCK("pre_feedforward_layernorm", norm[2], NORM), BLOCK("post_feedforward_layernorm", norm[3], NORM),
    BLOCK("layer_scalar", scalar, PARAMETER), BLOCK("per_layer_input_gate", per_layer_gate, LINEAR),
    BLOCK("per_layer_projection", per_layer_out, LINEAR), BLOCK("post_per_layer_input_norm", per_layer_norm, NORM),
    BLOCK("router.scale", router_scale, PARAMETER), BLOCK("router.per_expert_scale", expert_scale, PARAMETER),
    BLOCK("router.proj", router_proj, LINEAR), BLOCK("experts.gate_up_proj", experts_gate_up, PARAMETER),
    BLOCK("experts.down_proj", experts_down, PARAMETER), BLOCK("post_feedforward_layernorm_1", expert_norm[0], NORM),
    BLOCK("post_feedforward_layernorm_2", expert_norm[1], NORM),
    BLOCK("pre_feedforward_layernorm_2", expert_norm[2], NORM), {0}};
static const struct module olmo2_block[] = {GATED_MLP,
                                            BLOCK("post_attention_layernorm", norm[1], NORM),
                                            BLOCK("post_feedforward_layernorm", norm[3], NORM),
                                            {0}};
static const struct module starcoder2_block[] = {ATTENTION,
                                                 BLOCK("mlp.c_fc", fc1, LINEAR),
                                                 BLOCK("mlp.c_proj", fc2, LINEAR),
                                                 TWO_NORMS,
                                                 {0}};
static const struct module arcee_block[] = {ATTENTION,
                                            BLOCK("mlp.up_proj", fc1, LINEAR),
                                            BLOCK("mlp.down_proj", fc2, LINEAR),
                                            TWO_NORMS,
                                            {0}};
static const struct module apertus_block[] = {ATTENTION,
                                              BLOCK("mlp.up_proj", fc1, LINEAR),
                                              BLOCK("mlp.down_proj", fc2, LINEAR),
                                              BLOCK("mlp.act_fn.alpha_p", xielu[0], PARAMETER),
                                              BLOCK("mlp.act_fn.alpha_n", xielu[1], PARAMETER),
                                              BLOCK("mlp.act_fn.beta", xielu[2], PARAMETER),
                                              BLOCK("mlp.act_fn.eps", xielu[3], PARAMETER),
                                              BLOCK("attention_layernorm", norm[0], NORM),
                                              BLOCK("feedforward_layernorm", norm[2], NORM),
                                              {0}};
static const struct module hunyuan_block[] = {PROJECTIONS,
                                              BLOCK("self_attn.query_layernorm", q_norm, NORM),
                                              BLOCK("self_attn.key_layernorm", k_norm, NORM),
                                              MLP,
                                              TWO_NORMS,
                                              {0}};
static const struct module lfm2_block[] = {BLOCK("self_attn.q_proj", q, LINEAR),
                                           BLOCK("self_attn.k_proj", k, LINEAR),
                                           BLOCK("self_attn.v_proj", v, LINEAR),
                                           BLOCK("self_attn.out_proj", o, LINEAR),
                                           BLOCK("self_attn.q_layernorm", q_norm, NORM),
                                           BLOCK("self_attn.k_layernorm", k_norm, NORM),
                                           BLOCK("conv.conv", conv, WEIGHT),
                                           BLOCK("conv.in_proj", in_qkv, LINEAR),
                                           BLOCK("conv.out_proj", linear_out, LINEAR),
                                           BLOCK("feed_forward.w1", gate, LINEAR),
                                           BLOCK("feed_forward.w3", up, LINEAR),
                                           BLOCK("feed_forward.w2", down, LINEAR),
                                           BLOCK("feed_forward.experts.gate_up_proj", experts_gate_up, PARAMETER),
                                           BLOCK("feed_forward.experts.down_proj", experts_down, PARAMETER),
                                           BLOCK("feed_forward.gate", router, WEIGHT),
                                           BLOCK("feed_forward.expert_bias", router_correction, PARAMETER),
                                           BLOCK("operator_norm", norm[0], NORM),
                                           BLOCK("ffn_norm", norm[2], NORM),
                                           {0}};
static const struct module stablelm_block[] = {GATED_MLP,
                                               BLOCK("input_layernorm", norm[0], NORM),
                                               BLOCK("post_attention_layernorm", norm[1], NORM),
                                               {0}};
static const struct module glm_block[] = {ATTENTION,
                                          BLOCK("mlp.gate_up_proj", gate_up, LINEAR),
                                          BLOCK("mlp.down_proj", down, LINEAR),
                                          TWO_NORMS,
                                          BLOCK("post_self_attn_layernorm", norm[1], NORM),
                                          BLOCK("post_mlp_layernorm", norm[3], NORM),
                                          {0}};
static const struct module mixtral_block[] = {ATTENTION,
                                              BLOCK("mlp.gate", router, WEIGHT),
                                              EXPERTS,
                                              BLOCK("mlp.e_score_correction_bias", router_correction, PARAMETER),
                                              TWO_NORMS,
                                              {0}};
static const struct module afmoe_block[] = {ATTENTION,
                                            BLOCK("self_attn.gate_proj", attention_gate, LINEAR),
                                            BLOCK("input_layernorm", norm[0], NORM),
                                            BLOCK("post_attention_layernorm", norm[1], NORM),
                                            BLOCK("pre_mlp_layernorm", norm[2], NORM),
                                            BLOCK("post_mlp_layernorm", norm[3], NORM),
                                            BLOCK("mlp.expert_bias", router_correction, PARAMETER),
                                            BLOCK("mlp.router.gate", router_proj, LINEAR),
                                            SHARED_MLP,
                                            EXPERTS,
                                            {0}};
static const struct module granitemoe_block[] = {PROJECTIONS, TWO_NORMS, GRANITEMOE_EXPERTS, {0}};
static const struct module granitemoehybrid_block[] = {
    TWO_NORMS, GRANITEMOE_EXPERTS, BLOCK("shared_mlp.input_linear", gate_up, LINEAR),
    BLOCK("shared_mlp.output_linear", down, LINEAR), MAMBA("mamba"), PROJECTIONS, {0}};
static const struct module qwen2_moe_block[] = {ATTENTION,
                                                SHARED_EXPERT,
                                                TWO_NORMS,
                                                {0}};
static const struct module qwen3_moe_block[] = {GATED_MLP,
                                                EXPERTS,
                                                BLOCK("mlp.gate", router, WEIGHT),
                                                TWO_NORMS,
                                                {0}};
static const struct module glm4_moe_block[] = {ATTENTION,
                                               SHARED_EXPERTS,
                                               TWO_NORMS,
                                               {0}};
static const struct module ernie4_5_moe_block[] = {ATTENTION,
                                                   CORRECTED_EXPERTS,
                                                   TWO_NORMS,
                                                   {0}};
static const struct module deepseek_v3_block[] = {
    BLOCK("self_attn.q_proj", q, LINEAR),
    BLOCK("self_attn.q_a_proj", q_a, LINEAR),
    BLOCK("self_attn.q_a_layernorm", q_a_norm, NORM),
    BLOCK("self_attn.q_b_proj", q_b, LINEAR),
    BLOCK("self_attn.kv_a_proj_with_mqa", kv_a, LINEAR),
    BLOCK("self_attn.kv_a_layernorm", kv_a_norm, NORM),
    BLOCK("self_attn.kv_b_proj", kv_b, LINEAR),
    BLOCK("self_attn.o_proj", o, LINEAR),
    SHARED_EXPERTS,
    TWO_NORMS,
    {0}};
static const struct module gpt_oss_block[] = {BLOCK("self_attn.sinks", sinks, PARAMETER),
                                              ATTENTION,
                                              BLOCK("mlp.router", router, WEIGHT),
                                              BLOCK("mlp.router.bias", router_bias, PARAMETER),
                                              EXPERTS,
                                              BLOCK("mlp.experts.gate_up_proj_bias", experts_gate_up_bias, PARAMETER),
                                              BLOCK("mlp.experts.down_proj_bias", experts_down_bias, PARAMETER),
                                              TWO_NORMS,
                                              {0}};
static const struct module qwen3_5_block[] = {LINEAR_ATTENTION,
                                              GATED_MLP,
                                              TWO_NORMS,
                                              {0}};
static const struct module qwen3_5_moe_block[] = {LINEAR_ATTENTION,
                                                  ATTENTION,
                                                  SHARED_EXPERT,
                                                  TWO_NORMS,
                                                  {0}};
static const struct module qwen3_next_block[] = {BLOCK("linear_attn.dt_bias", dt_bias, PARAMETER),
                                                 BLOCK("linear_attn.A_log", a_log, PARAMETER),
                                                 BLOCK("linear_attn.conv1d", conv, WEIGHT),
                                                 BLOCK("linear_attn.in_proj_qkvz", in_qkv, LINEAR),
                                                 BLOCK("linear_attn.in_proj_ba", in_b, LINEAR),
                                                 BLOCK("linear_attn.norm", linear_norm, NORM),
                                                 BLOCK("linear_attn.out_proj", linear_out, LINEAR),
                                                 ATTENTION,
                                                 SHARED_EXPERT,
                                                 TWO_NORMS,
                                                 {0}};
static const struct module phi3_block[] = {BLOCK("self_attn.o_proj", o, LINEAR),
                                           BLOCK("self_attn.qkv_proj", qkv, LINEAR),
                                           BLOCK("mlp.gate_up_proj", gate_up, LINEAR),
                                           BLOCK("mlp.down_proj", down, LINEAR),
                                           TWO_NORMS,
                                           {0}};
static const struct module gpt2_block[] = {BLOCK("ln_1", norm[0], NORM),
                                           BLOCK("attn.c_attn", qkv, LINEAR),
                                           BLOCK("attn.c_proj", o, LINEAR),
                                           BLOCK("ln_2", norm[1], NORM),
                                           BLOCK("mlp.c_fc", fc1, LINEAR),
                                           BLOCK("mlp.c_proj", fc2, LINEAR),
                                           {0}};
static const struct module phi_block[] = {BLOCK("self_attn.q_proj", q, LINEAR),
                                          BLOCK("self_attn.k_proj", k, LINEAR),
                                          BLOCK("self_attn.v_proj", v, LINEAR),
                                          BLOCK("self_attn.dense", o, LINEAR),
                                          BLOCK("self_attn.q_layernorm", q_norm, NORM),
                                          BLOCK("self_attn.k_layernorm", k_norm, NORM),
                                          BLOCK("mlp.fc1", fc1, LINEAR),
                                          BLOCK("mlp.fc2", fc2, LINEAR),
                                          BLOCK("input_layernorm", norm[0], NORM),
                                          {0}};
static const struct module opt_block[] = {BLOCK("self_attn.k_proj", k, LINEAR),
                                          BLOCK("self_attn.v_proj", v, LINEAR),
                                          BLOCK("self_attn.q_proj", q, LINEAR),
                                          BLOCK("self_attn.out_proj", o, LINEAR),
                                          BLOCK("self_attn_layer_norm", norm[0], NORM),
                                          BLOCK("fc1", fc1, LINEAR),
                                          BLOCK("fc2", fc2, LINEAR),
                                          BLOCK("final_layer_norm", norm[1], NORM),
                                          {0}};
static const struct module neox_block[] = {BLOCK("input_layernorm", norm[0], NORM),
                                           BLOCK("post_attention_layernorm", norm[1], NORM),
                                           BLOCK("attention.query_key_value", qkv, LINEAR),
                                           BLOCK("attention.dense", o, LINEAR),
                                           BLOCK("mlp.dense_h_to_4h", fc1, LINEAR),
                                           BLOCK("mlp.dense_4h_to_h", fc2, LINEAR),
                                           {0}};
static const struct module bloom_block[] = {BLOCK("input_layernorm", norm[0], NORM),
                                            BLOCK("self_attention.query_key_value", qkv, LINEAR),
                                            BLOCK("self_attention.dense", o, LINEAR),
                                            BLOCK("post_attention_layernorm", norm[1], NORM),
                                            BLOCK("mlp.dense_h_to_4h", fc1, LINEAR),
                                            BLOCK("mlp.dense_4h_to_h", fc2, LINEAR),
                                            {0}};

static const struct module gptj_block[] = {BLOCK("ln_1", norm[0], NORM),
                                           BLOCK("attn.k_proj", k, LINEAR),
                                           BLOCK("attn.v_proj", v, LINEAR),
                                           BLOCK("attn.q_proj", q, LINEAR),
                                           BLOCK("attn.out_proj", o, LINEAR),
                                           BLOCK("mlp.fc_in", fc1, LINEAR),
                                           BLOCK("mlp.fc_out", fc2, LINEAR),
                                           {0}};
static const struct module falcon_block[] = {BLOCK("self_attention.query_key_value", qkv, LINEAR),
                                             BLOCK("self_attention.dense", o, LINEAR),
                                             BLOCK("mlp.dense_h_to_4h", fc1, LINEAR),
                                             BLOCK("mlp.dense_4h_to_h", fc2, LINEAR),
                                             BLOCK("post_attention_layernorm", norm[1], NORM),
                                             BLOCK("input_layernorm", norm[0], NORM),
                                             BLOCK("ln_attn", norm[2], NORM),
                                             BLOCK("ln_mlp", norm[3], NORM),
                                             {0}};
/* --- modules outside of the blocks ------------------------------------------------------------ */

static const struct module llama_model[] = {MODEL("model.embed_tokens", embedding, WEIGHT),
                                            BLOCKS("model.layers"),
                                            MODEL("model.norm", final_norm, NORM),
                                            MODEL("lm_head", head, HEAD),
                                            MODEL("score", head, CLASSIFIER),
                                            {0}};
static const struct module lfm2_model[] = {MODEL("model.embed_tokens", embedding, WEIGHT),
                                           BLOCKS("model.layers"),
                                           MODEL("model.embedding_norm", final_norm, NORM),
                                           MODEL("lm_head", head, HEAD),
                                           {0}};
#define GEMMA4_MODEL(text) \
    {MODEL(text ".embed_tokens", embedding, WEIGHT), BLOCKS(text ".layers"), MODEL(text ".norm", final_norm, NORM), \
     MODEL(text ".embed_tokens_per_layer", per_layer_embedding, WEIGHT), \
     MODEL(text ".per_layer_model_projection", per_layer_projection, LINEAR), \
     MODEL(text ".per_layer_projection_norm", per_layer_norm, NORM), MODEL("lm_head", head, HEAD), {0}}
static const struct module gemma4_text_model[] = GEMMA4_MODEL("model"),
                           gemma4_model[] = GEMMA4_MODEL("model.language_model");
static const struct module gpt2_model[] = {MODEL("transformer.wte", embedding, WEIGHT),
                                           MODEL("transformer.wpe", position_embedding, WEIGHT),
                                           BLOCKS("transformer.h"),
                                           MODEL("transformer.ln_f", final_norm, NORM),
                                           MODEL("lm_head", head, HEAD),
                                           MODEL("score", head, CLASSIFIER),
                                           {0}};
static const struct module phi_model[] = {MODEL("model.embed_tokens", embedding, WEIGHT),
                                          BLOCKS("model.layers"),
                                          MODEL("model.final_layernorm", final_norm, NORM),
                                          MODEL("lm_head", head, HEAD),
                                          MODEL("score", head, CLASSIFIER),
                                          {0}};
static const struct module opt_model[] = {
    MODEL("model.decoder.embed_tokens", embedding, WEIGHT),
    MODEL("model.decoder.embed_positions", position_embedding, WEIGHT),
    MODEL("model.decoder.project_out", project_out, LINEAR),
    MODEL("model.decoder.project_in", project_in, LINEAR),
    MODEL("model.decoder.final_layer_norm", final_norm, NORM),
    BLOCKS("model.decoder.layers"),
    MODEL("lm_head", head, HEAD),
    MODEL("score", head, CLASSIFIER),
    {0}};
static const struct module neox_model[] = {MODEL("gpt_neox.embed_in", embedding, WEIGHT),
                                           BLOCKS("gpt_neox.layers"),
                                           MODEL("gpt_neox.final_layer_norm", final_norm, NORM),
                                           MODEL("embed_out", head, HEAD),
                                           MODEL("score", head, CLASSIFIER),
                                           {0}};
static const struct module bloom_model[] = {
    MODEL("transformer.word_embeddings", embedding, WEIGHT),
    MODEL("transformer.word_embeddings_layernorm", embedding_norm, NORM),
    BLOCKS("transformer.h"),
    MODEL("transformer.ln_f", final_norm, NORM),
    MODEL("lm_head", head, HEAD),
    MODEL("score", head, CLASSIFIER),
    {0}};

static const struct module vl_model[] = {MODEL("model.language_model.embed_tokens", embedding, WEIGHT),
                                         BLOCKS("model.language_model.layers"),
                                         MODEL("model.language_model.norm", final_norm, NORM),
                                         MODEL("lm_head", head, HEAD),
                                         {0}};

/* An encoder's block has no cross-attention, so that its MLP is its layer 1 instead of 2 (find_other_name()). */
static const struct module t5_block[] = {BLOCK("layer.0.SelfAttention.q", q, LINEAR),
                                         BLOCK("layer.0.SelfAttention.k", k, LINEAR),
                                         BLOCK("layer.0.SelfAttention.v", v, LINEAR),
                                         BLOCK("layer.0.SelfAttention.o", o, LINEAR),
                                         BLOCK("layer.0.SelfAttention.relative_attention_bias", relative_bias, WEIGHT),
                                         BLOCK("layer.0.layer_norm", norm[0], NORM),
                                         BLOCK("layer.1.EncDecAttention.q", cross_q, LINEAR),
                                         BLOCK("layer.1.EncDecAttention.k", cross_k, LINEAR),
                                         BLOCK("layer.1.EncDecAttention.v", cross_v, LINEAR),
                                         BLOCK("layer.1.EncDecAttention.o", cross_o, LINEAR),
                                         BLOCK("layer.1.layer_norm", norm[1], NORM),
                                         BLOCK("layer.2.DenseReluDense.wi", fc1, LINEAR),
                                         BLOCK("layer.2.DenseReluDense.wi_0", gate, LINEAR),
                                         BLOCK("layer.2.DenseReluDense.wi_1", up, LINEAR),
                                         BLOCK("layer.2.DenseReluDense.wo", down, LINEAR),
                                         BLOCK("layer.2.layer_norm", norm[2], NORM),
                                         {0}};
static const struct module t5_model[] = {MODEL("shared", embedding, WEIGHT),
                                         BLOCKS("encoder.block"),
                                         MODEL("encoder.final_layer_norm", encoder_norm, NORM),
                                         BLOCKS("decoder.block"),
                                         MODEL("decoder.final_layer_norm", final_norm, NORM),
                                         MODEL("lm_head", head, HEAD),
                                         {0}};

/* A block of whisper, bart and their relatives. */
static const struct module whisper_block[] = {BLOCK("self_attn.k_proj", k, LINEAR),
                                              BLOCK("self_attn.v_proj", v, LINEAR),
                                              BLOCK("self_attn.q_proj", q, LINEAR),
                                              BLOCK("self_attn.out_proj", o, LINEAR),
                                              BLOCK("self_attn_layer_norm", norm[0], NORM),
                                              BLOCK("encoder_attn.k_proj", cross_k, LINEAR),
                                              BLOCK("encoder_attn.v_proj", cross_v, LINEAR),
                                              BLOCK("encoder_attn.q_proj", cross_q, LINEAR),
                                              BLOCK("encoder_attn.out_proj", cross_o, LINEAR),
                                              BLOCK("encoder_attn_layer_norm", norm[1], NORM),
                                              BLOCK("fc1", fc1, LINEAR),
                                              BLOCK("fc2", fc2, LINEAR),
                                              BLOCK("final_layer_norm", norm[2], NORM),
                                              {0}};
static const struct module whisper_model[] = {MODEL("model.encoder.conv1", hearing[0], CONVOLUTION),
                                              MODEL("model.encoder.conv2", hearing[1], CONVOLUTION),
                                              MODEL("model.encoder.embed_positions", source_positions, WEIGHT),
                                              BLOCKS("model.encoder.layers"),
                                              MODEL("model.encoder.layer_norm", encoder_norm, NORM),
                                              MODEL("model.decoder.embed_tokens", embedding, WEIGHT),
                                              MODEL("model.decoder.embed_positions", position_embedding, WEIGHT),
                                              BLOCKS("model.decoder.layers"),
                                              MODEL("model.decoder.layer_norm", final_norm, NORM),
                                              MODEL("proj_out", head, HEAD),
                                              {0}};

static const struct module bart_model[] = {MODEL("model.shared", embedding, WEIGHT),
                                           MODEL("model.encoder.embed_positions", source_positions, WEIGHT),
                                           BLOCKS("model.encoder.layers"),
                                           MODEL("model.encoder.layernorm_embedding", embedding_norms[0], NORM),
                                           MODEL("model.encoder.layer_norm", encoder_norm, NORM),
                                           MODEL("model.decoder.embed_positions", position_embedding, WEIGHT),
                                           BLOCKS("model.decoder.layers"),
                                           MODEL("model.decoder.layernorm_embedding", embedding_norms[1], NORM),
                                           MODEL("model.decoder.layer_norm", final_norm, NORM),
                                           MODEL("lm_head", head, HEAD),
                                           MODEL("final_logits_bias", logits_bias, PARAMETER),
                                           {0}};

static const struct {
    const struct module *model, *block;
} modules[PLIM_FAMILY_COUNT] = {
    [PLIM_FAMILY_GPT2] = {gpt2_model, gpt2_block},
    [PLIM_FAMILY_LLAMA] = {llama_model, llama_block},
    [PLIM_FAMILY_MISTRAL] = {llama_model, llama_block},
    [PLIM_FAMILY_QWEN2] = {llama_model, llama_block},
    [PLIM_FAMILY_QWEN3] = {llama_model, llama_block},
    [PLIM_FAMILY_PHI3] = {llama_model, phi3_block},
    [PLIM_FAMILY_PHI] = {phi_model, phi_block},
    [PLIM_FAMILY_GEMMA2] = {llama_model, gemma_block},
    [PLIM_FAMILY_GEMMA3_TEXT] = {llama_model, gemma_block},
    [PLIM_FAMILY_GPT_NEOX] = {neox_model, neox_block},
    [PLIM_FAMILY_OPT] = {opt_model, opt_block},
    [PLIM_FAMILY_BLOOM] = {bloom_model, bloom_block},
    [PLIM_FAMILY_OLMO2] = {llama_model, olmo2_block},
    [PLIM_FAMILY_GEMMA] = {llama_model, llama_block},
    [PLIM_FAMILY_STARCODER2] = {llama_model, starcoder2_block},
    [PLIM_FAMILY_SMOLLM3] = {llama_model, llama_block},
    [PLIM_FAMILY_GRANITE] = {llama_model, llama_block},
    [PLIM_FAMILY_OLMO] = {llama_model, llama_block},
    [PLIM_FAMILY_OLMO3] = {llama_model, olmo2_block},
    [PLIM_FAMILY_STABLELM] = {llama_model, stablelm_block},
    [PLIM_FAMILY_COHERE] = {llama_model, llama_block},
    [PLIM_FAMILY_COHERE2] = {llama_model, llama_block},
    [PLIM_FAMILY_GLM] = {llama_model, glm_block},
    [PLIM_FAMILY_GLM4] = {llama_model, glm_block},
    [PLIM_FAMILY_BERT] = {plim_bert_model, plim_bert_block},
    [PLIM_FAMILY_ROBERTA] = {plim_bert_model, plim_bert_block},
    [PLIM_FAMILY_XLM_ROBERTA] = {plim_bert_model, plim_bert_block},
    [PLIM_FAMILY_ELECTRA] = {plim_bert_model, plim_bert_block},
    [PLIM_FAMILY_DISTILBERT] = {plim_distilbert_model, plim_distilbert_block},
    [PLIM_FAMILY_MODERNBERT] = {plim_modernbert_model, plim_modernbert_block},
    [PLIM_FAMILY_DEBERTA_V2] = {plim_deberta_model, plim_deberta_block},
    [PLIM_FAMILY_ESM] = {plim_esm_model, plim_esm_block},
    [PLIM_FAMILY_ALBERT] = {plim_albert_model, plim_albert_block},
    [PLIM_FAMILY_MPNET] = {plim_mpnet_model, plim_mpnet_block},
    [PLIM_FAMILY_VIT] = {plim_vit_model, plim_vit_block},
    [PLIM_FAMILY_MIXTRAL] = {llama_model, mixtral_block},
    [PLIM_FAMILY_QWEN2_MOE] = {llama_model, qwen2_moe_block},
    [PLIM_FAMILY_QWEN3_MOE] = {llama_model, qwen3_moe_block},
    [PLIM_FAMILY_GPT_OSS] = {llama_model, gpt_oss_block},
    [PLIM_FAMILY_QWEN3_5_TEXT] = {llama_model, qwen3_5_block},
    [PLIM_FAMILY_QWEN3_5_MOE_TEXT] = {llama_model, qwen3_5_moe_block},
    [PLIM_FAMILY_QWEN3_NEXT] = {llama_model, qwen3_next_block},
    [PLIM_FAMILY_OLMOE] = {llama_model, mixtral_block},
    [PLIM_FAMILY_GRANITEMOE] = {llama_model, granitemoe_block},
    [PLIM_FAMILY_GRANITEMOEHYBRID] = {llama_model, granitemoehybrid_block},
    [PLIM_FAMILY_GLM4_MOE] = {llama_model, glm4_moe_block},
    [PLIM_FAMILY_AFMOE] = {llama_model, afmoe_block},
    [PLIM_FAMILY_MINIMAX_M2] = {llama_model, mixtral_block},
    [PLIM_FAMILY_ERNIE4_5_MOE] = {llama_model, ernie4_5_moe_block},
    [PLIM_FAMILY_DEEPSEEK_V2] = {llama_model, deepseek_v3_block},
    [PLIM_FAMILY_DEEPSEEK_V3] = {llama_model, deepseek_v3_block},
    [PLIM_FAMILY_GLM4_MOE_LITE] = {llama_model, deepseek_v3_block},
    [PLIM_FAMILY_MINISTRAL3] = {llama_model, llama_block},
    [PLIM_FAMILY_MINISTRAL] = {llama_model, llama_block},
    [PLIM_FAMILY_ARCEE] = {llama_model, arcee_block},
    [PLIM_FAMILY_APERTUS] = {llama_model, apertus_block},
    [PLIM_FAMILY_NEMOTRON] = {llama_model, arcee_block},
    [PLIM_FAMILY_EXAONE4] = {llama_model, olmo2_block},
    [PLIM_FAMILY_SEED_OSS] = {llama_model, llama_block},
    [PLIM_FAMILY_ERNIE4_5] = {llama_model, llama_block},
    [PLIM_FAMILY_HUNYUAN_V1_DENSE] = {llama_model, hunyuan_block},
    [PLIM_FAMILY_QWEN2_VL] = {vl_model, llama_block},
    [PLIM_FAMILY_QWEN2_5_VL] = {vl_model, llama_block},
    [PLIM_FAMILY_QWEN3_VL] = {vl_model, llama_block},
    [PLIM_FAMILY_QWEN3_VL_MOE] = {vl_model, qwen3_moe_block},
    [PLIM_FAMILY_QWEN3_5] = {vl_model, qwen3_5_block},
    [PLIM_FAMILY_QWEN3_5_MOE] = {vl_model, qwen3_5_moe_block},
    [PLIM_FAMILY_GEMMA3] = {vl_model, gemma_block},
    [PLIM_FAMILY_MISTRAL3] = {vl_model, llama_block},
    [PLIM_FAMILY_LLAVA] = {vl_model, llama_block},
    [PLIM_FAMILY_INTERNVL] = {vl_model, llama_block},
    [PLIM_FAMILY_GPTJ] = {gpt2_model, gptj_block},
    [PLIM_FAMILY_FALCON_H1] = {phi_model, plim_falcon_h1_block},
    [PLIM_FAMILY_NEMOTRON_H] = {plim_nemotron_h_model, plim_nemotron_h_block},
    [PLIM_FAMILY_GPT_BIGCODE] = {gpt2_model, gpt2_block},
    [PLIM_FAMILY_FALCON] = {bloom_model, falcon_block},
    [PLIM_FAMILY_GEMMA4] = {gemma4_model, gemma4_block},
    [PLIM_FAMILY_GEMMA4_UNIFIED] = {gemma4_model, gemma4_block},
    [PLIM_FAMILY_GEMMA4_TEXT] = {gemma4_text_model, gemma4_block},
    [PLIM_FAMILY_GEMMA4_UNIFIED_TEXT] = {gemma4_text_model, gemma4_block},
    [PLIM_FAMILY_LFM2] = {lfm2_model, lfm2_block}, [PLIM_FAMILY_LFM2_MOE] = {lfm2_model, lfm2_block},
    [PLIM_FAMILY_T5] = {t5_model, t5_block},
    [PLIM_FAMILY_MT5] = {t5_model, t5_block},
    [PLIM_FAMILY_WHISPER] = {whisper_model, whisper_block},
    [PLIM_FAMILY_BART] = {bart_model, whisper_block},
    [PLIM_FAMILY_MBART] = {bart_model, whisper_block},
};

const struct module *decoder_modules(enum plim_family family)
{
    return modules[family].model;
}

const struct module *decoder_block_modules(enum plim_family family)
{
    return modules[family].block;
}

static void put_name(const struct decoder *m, const char *path, char *name, size_t size)
{
    size_t replaced;
    const char *begin = encoder_module_begins(m, path, &replaced);
    snprintf(name, size, "%s%s", begin, path + replaced);
}

void module_blocks(const struct decoder *m, const struct module *blocks, int64_t layers[2])
{
    const struct module *at = decoder_modules(m->config->family);
    while (at->kind != MODULE_BLOCKS) at++;
    bool is_first = at == blocks, has_second = m->config->encoder_layers > 0;
    layers[0] = is_first ? 0 : m->config->encoder_layers;
    layers[1] = is_first && has_second ? m->config->encoder_layers : m->config->layers;
}

/* Returns the entry of the blocks that contain *layer, and sets *layer to its index among them. */
static const struct module *blocks_with(const struct decoder *m, int64_t *layer)
{
    const struct module *blocks = decoder_modules(m->config->family);
    for (;; blocks++) {
        int64_t layers[2];
        if (blocks->kind != MODULE_BLOCKS) continue;
        module_blocks(m, blocks, layers);
        if (*layer >= layers[1]) continue;
        *layer -= layers[0];
        return blocks;
    }
}

/* If a module's path begins with a prefix that differs in this layer, stores the prefix and its replacement; otherwise
 * changes nothing. */
static void find_other_name(const struct decoder_layer *l, const char *path, const char **from, const char **to)
{
    static const struct {
        const char *from, *to;
    } others[] = {{"mlp.shared_expert.", "mlp."}, {"mlp.shared_experts.", "mlp."}, {"layer.2.", "layer.1."},
                  {"mixer.shared_experts.", "mixer."}};
    bool is[] = {!l->router, !l->router, !l->cross_q.weight, !l->router};
    for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
        if (!is[i] || strncmp(path, others[i].from, strlen(others[i].from))) continue;
        *from = others[i].from;
        *to = others[i].to;
    }
}

void module_full_name(const struct decoder *m, const struct module *module, int64_t layer, char name[MODULE_NAME_MAX])
{
    const struct module *first = decoder_block_modules(m->config->family);
    const char *path = module->path, *from = "", *to = "";
    bool is_of_block = false;
    for (; first->path; first++) is_of_block |= first == module;
    if (!is_of_block) {
        put_name(m, path, name, MODULE_NAME_MAX);
        return;
    }
    find_other_name(&m->layers[layer], path, &from, &to);
    put_name(m, blocks_with(m, &layer)->path, name, MODULE_NAME_MAX);
    size_t used = strlen(name);
    snprintf(name + used, MODULE_NAME_MAX - used, ".%lld.%s%s", (long long)layer, to, path + strlen(from));
}

/* True if the module is the classifier of this model: a list also has those of other families and tasks. */
static bool is_classifier_of(const struct decoder *m, const struct module *module)
{
    const char *name = plim_model_classifier(m->config);
    return name && !strcmp(plim_module_leaf(module->path), name);
}

bool module_exists(const struct decoder *m, const struct module *module, const void *owner)
{
    const void *place = (const char *)owner + module->offset;
    const struct norm *norm = place;
    const struct linear *linear = place;
    switch (module->kind) {
    case MODULE_HEAD: return !plim_task_classifies(m->config->task);
    case MODULE_CLASSIFIER: return is_classifier_of(m, module);
    case MODULE_NORM: return norm->weight != NULL;
    case MODULE_LINEAR: return linear->weight != NULL;
    case MODULE_WEIGHT:
    case MODULE_CONVOLUTION: return *(struct tensor *const *)place != NULL;
    default: return false;
    }
}
