/* Further decoders: the keys of their config.json, and what tells them apart. */
#include "family_rows.h"

static const struct plim_family_key gemma_keys[] = {
    KEY("vocab_size", VOCAB_SIZE, "256000"),
    KEY("hidden_size", HIDDEN_SIZE, "3072"),
    KEY("intermediate_size", INTERMEDIATE_SIZE, "24576"),
    KEY("num_hidden_layers", LAYERS, "28"),
    KEY("num_attention_heads", HEADS, "16"),
    KEY("num_key_value_heads", KV_HEADS, "16"),
    KEY("head_dim", HEAD_DIM, "256"),
    KEY("hidden_act", ACTIVATION, "gelu_pytorch_tanh"),
    KEY("max_position_embeddings", POSITIONS, "8192"),
    NUL("pad_token_id", PAD_TOKEN, "0"),
    KEY("tie_word_embeddings", TIE_WORD_EMBEDDINGS, "true"),
    KEY("attention_bias", ATTENTION_BIAS, "false"),
    KEY("attention_dropout", DROPOUT_ATTENTION, "0.0"),
};

/* head_dim is no field of the classes below, but most models take it from the configuration where it has it. */
static const struct plim_family_key starcoder2_keys[] = {
    KEY("vocab_size", VOCAB_SIZE, "49152"),
    KEY("hidden_size", HIDDEN_SIZE, "3072"),
    KEY("intermediate_size", INTERMEDIATE_SIZE, "12288"),
    KEY("num_hidden_layers", LAYERS, "30"),
    KEY("num_attention_heads", HEADS, "24"),
    KEY("num_key_value_heads", KV_HEADS, "2"),
    NUL("head_dim", HEAD_DIM, "null"),
    KEY("hidden_act", ACTIVATION, "gelu_pytorch_tanh"),
    KEY("max_position_embeddings", POSITIONS, "4096"),
    NUL("pad_token_id", PAD_TOKEN, "null"),
    NUL("sliding_window", SLIDING_WINDOW, "null"),
    KEY("attention_dropout", DROPOUT_ATTENTION, "0.0"),
    KEY("residual_dropout", DROPOUT_RESIDUAL, "0.0"),
    KEY("embedding_dropout", DROPOUT_EMBEDDING, "0.0"),
    KEY("use_bias", ATTENTION_BIAS, "true"),
    KEY("use_bias", MLP_BIAS, "true"), /* one key, two places */
    KEY("tie_word_embeddings", TIE_WORD_EMBEDDINGS, "true"),
};

static const struct plim_family_key smollm3_keys[] = {
    KEY("vocab_size", VOCAB_SIZE, "128256"),
    KEY("hidden_size", HIDDEN_SIZE, "2048"),
    KEY("intermediate_size", INTERMEDIATE_SIZE, "11008"),
    KEY("num_hidden_layers", LAYERS, "36"),
    KEY("num_attention_heads", HEADS, "16"),
    NUL("num_key_value_heads", KV_HEADS, "4"),
    KEY("head_dim", HEAD_DIM, NULL),
    KEY("hidden_act", ACTIVATION, "silu"),
    KEY("max_position_embeddings", POSITIONS, "32768"),
    NUL("pad_token_id", PAD_TOKEN, "128004"),
    KEY("use_sliding_window", USE_SLIDING_WINDOW, "false"),
    NUL("sliding_window", SLIDING_WINDOW, "null"),
    KEY("no_rope_layer_interval", NO_ROPE_INTERVAL, "4"),
    KEY("attention_bias", ATTENTION_BIAS, "false"),
    KEY("attention_dropout", DROPOUT_ATTENTION, "0.0"),
    KEY("mlp_bias", MLP_BIAS, "false"),
    KEY("tie_word_embeddings", TIE_WORD_EMBEDDINGS, "true"),
};

static const struct plim_family_key granite_keys[] = {
    KEY("vocab_size", VOCAB_SIZE, "32000"),
    KEY("hidden_size", HIDDEN_SIZE, "4096"),
    KEY("intermediate_size", INTERMEDIATE_SIZE, "11008"),
    KEY("num_hidden_layers", LAYERS, "32"),
    KEY("num_attention_heads", HEADS, "32"),
    NUL("num_key_value_heads", KV_HEADS, "null"),
    KEY("head_dim", HEAD_DIM, NULL),
    KEY("hidden_act", ACTIVATION, "silu"),
    KEY("max_position_embeddings", POSITIONS, "2048"),
    NUL("pad_token_id", PAD_TOKEN, "null"),
    KEY("tie_word_embeddings", TIE_WORD_EMBEDDINGS, "false"),
    KEY("attention_bias", ATTENTION_BIAS, "false"),
    KEY("attention_dropout", DROPOUT_ATTENTION, "0.0"),
    KEY("mlp_bias", MLP_BIAS, "false"),
    KEY("embedding_multiplier", EMBEDDING_MULTIPLIER, "1.0"),
    KEY("logits_scaling", LOGITS_SCALING, "1.0"),
    KEY("residual_multiplier", RESIDUAL_MULTIPLIER, "1.0"),
    KEY("attention_multiplier", ATTENTION_MULTIPLIER, "1.0"),
};

