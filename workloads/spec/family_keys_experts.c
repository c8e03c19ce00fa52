/* Further mixtures of experts: the keys of their config.json, and what tells them apart. */
#include "family_rows.h"

static const struct plim_family_key glm4_moe_keys[] = {
    KEY("vocab_size", VOCAB_SIZE, "151552"),
    KEY("hidden_size", HIDDEN_SIZE, "4096"),
    KEY("intermediate_size", INTERMEDIATE_SIZE, "10944"),
    KEY("num_hidden_layers", LAYERS, "46"),
    KEY("num_attention_heads", HEADS, "96"),
    KEY("num_key_value_heads", KV_HEADS, "8"),
    KEY("head_dim", HEAD_DIM, NULL),
    KEY("hidden_act", ACTIVATION, "silu"),
    KEY("max_position_embeddings", POSITIONS, "131072"),
    KEY("tie_word_embeddings", TIE_WORD_EMBEDDINGS, "false"),
    KEY("partial_rotary_factor", PARTIAL_ROTARY, "0.5"),
    KEY("attention_bias", ATTENTION_BIAS, "false"),
    KEY("attention_dropout", DROPOUT_ATTENTION, "0.0"),
    KEY("moe_intermediate_size", EXPERT_SIZE, "1408"),
    KEY("num_experts_per_tok", EXPERTS_PER_TOKEN, "8"),
    KEY("n_shared_experts", SHARED_EXPERTS, "1"),
    TWO("n_routed_experts", "num_local_experts", EXPERTS, "128"),
    KEY("routed_scaling_factor", ROUTED_SCALING, "1.0"),
    KEY("n_group", EXPERT_GROUPS, "1"),
    KEY("topk_group", GROUPS_PER_TOKEN, "1"),
    KEY("first_k_dense_replace", DENSE_LAYERS, "1"),
    KEY("norm_topk_prob", NORMALIZED_ROUTING, "true"),
    KEY("use_qk_norm", QK_LAYERNORM, "false"),
    NUL("pad_token_id", PAD_TOKEN, "null"),
};

static const struct plim_family_key deepseek_v2_keys[] = {
    TASKS_OF_DECODER,
    KEY("vocab_size", VOCAB_SIZE, "102400"),
    KEY("hidden_size", HIDDEN_SIZE, "4096"),
    KEY("intermediate_size", INTERMEDIATE_SIZE, "11008"),
    KEY("num_hidden_layers", LAYERS, "32"),
    KEY("num_attention_heads", HEADS, "32"),
    NUL("num_key_value_heads", KV_HEADS, "null"),
    KEY("hidden_act", ACTIVATION, "silu"),
    KEY("max_position_embeddings", POSITIONS, "2048"),
    NUL("pad_token_id", PAD_TOKEN, "null"),
    KEY("tie_word_embeddings", TIE_WORD_EMBEDDINGS, "false"),
    KEY("attention_bias", ATTENTION_BIAS, "false"),
    KEY("attention_dropout", DROPOUT_ATTENTION, "0.0"),
    KEY("mlp_bias", MLP_BIAS, "false"),
    KEY("first_k_dense_replace", DENSE_LAYERS, "0"),
    KEY("kv_lora_rank", KEY_RANK, "512"),
    NUL("q_lora_rank", QUERY_RANK, "1536"),
    NUL("n_group", EXPERT_GROUPS, "null"),
    TWO("n_routed_experts", "num_experts", EXPERTS, "64"),
    KEY("n_shared_experts", SHARED_EXPERTS, "2"),
    KEY("qk_nope_head_dim", PLAIN_DIM, "128"),
    KEY("qk_rope_head_dim", ROPE_DIM, "64"),
    KEY("routed_scaling_factor", ROUTED_SCALING, "1.0"),
    NUL("topk_group", GROUPS_PER_TOKEN, "null"),
    KEY("topk_method", TOP_K, "greedy"),
    KEY("v_head_dim", VALUE_DIM, "128"),
    NUL("num_experts_per_tok", EXPERTS_PER_TOKEN, "null"),
    KEY("moe_intermediate_size", EXPERT_SIZE, "1407"),
};

