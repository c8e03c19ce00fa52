/* Macros for the tables of families. */
#ifndef PLIM_WORKLOADS_SPEC_FAMILY_ROWS_H
#define PLIM_WORKLOADS_SPEC_FAMILY_ROWS_H

#include "family.h"

/* Rows are in the order of the configuration classes. KEY: not null, NUL: may be null. */
#define KEY(name, field, fallback) {name, NULL, PLIM_FIELD_##field, false, fallback}
#define NUL(name, field, fallback) {name, NULL, PLIM_FIELD_##field, true, fallback}
#define TWO(name, alias, field, fallback) {name, alias, PLIM_FIELD_##field, false, fallback}

/* The tasks of a decoder: the next token, or labels of rows. */
#define TASKS_OF_DECODER KEY("task", TASK, "causal-lm"), KEY("num_labels", LABELS, "2")

/* For families without a classification class in transformers. */
#define CAUSAL_ALONE (1u << PLIM_TASK_CAUSAL_LM)

#define KEYS(table) .keys = table, .key_count = sizeof(table) / sizeof((table)[0])
#define LLAMA_LINEARS {"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"}

/* LlamaConfig */
#define KEYS_OF_LLAMA \
    KEY("vocab_size", VOCAB_SIZE, "32000"), KEY("hidden_size", HIDDEN_SIZE, "4096"), \
    KEY("intermediate_size", INTERMEDIATE_SIZE, "11008"), KEY("num_hidden_layers", LAYERS, "32"), \
    KEY("num_attention_heads", HEADS, "32"), NUL("num_key_value_heads", KV_HEADS, "null"), \
    KEY("hidden_act", ACTIVATION, "silu"), KEY("max_position_embeddings", POSITIONS, "2048"), \
    NUL("pad_token_id", PAD_TOKEN, "null"), KEY("tie_word_embeddings", TIE_WORD_EMBEDDINGS, "false"), \
    KEY("attention_bias", ATTENTION_BIAS, "false"), KEY("attention_dropout", DROPOUT_ATTENTION, "0.0"), \
    KEY("mlp_bias", MLP_BIAS, "false"), NUL("head_dim", HEAD_DIM, "null")

/* Gemma3TextConfig */
#define KEYS_OF_GEMMA3_TEXT \
    KEY("vocab_size", VOCAB_SIZE, "262208"), KEY("hidden_size", HIDDEN_SIZE, "2304"), \
    KEY("intermediate_size", INTERMEDIATE_SIZE, "9216"), KEY("num_hidden_layers", LAYERS, "26"), \
    KEY("num_attention_heads", HEADS, "8"), KEY("num_key_value_heads", KV_HEADS, "4"), \
    KEY("head_dim", HEAD_DIM, "256"), KEY("hidden_activation", ACTIVATION, "gelu_pytorch_tanh"), \
    KEY("max_position_embeddings", POSITIONS, "131072"), NUL("pad_token_id", PAD_TOKEN, "0"), \
    KEY("tie_word_embeddings", TIE_WORD_EMBEDDINGS, "true"), KEY("attention_bias", ATTENTION_BIAS, "false"), \
    KEY("attention_dropout", DROPOUT_ATTENTION, "0.0"), KEY("sliding_window", SLIDING_WINDOW, "4096"), \
    KEY("sliding_window_pattern", SLIDING_PATTERN, "6"), NUL("final_logit_softcapping", FINAL_SOFTCAP, "null"), \
    NUL("attn_logit_softcapping", ATTN_SOFTCAP, "null")

/* Gemma4TextConfig and Gemma4UnifiedTextConfig; __post_init__ sets missing values of layers with full attention. */
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
#define KEYS_OF_GEMMA4_TEXT \
    GEMMA4_TEXT("131072", "512"), KEY("hidden_size_per_layer_input", PER_LAYER_SIZE, "256"), \
    KEY("vocab_size_per_layer_input", PER_LAYER_VOCAB, "262144"), KEY("enable_moe_block", HAS_EXPERTS, "false"), \
    NUL("num_experts", EXPERTS, "null"), NUL("top_k_experts", EXPERTS_PER_TOKEN, "null"), \
    NUL("moe_intermediate_size", EXPERT_SIZE, "null")