static const struct plim_family_key olmo_keys[] = {
    KEY("vocab_size", VOCAB_SIZE, "50304"),
    KEY("hidden_size", HIDDEN_SIZE, "4096"),
    KEY("intermediate_size", INTERMEDIATE_SIZE, "11008"),
    KEY("num_hidden_layers", LAYERS, "32"),
    KEY("num_attention_heads", HEADS, "32"),
    NUL("num_key_value_heads", KV_HEADS, "null"),
    KEY("head_dim", HEAD_DIM, NULL),
    KEY("hidden_act", ACTIVATION, "silu"),
    KEY("max_position_embeddings", POSITIONS, "2048"),
    NUL("pad_token_id", PAD_TOKEN, "1"),
    KEY("tie_word_embeddings", TIE_WORD_EMBEDDINGS, "false"),
    KEY("attention_bias", ATTENTION_BIAS, "false"),
    KEY("attention_dropout", DROPOUT_ATTENTION, "0.0"),
    NUL("clip_qkv", CLIP_QKV, "null"),
};

static const struct plim_family_key olmo3_keys[] = {
    KEY("vocab_size", VOCAB_SIZE, "50304"),
    KEY("hidden_size", HIDDEN_SIZE, "4096"),
    KEY("intermediate_size", INTERMEDIATE_SIZE, "11008"),
    KEY("num_hidden_layers", LAYERS, "32"),
    KEY("num_attention_heads", HEADS, "32"),
    NUL("num_key_value_heads", KV_HEADS, "null"),
    KEY("head_dim", HEAD_DIM, NULL),
    KEY("hidden_act", ACTIVATION, "silu"),
    KEY("max_position_embeddings", POSITIONS, "2048"),
    NUL("pad_token_id", PAD_TOKEN, "1"),
    KEY("tie_word_embeddings", TIE_WORD_EMBEDDINGS, "false"),
    KEY("attention_bias", ATTENTION_BIAS, "false"),
    KEY("attention_dropout", DROPOUT_ATTENTION, "0.0"),
    KEY("sliding_window", SLIDING_WINDOW, "4096"),
};

/* Its attention takes hidden_size / heads, but its rotary embedding a head_dim, which must be that. */
static const struct plim_family_key stablelm_keys[] = {
    KEY("vocab_size", VOCAB_SIZE, "50304"),
    KEY("intermediate_size", INTERMEDIATE_SIZE, "6912"),
    KEY("hidden_size", HIDDEN_SIZE, "2560"),
    KEY("num_hidden_layers", LAYERS, "32"),
    KEY("num_attention_heads", HEADS, "32"),
    KEY("num_key_value_heads", KV_HEADS, "32"),
    NUL("head_dim", HEAD_DIM, "null"),
    KEY("hidden_act", ACTIVATION, "silu"),
    KEY("max_position_embeddings", POSITIONS, "4096"),
    KEY("tie_word_embeddings", TIE_WORD_EMBEDDINGS, "false"),
    KEY("partial_rotary_factor", PARTIAL_ROTARY, "0.25"),
    KEY("use_qkv_bias", ATTENTION_BIAS, "false"),
    KEY("use_parallel_residual", PARALLEL_RESIDUAL, "false"),
    KEY("hidden_dropout", DROPOUT_RESIDUAL, "0.0"),
    KEY("attention_dropout", DROPOUT_ATTENTION, "0.0"),
    NUL("pad_token_id", PAD_TOKEN, "null"),
};

static const struct plim_family_key cohere_keys[] = {
    KEY("vocab_size", VOCAB_SIZE, "256000"),
    KEY("hidden_size", HIDDEN_SIZE, "8192"),
    KEY("intermediate_size", INTERMEDIATE_SIZE, "22528"),
    KEY("logit_scale", LOGIT_SCALE, "0.0625"),
    KEY("num_hidden_layers", LAYERS, "40"),
    KEY("num_attention_heads", HEADS, "64"),
    NUL("num_key_value_heads", KV_HEADS, "null"),
    KEY("head_dim", HEAD_DIM, NULL),
    KEY("hidden_act", ACTIVATION, "silu"),
    KEY("max_position_embeddings", POSITIONS, "8192"),
    NUL("pad_token_id", PAD_TOKEN, "0"),
    KEY("tie_word_embeddings", TIE_WORD_EMBEDDINGS, "true"),
    KEY("attention_bias", ATTENTION_BIAS, "false"),
    KEY("attention_dropout", DROPOUT_ATTENTION, "0.0"),
    KEY("use_qk_norm", QK_LAYERNORM, "false"),
};