static const struct plim_family_key deepseek_v3_keys[] = {
    TASKS_OF_DECODER,
    KEY("vocab_size", VOCAB_SIZE, "129280"),
    KEY("hidden_size", HIDDEN_SIZE, "7168"),
    KEY("intermediate_size", INTERMEDIATE_SIZE, "18432"),
    KEY("moe_intermediate_size", EXPERT_SIZE, "2048"),
    KEY("num_hidden_layers", LAYERS, "61"),
    KEY("num_attention_heads", HEADS, "128"),
    NUL("num_key_value_heads", KV_HEADS, "128"),
    KEY("n_shared_experts", SHARED_EXPERTS, "1"),
    TWO("n_routed_experts", "num_local_experts", EXPERTS, "256"),
    KEY("routed_scaling_factor", ROUTED_SCALING, "2.5"),
    KEY("kv_lora_rank", KEY_RANK, "512"),
    NUL("q_lora_rank", QUERY_RANK, "1536"),
    KEY("qk_rope_head_dim", ROPE_DIM, "64"),
    KEY("v_head_dim", VALUE_DIM, "128"),
    KEY("qk_nope_head_dim", PLAIN_DIM, "128"),
    KEY("n_group", EXPERT_GROUPS, "8"),
    KEY("topk_group", GROUPS_PER_TOKEN, "4"),
    KEY("num_experts_per_tok", EXPERTS_PER_TOKEN, "8"),
    KEY("first_k_dense_replace", DENSE_LAYERS, "3"),
    KEY("norm_topk_prob", NORMALIZED_ROUTING, "true"),
    KEY("hidden_act", ACTIVATION, "silu"),
    KEY("max_position_embeddings", POSITIONS, "4096"),
    NUL("pad_token_id", PAD_TOKEN, "null"),
    KEY("tie_word_embeddings", TIE_WORD_EMBEDDINGS, "false"),
    KEY("rope_interleave", ROPE_PAIRS, "true"),
    KEY("attention_bias", ATTENTION_BIAS, "false"),
    KEY("attention_dropout", DROPOUT_ATTENTION, "0.0"),
};

/* head_dim is another name of qk_rope_head_dim (attribute_map). */
static const struct plim_family_key glm4_moe_lite_keys[] = {
    KEY("vocab_size", VOCAB_SIZE, "154880"),
    KEY("hidden_size", HIDDEN_SIZE, "2048"),
    KEY("intermediate_size", INTERMEDIATE_SIZE, "10240"),
    KEY("moe_intermediate_size", EXPERT_SIZE, "1536"),
    KEY("num_hidden_layers", LAYERS, "47"),
    KEY("num_attention_heads", HEADS, "20"),
    KEY("num_key_value_heads", KV_HEADS, "20"),
    KEY("n_shared_experts", SHARED_EXPERTS, "1"),
    TWO("n_routed_experts", "num_local_experts", EXPERTS, "64"),
    KEY("routed_scaling_factor", ROUTED_SCALING, "1.8"),
    KEY("kv_lora_rank", KEY_RANK, "512"),
    NUL("q_lora_rank", QUERY_RANK, "768"),
    TWO("qk_rope_head_dim", "head_dim", ROPE_DIM, "64"),
    KEY("v_head_dim", VALUE_DIM, "256"),
    KEY("qk_nope_head_dim", PLAIN_DIM, "192"),
    KEY("n_group", EXPERT_GROUPS, "1"),
    KEY("topk_group", GROUPS_PER_TOKEN, "1"),
    KEY("num_experts_per_tok", EXPERTS_PER_TOKEN, "4"),
    KEY("norm_topk_prob", NORMALIZED_ROUTING, "true"),
    KEY("hidden_act", ACTIVATION, "silu"),
    KEY("max_position_embeddings", POSITIONS, "202752"),
    NUL("pad_token_id", PAD_TOKEN, "null"),
    KEY("tie_word_embeddings", TIE_WORD_EMBEDDINGS, "false"),
    KEY("rope_interleave", ROPE_PAIRS, "true"),
    KEY("attention_bias", ATTENTION_BIAS, "false"),
    KEY("attention_dropout", DROPOUT_ATTENTION, "0.0"),
};

#define LATENT_LINEARS \
    {"q_proj", "q_a_proj", "q_b_proj", "kv_a_proj_with_mqa", "kv_b_proj", "o_proj", "gate_proj", "up_proj", "down_proj"}