#define LINEARS_OF_GEMMA4 \
    "q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj", "per_layer_input_gate", \
    "per_layer_projection", "per_layer_model_projection", "router.proj"
#define INFO_OF_GEMMA4(table) \
    KEYS(table), .tasks = CAUSAL_ALONE, .sliding = PLIM_SLIDING_SIXTH, .layer_types = true, .rotary = true, \
    .rope = PLIM_ROPE_PROPORTIONAL, .rotary_by_layers = true

/* Liger's patches for most decoders; exceptions in norms and kernels are appended. */
#define LIGER_DECODER(how, glu) \
    .norms = PLIM_LIGER_NORM_##how, .last_norm = PLIM_LIGER_NORM_##how, .rope = true, .mlp = PLIM_LIGER_MLP_##glu, \
    .loss = PLIM_LIGER_LOSS_FUSED
#define LIGER_LLAMA {LIGER_DECODER(IN_PLACE, SWIGLU)}
#define LIGER_OLMO2 \
    {.norms = PLIM_LIGER_NORM_APART, .last_norm = PLIM_LIGER_NORM_IN_PLACE, .rope = true, \
     .mlp = PLIM_LIGER_MLP_SWIGLU, .loss = PLIM_LIGER_LOSS_FUSED}

/* For models that mix layers of linear attention with others */
#define KEYS_OF_HYBRID                                                                             \
    KEY("hidden_act", ACTIVATION, "silu"),                                                         \
    KEY("max_position_embeddings", POSITIONS, "32768"),                                            \
    KEY("tie_word_embeddings", TIE_WORD_EMBEDDINGS, "false"),                                      \
    KEY("partial_rotary_factor", PARTIAL_ROTARY, "0.25"),                                          \
    KEY("attention_bias", ATTENTION_BIAS, "false"),                                                \
    KEY("attention_dropout", DROPOUT_ATTENTION, "0.0"),                                            \
    KEY("head_dim", HEAD_DIM, "256"),                                                              \
    KEY("linear_conv_kernel_dim", LINEAR_KERNEL, "4"),                                             \
    KEY("linear_key_head_dim", LINEAR_KEY_DIM, "128"),                                             \
    KEY("linear_value_head_dim", LINEAR_VALUE_DIM, "128"),                                         \
    KEY("linear_num_key_heads", LINEAR_KEY_HEADS, "16"),                                           \
    KEY("linear_num_value_heads", LINEAR_VALUE_HEADS, "32"),                                       \
    KEY("full_attention_interval", FULL_INTERVAL, "4")

/* For qwen3_5_moe's layers */
#define KEYS_OF_QWEN3_5_EXPERTS \
    KEY("moe_intermediate_size", EXPERT_SIZE, "512"), \
    KEY("shared_expert_intermediate_size", SHARED_EXPERT_SIZE, "512"), \
    KEY("num_experts_per_tok", EXPERTS_PER_TOKEN, "8"), KEY("num_experts", EXPERTS, "256"), \
    KEY("router_aux_loss_coef", AUX_LOSS_COEF, "0.001")

/* Less common decoders (family_keys_further.c); the entries of all other families are empty. */
extern const struct plim_family_info plim_further_families[PLIM_FAMILY_COUNT];

/* Less common mixtures of experts (family_keys_experts.c), likewise. */
extern const struct plim_family_info plim_expert_families[PLIM_FAMILY_COUNT];

/* Models of images and text (family_keys_vision.c), likewise. */
extern const struct plim_family_info plim_vision_families[PLIM_FAMILY_COUNT];

/* Encoders of fewer users (family_keys_encoders.c), likewise. */
extern const struct plim_family_info plim_encoder_families[PLIM_FAMILY_COUNT];

/* Encoder-decoder models (family_keys_seq2seq.c), likewise. */
extern const struct plim_family_info plim_seq2seq_families[PLIM_FAMILY_COUNT];

#endif