static const struct plim_family_key cohere2_keys[] = {
    KEY("vocab_size", VOCAB_SIZE, "256000"),
    KEY("hidden_size", HIDDEN_SIZE, "8192"),
    KEY("intermediate_size", INTERMEDIATE_SIZE, "22528"),
    KEY("logit_scale", LOGIT_SCALE, "0.0625"),
    KEY("num_hidden_layers", LAYERS, "40"),
    KEY("num_attention_heads", HEADS, "64"),
    NUL("num_key_value_heads", KV_HEADS, "null"),
    KEY("head_dim", HEAD_DIM, NULL),
    KEY("hidden_act", ACTIVATION, "silu"),
    KEY("max_position_embeddings", POSITIONS, "8192"),
    NUL("pad_token_id", PAD_TOKEN, "0"),
    KEY("tie_word_embeddings", TIE_WORD_EMBEDDINGS, "true"),
    KEY("attention_bias", ATTENTION_BIAS, "false"),
    KEY("attention_dropout", DROPOUT_ATTENTION, "0.0"),
    KEY("sliding_window", SLIDING_WINDOW, "4096"),
    KEY("sliding_window_pattern", SLIDING_PATTERN, "4"),
};

/* glm, glm4 */
static const struct plim_family_key glm_keys[] = {
    KEY("vocab_size", VOCAB_SIZE, "151552"),
    KEY("hidden_size", HIDDEN_SIZE, "4096"),
    KEY("intermediate_size", INTERMEDIATE_SIZE, "13696"),
    KEY("num_hidden_layers", LAYERS, "40"),
    KEY("num_attention_heads", HEADS, "32"),
    KEY("num_key_value_heads", KV_HEADS, "2"),
    KEY("head_dim", HEAD_DIM, "128"),
    KEY("partial_rotary_factor", PARTIAL_ROTARY, "0.5"),
    KEY("hidden_act", ACTIVATION, "silu"),
    KEY("attention_dropout", DROPOUT_ATTENTION, "0.0"),
    KEY("max_position_embeddings", POSITIONS, "131072"),
    KEY("tie_word_embeddings", TIE_WORD_EMBEDDINGS, "false"),
    NUL("pad_token_id", PAD_TOKEN, "151329"),
    KEY("attention_bias", ATTENTION_BIAS, "true"),
};

#define GLM_LINEARS {"q_proj", "k_proj", "v_proj", "o_proj", "gate_up_proj", "down_proj"}
#define QUERIES {"q_proj", "v_proj"}

const struct plim_family_info plim_further_families[PLIM_FAMILY_COUNT] = {
    [PLIM_FAMILY_GEMMA] = {KEYS(gemma_keys), .rotary = true, .linears = LLAMA_LINEARS, .lora_default = QUERIES},
    [PLIM_FAMILY_STARCODER2] = {KEYS(starcoder2_keys), .sliding = PLIM_SLIDING_ALL, .rotary = true,
                                .linears = {"q_proj", "k_proj", "v_proj", "o_proj", "c_fc", "c_proj"}},
    [PLIM_FAMILY_SMOLLM3] = {KEYS(smollm3_keys), .sliding = PLIM_SLIDING_NOPE, .nope = PLIM_NOPE_INTERVAL,
                             .layer_types = true, .rotary = true, .linears = LLAMA_LINEARS},
    [PLIM_FAMILY_GRANITE] = {KEYS(granite_keys), .rotary = true, .linears = LLAMA_LINEARS},
    [PLIM_FAMILY_OLMO] = {KEYS(olmo_keys), .rotary = true, .linears = LLAMA_LINEARS},
    [PLIM_FAMILY_OLMO3] = {KEYS(olmo3_keys), .sliding = PLIM_SLIDING_FOURTH, .layer_types = true, .rotary = true,
                           .rotary_by_layers = true, .linears = LLAMA_LINEARS},
    [PLIM_FAMILY_STABLELM] = {KEYS(stablelm_keys), .rotary = true, .heads_must_divide = true,
                              .head_dim_derives = true,
                              .linears = LLAMA_LINEARS, .lora_default = QUERIES},
    [PLIM_FAMILY_COHERE] = {KEYS(cohere_keys), .rotary = true, .linears = LLAMA_LINEARS},
    [PLIM_FAMILY_COHERE2] = {KEYS(cohere2_keys), .sliding = PLIM_SLIDING_PATTERN, .nope = PLIM_NOPE_FULL,
                             .layer_types = true, .rotary = true, .linears = LLAMA_LINEARS},
    [PLIM_FAMILY_GLM] = {KEYS(glm_keys), .rotary = true, .rotary_rounds_up = true, .linears = GLM_LINEARS},
    [PLIM_FAMILY_GLM4] = {KEYS(glm_keys), .rotary = true, .rotary_rounds_up = true, .linears = GLM_LINEARS},
};