/* Gemma4TextConfig and Gemma4UnifiedTextConfig; what is not said of heads that see all is their __post_init__'s. */
#define GEMMA4_TEXT(length, window) \
    KEY("vocab_size", VOCAB_SIZE, "262144"), KEY("hidden_size", HIDDEN_SIZE, "2304"), \
    KEY("intermediate_size", INTERMEDIATE_SIZE, "9216"), KEY("num_hidden_layers", LAYERS, "30"), \
    KEY("num_attention_heads", HEADS, "8"), KEY("num_key_value_heads", KV_HEADS, "4"), \
    KEY("head_dim", HEAD_DIM, "256"), KEY("hidden_activation", ACTIVATION, "gelu_pytorch_tanh"), \
    KEY("max_position_embeddings", POSITIONS, length), NUL("pad_token_id", PAD_TOKEN, "0"), \
    KEY("tie_word_embeddings", TIE_WORD_EMBEDDINGS, "true"), KEY("attention_bias", ATTENTION_BIAS, "false"), \
    NUL("attention_dropout", DROPOUT_ATTENTION, "0.0"), KEY("sliding_window", SLIDING_WINDOW, window), \
    NUL("final_logit_softcapping", FINAL_SOFTCAP, "null"), KEY("global_head_dim", GLOBAL_HEAD_DIM, "512"), \
    NUL("num_global_key_value_heads", GLOBAL_KV_HEADS, "null"), KEY("attention_k_eq_v", KEYS_ARE_VALUES, "false"), \
    KEY("num_kv_shared_layers", SHARED_KV_LAYERS, "0"), KEY("use_double_wide_mlp", DOUBLE_WIDE, "false")

static const struct plim_family_key gemma4_text_keys[] = {
    GEMMA4_TEXT("131072", "512"),
    KEY("hidden_size_per_layer_input", PER_LAYER_SIZE, "256"),
    KEY("vocab_size_per_layer_input", PER_LAYER_VOCAB, "262144"),
    KEY("enable_moe_block", HAS_EXPERTS, "false"),
    NUL("num_experts", EXPERTS, "null"),
    NUL("top_k_experts", EXPERTS_PER_TOKEN, "null"),
    NUL("moe_intermediate_size", EXPERT_SIZE, "null"),
};

static const struct plim_family_key gemma4_unified_text_keys[] = {GEMMA4_TEXT("262144", "1024")};

#define GEMMA4(table) \
    KEYS(table), .tasks = CAUSAL_ALONE, .sliding = PLIM_SLIDING_SIXTH, .layer_types = true, .rotary = true, \
    .rope = PLIM_ROPE_PROPORTIONAL, .rotary_by_layers = true

const struct plim_family_info plim_expert_families[PLIM_FAMILY_COUNT] = {
    [PLIM_FAMILY_GLM4_MOE] = {KEYS(glm4_moe_keys), .tasks = CAUSAL_ALONE, .rotary = true, .rotary_rounds_up = true,
                              .head_dim_floors = true, .linears = LLAMA_LINEARS},
    [PLIM_FAMILY_DEEPSEEK_V2] = {KEYS(deepseek_v2_keys), .rotary = true, .heads_must_divide = true,
                                 .required = {PLIM_FIELD_EXPERTS_PER_TOKEN}, .linears = LATENT_LINEARS},
    [PLIM_FAMILY_DEEPSEEK_V3] = {KEYS(deepseek_v3_keys), .rotary = true, .linears = LATENT_LINEARS},
    [PLIM_FAMILY_GEMMA4_TEXT] = {GEMMA4(gemma4_text_keys),
                                 .linears = {"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj",
                                             "down_proj", "per_layer_input_gate", "per_layer_projection",
                                             "per_layer_model_projection", "router.proj"}},
    [PLIM_FAMILY_GEMMA4_UNIFIED_TEXT] = {GEMMA4(gemma4_unified_text_keys), .linears = LLAMA_LINEARS},
    [PLIM_FAMILY_GLM4_MOE_LITE] = {KEYS(glm4_moe_lite_keys), .tasks = CAUSAL_ALONE, .rotary = true,
                                   .linears = LATENT_LINEARS},
};
