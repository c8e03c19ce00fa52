/* Further decoders: the keys of their config.json, and what tells them apart. */
#include "family_rows.h"

static const struct plim_family_key gemma_keys[] = {
    TASKS_OF_DECODER,
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
    TASKS_OF_DECODER,
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
    TASKS_OF_DECODER,
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
    TASKS_OF_DECODER,
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
    TASKS_OF_DECODER,
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
    TASKS_OF_DECODER,
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
    TASKS_OF_DECODER,
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

/* Of models with layers of linear attention among the others */
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

/* partial_rotary_factor and full_attention_interval are no fields of the class, which takes both where they are
 * given. */
static const struct plim_family_key qwen3_5_keys[] = {
    TASKS_OF_DECODER,
    KEY("vocab_size", VOCAB_SIZE, "248320"),
    KEY("hidden_size", HIDDEN_SIZE, "4096"),
    KEY("intermediate_size", INTERMEDIATE_SIZE, "12288"),
    KEY("num_hidden_layers", LAYERS, "32"),
    KEY("num_attention_heads", HEADS, "16"),
    KEY("num_key_value_heads", KV_HEADS, "4"),
    KEYS_OF_HYBRID,
    NUL("pad_token_id", PAD_TOKEN, "null"),
};

/* The same two keys as of qwen3_5 */
static const struct plim_family_key qwen3_5_moe_keys[] = {
    KEY("vocab_size", VOCAB_SIZE, "248320"),
    KEY("hidden_size", HIDDEN_SIZE, "2048"),
    KEY("num_hidden_layers", LAYERS, "40"),
    KEY("num_attention_heads", HEADS, "16"),
    KEY("num_key_value_heads", KV_HEADS, "2"),
    KEYS_OF_HYBRID,
    KEY("moe_intermediate_size", EXPERT_SIZE, "512"),
    KEY("shared_expert_intermediate_size", SHARED_EXPERT_SIZE, "512"),
    KEY("num_experts_per_tok", EXPERTS_PER_TOKEN, "8"),
    KEY("num_experts", EXPERTS, "256"),
    KEY("router_aux_loss_coef", AUX_LOSS_COEF, "0.001"),
    NUL("pad_token_id", PAD_TOKEN, "null"),
};

static const struct plim_family_key qwen3_next_keys[] = {
    TASKS_OF_DECODER,
    KEY("vocab_size", VOCAB_SIZE, "151936"),
    KEY("hidden_size", HIDDEN_SIZE, "2048"),
    KEY("intermediate_size", INTERMEDIATE_SIZE, "5632"),
    KEY("num_hidden_layers", LAYERS, "48"),
    KEY("num_attention_heads", HEADS, "16"),
    KEY("num_key_value_heads", KV_HEADS, "2"),
    KEYS_OF_HYBRID,
    KEY("decoder_sparse_step", SPARSE_STEP, "1"),
    KEY("moe_intermediate_size", EXPERT_SIZE, "512"),
    KEY("shared_expert_intermediate_size", SHARED_EXPERT_SIZE, "512"),
    KEY("num_experts_per_tok", EXPERTS_PER_TOKEN, "10"),
    KEY("num_experts", EXPERTS, "512"),
    KEY("norm_topk_prob", NORMALIZED_ROUTING, "true"),
    KEY("router_aux_loss_coef", AUX_LOSS_COEF, "0.001"),
    NUL("pad_token_id", PAD_TOKEN, "null"),
};

/* head_dim is no field of the class, but its model takes it, and norms of hidden_size fit no other one. */
static const struct plim_family_key olmoe_keys[] = {
    KEY("vocab_size", VOCAB_SIZE, "50304"),
    KEY("hidden_size", HIDDEN_SIZE, "2048"),
    KEY("intermediate_size", INTERMEDIATE_SIZE, "2048"),
    KEY("num_hidden_layers", LAYERS, "16"),
    KEY("num_attention_heads", HEADS, "16"),
    NUL("num_key_value_heads", KV_HEADS, "null"),
    KEY("head_dim", HEAD_DIM, NULL),
    KEY("hidden_act", ACTIVATION, "silu"),
    KEY("max_position_embeddings", POSITIONS, "4096"),
    NUL("pad_token_id", PAD_TOKEN, "1"),
    KEY("tie_word_embeddings", TIE_WORD_EMBEDDINGS, "false"),
    KEY("attention_bias", ATTENTION_BIAS, "false"),
    KEY("attention_dropout", DROPOUT_ATTENTION, "0.0"),
    NUL("clip_qkv", CLIP_QKV, "null"),
    KEY("num_experts_per_tok", EXPERTS_PER_TOKEN, "8"),
    TWO("num_experts", "num_local_experts", EXPERTS, "64"),
    KEY("router_aux_loss_coef", AUX_LOSS_COEF, "0.01"),
    KEY("norm_topk_prob", NORMALIZED_ROUTING, "false"),
};

static const struct plim_family_key granitemoe_keys[] = {
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
    KEY("embedding_multiplier", EMBEDDING_MULTIPLIER, "1.0"),
    KEY("logits_scaling", LOGITS_SCALING, "1.0"),
    KEY("residual_multiplier", RESIDUAL_MULTIPLIER, "1.0"),
    NUL("attention_multiplier", ATTENTION_MULTIPLIER, "1.0"),
    KEY("num_local_experts", EXPERTS, "8"),
    KEY("num_experts_per_tok", EXPERTS_PER_TOKEN, "2"),
    KEY("router_aux_loss_coef", AUX_LOSS_COEF, "0.001"),
};

static const struct plim_family_key ministral3_keys[] = {
    TASKS_OF_DECODER,
    KEY("vocab_size", VOCAB_SIZE, "131072"),
    KEY("hidden_size", HIDDEN_SIZE, "4096"),
    KEY("intermediate_size", INTERMEDIATE_SIZE, "14336"),
    KEY("num_hidden_layers", LAYERS, "34"),
    KEY("num_attention_heads", HEADS, "32"),
    KEY("num_key_value_heads", KV_HEADS, "8"),
    KEY("head_dim", HEAD_DIM, "128"),
    KEY("hidden_act", ACTIVATION, "silu"),
    KEY("max_position_embeddings", POSITIONS, "262144"),
    NUL("pad_token_id", PAD_TOKEN, "11"),
    KEY("tie_word_embeddings", TIE_WORD_EMBEDDINGS, "false"),
    NUL("sliding_window", SLIDING_WINDOW, "null"),
    KEY("attention_dropout", DROPOUT_ATTENTION, "0.0"),
};

static const struct plim_family_key arcee_keys[] = {
    TASKS_OF_DECODER,
    KEY("vocab_size", VOCAB_SIZE, "32000"),
    KEY("hidden_size", HIDDEN_SIZE, "2560"),
    KEY("intermediate_size", INTERMEDIATE_SIZE, "18432"),
    KEY("num_hidden_layers", LAYERS, "32"),
    KEY("num_attention_heads", HEADS, "32"),
    NUL("num_key_value_heads", KV_HEADS, "null"),
    KEY("hidden_act", ACTIVATION, "relu2"),
    KEY("max_position_embeddings", POSITIONS, "4096"),
    NUL("pad_token_id", PAD_TOKEN, "null"),
    KEY("tie_word_embeddings", TIE_WORD_EMBEDDINGS, "false"),
    KEY("attention_bias", ATTENTION_BIAS, "false"),
    KEY("attention_dropout", DROPOUT_ATTENTION, "0.0"),
    KEY("mlp_bias", MLP_BIAS, "false"),
    NUL("head_dim", HEAD_DIM, "null"),
};

static const struct plim_family_key nemotron_keys[] = {
    TASKS_OF_DECODER,
    KEY("vocab_size", VOCAB_SIZE, "256000"),
    KEY("hidden_size", HIDDEN_SIZE, "6144"),
    KEY("intermediate_size", INTERMEDIATE_SIZE, "24576"),
    KEY("num_hidden_layers", LAYERS, "32"),
    KEY("num_attention_heads", HEADS, "48"),
    NUL("head_dim", HEAD_DIM, "null"),
    NUL("num_key_value_heads", KV_HEADS, "null"),
    KEY("hidden_act", ACTIVATION, "relu2"),
    KEY("max_position_embeddings", POSITIONS, "4096"),
    NUL("pad_token_id", PAD_TOKEN, "null"),
    KEY("tie_word_embeddings", TIE_WORD_EMBEDDINGS, "false"),
    KEY("partial_rotary_factor", PARTIAL_ROTARY, "0.5"),
    KEY("attention_bias", ATTENTION_BIAS, "false"),
    KEY("attention_dropout", DROPOUT_ATTENTION, "0.0"),
    KEY("mlp_bias", MLP_BIAS, "false"),
};

static const struct plim_family_key exaone4_keys[] = {
    TASKS_OF_DECODER,
    KEY("vocab_size", VOCAB_SIZE, "102400"),
    KEY("hidden_size", HIDDEN_SIZE, "4096"),
    KEY("intermediate_size", INTERMEDIATE_SIZE, "16384"),
    KEY("num_hidden_layers", LAYERS, "32"),
    KEY("num_attention_heads", HEADS, "32"),
    KEY("num_key_value_heads", KV_HEADS, "32"),
    KEY("head_dim", HEAD_DIM, NULL),
    KEY("hidden_act", ACTIVATION, "silu"),
    KEY("max_position_embeddings", POSITIONS, "2048"),
    NUL("pad_token_id", PAD_TOKEN, "null"),
    KEY("tie_word_embeddings", TIE_WORD_EMBEDDINGS, "false"),
    KEY("attention_dropout", DROPOUT_ATTENTION, "0.0"),
    NUL("sliding_window", SLIDING_WINDOW, "4096"),
    KEY("sliding_window_pattern", SLIDING_PATTERN, "4"),
};

static const struct plim_family_key seed_oss_keys[] = {
    TASKS_OF_DECODER,
    KEY("vocab_size", VOCAB_SIZE, "155136"),
    KEY("hidden_size", HIDDEN_SIZE, "4096"),
    KEY("intermediate_size", INTERMEDIATE_SIZE, "27648"),
    KEY("num_hidden_layers", LAYERS, "64"),
    KEY("num_attention_heads", HEADS, "80"),
    NUL("num_key_value_heads", KV_HEADS, "8"),
    KEY("hidden_act", ACTIVATION, "silu"),
    KEY("max_position_embeddings", POSITIONS, "524288"),
    NUL("pad_token_id", PAD_TOKEN, "1"),
    KEY("tie_word_embeddings", TIE_WORD_EMBEDDINGS, "false"),
    KEY("attention_bias", ATTENTION_BIAS, "true"),
    KEY("attention_out_bias", ATTENTION_OUT_BIAS, "false"),
    KEY("attention_dropout", DROPOUT_ATTENTION, "0.1"),
    KEY("residual_dropout", DROPOUT_RESIDUAL, "0.1"),
    KEY("mlp_bias", MLP_BIAS, "false"),
    NUL("head_dim", HEAD_DIM, "128"),
};

static const struct plim_family_key ernie4_5_keys[] = {
    KEY("vocab_size", VOCAB_SIZE, "103424"),
    KEY("hidden_size", HIDDEN_SIZE, "1024"),
    KEY("intermediate_size", INTERMEDIATE_SIZE, "3072"),
    KEY("num_hidden_layers", LAYERS, "18"),
    KEY("num_attention_heads", HEADS, "16"),
    NUL("num_key_value_heads", KV_HEADS, "2"),
    KEY("hidden_act", ACTIVATION, "silu"),
    KEY("max_position_embeddings", POSITIONS, "131072"),
    NUL("pad_token_id", PAD_TOKEN, "0"),
    KEY("tie_word_embeddings", TIE_WORD_EMBEDDINGS, "true"),
    NUL("use_bias", ATTENTION_BIAS, "false"),
    NUL("use_bias", MLP_BIAS, "false"), /* one key, two places */
    NUL("head_dim", HEAD_DIM, "128"),
};

static const struct plim_family_key hunyuan_v1_dense_keys[] = {
    TASKS_OF_DECODER,
    KEY("vocab_size", VOCAB_SIZE, "290943"),
    KEY("hidden_size", HIDDEN_SIZE, "4096"),
    KEY("intermediate_size", INTERMEDIATE_SIZE, "11008"),
    KEY("num_hidden_layers", LAYERS, "32"),
    KEY("num_attention_heads", HEADS, "32"),
    NUL("num_key_value_heads", KV_HEADS, "null"),
    KEY("hidden_act", ACTIVATION, "silu"),
    KEY("max_position_embeddings", POSITIONS, "2048"),
    NUL("pad_token_id", PAD_TOKEN, "0"),
    KEY("tie_word_embeddings", TIE_WORD_EMBEDDINGS, "false"),
    KEY("attention_bias", ATTENTION_BIAS, "false"),
    KEY("attention_dropout", DROPOUT_ATTENTION, "0.0"),
    NUL("head_dim", HEAD_DIM, "null"),
};

/* head_dim is no field of the class, but its model takes it. conv_L_cache: how many tokens the convolutions see */
static const struct plim_family_key lfm2_keys[] = {
    KEY("vocab_size", VOCAB_SIZE, "65536"),
    KEY("hidden_size", HIDDEN_SIZE, "2560"),
    TWO("intermediate_size", "block_ff_dim", INTERMEDIATE_SIZE, "12288"),
    KEY("num_hidden_layers", LAYERS, "32"),
    KEY("num_attention_heads", HEADS, "32"),
    KEY("num_key_value_heads", KV_HEADS, "8"),
    KEY("head_dim", HEAD_DIM, NULL),
    KEY("max_position_embeddings", POSITIONS, "128000"),
    NUL("pad_token_id", PAD_TOKEN, "0"),
    TWO("tie_word_embeddings", "tie_embedding", TIE_WORD_EMBEDDINGS, "true"),
    KEY("conv_L_cache", LINEAR_KERNEL, "3"),
    KEY("block_multiple_of", WIDTH_MULTIPLE, "256"),
    KEY("block_ffn_dim_multiplier", WIDTH_MULTIPLIER, "1.0"),
    KEY("block_auto_adjust_ff_dim", ADJUSTS_WIDTH, "true"),
};

static const struct plim_family_key falcon_keys[] = {
    TASKS_OF_DECODER,
    KEY("vocab_size", VOCAB_SIZE, "65024"),
    TWO("hidden_size", "n_embed", HIDDEN_SIZE, "4544"),
    KEY("num_hidden_layers", LAYERS, "32"),
    KEY("num_attention_heads", HEADS, "71"),
    NUL("num_ln_in_parallel_attn", NORMS_IN_PARALLEL, "null"),
    KEY("hidden_dropout", DROPOUT_RESIDUAL, "0.0"),
    KEY("attention_dropout", DROPOUT_ATTENTION, "0.0"),
    NUL("num_kv_heads", KV_HEADS, "null"),
    KEY("new_decoder_architecture", NEW_ARCHITECTURE, "false"),
    KEY("multi_query", MULTI_QUERY, "true"),
    KEY("parallel_attn", PARALLEL_RESIDUAL, "true"),
    KEY("bias", ATTENTION_BIAS, "false"),
    KEY("bias", MLP_BIAS, "false"), /* one key, two places */
    KEY("max_position_embeddings", POSITIONS, "2048"),
    NUL("ffn_hidden_size", INTERMEDIATE_SIZE, "null"),
    KEY("activation", ACTIVATION, "gelu"),
    KEY("tie_word_embeddings", TIE_WORD_EMBEDDINGS, "true"),
};

/* transformers has no classification of theirs. */
#define CAUSAL_ALONE (1u << PLIM_TASK_CAUSAL_LM)
#define GLM_LINEARS {"q_proj", "k_proj", "v_proj", "o_proj", "gate_up_proj", "down_proj"}
#define UNGATED_LINEARS {"q_proj", "k_proj", "v_proj", "o_proj", "up_proj", "down_proj"}
#define QUERIES {"q_proj", "v_proj"}

const struct plim_family_info plim_further_families[PLIM_FAMILY_COUNT] = {
    [PLIM_FAMILY_GEMMA] = {KEYS(gemma_keys), .rotary = true, .liger = {LIGER_DECODER(IN_PLACE, GEGLU)},
                           .linears = LLAMA_LINEARS, .lora_default = QUERIES},
    [PLIM_FAMILY_STARCODER2] = {KEYS(starcoder2_keys), .sliding = PLIM_SLIDING_ALL, .rotary = true,
                                .functional_dropout = true,
                                .linears = {"q_proj", "k_proj", "v_proj", "o_proj", "c_fc", "c_proj"}},
    [PLIM_FAMILY_SMOLLM3] = {KEYS(smollm3_keys), .sliding = PLIM_SLIDING_NOPE, .nope = PLIM_NOPE_INTERVAL,
                             .layer_types = true, .rotary = true, .liger = LIGER_LLAMA, .linears = LLAMA_LINEARS},
    [PLIM_FAMILY_GRANITE] = {KEYS(granite_keys), .tasks = CAUSAL_ALONE, .rotary = true, .linears = LLAMA_LINEARS,
                             .liger = {.norms = PLIM_LIGER_NORM_IN_PLACE, .last_norm = PLIM_LIGER_NORM_IN_PLACE,
                                       .rope = true, .mlp = PLIM_LIGER_MLP_SWIGLU, .loss = PLIM_LIGER_LOSS_OF_LOGITS}},
    [PLIM_FAMILY_OLMO] = {KEYS(olmo_keys), .rotary = true, .linears = LLAMA_LINEARS},
    [PLIM_FAMILY_OLMO3] = {KEYS(olmo3_keys), .sliding = PLIM_SLIDING_FOURTH, .layer_types = true, .rotary = true,
                           .rotary_by_layers = true, .liger = LIGER_OLMO2, .linears = LLAMA_LINEARS},
    [PLIM_FAMILY_STABLELM] = {KEYS(stablelm_keys), .rotary = true, .heads_must_divide = true,
                              .head_dim_derives = true,
                              .linears = LLAMA_LINEARS, .lora_default = QUERIES},
    [PLIM_FAMILY_COHERE] = {KEYS(cohere_keys), .tasks = CAUSAL_ALONE, .rotary = true, .linears = LLAMA_LINEARS},
    [PLIM_FAMILY_COHERE2] = {KEYS(cohere2_keys), .tasks = CAUSAL_ALONE, .sliding = PLIM_SLIDING_PATTERN,
                             .nope = PLIM_NOPE_FULL,
                             .layer_types = true, .rotary = true, .linears = LLAMA_LINEARS},
    [PLIM_FAMILY_GLM] = {KEYS(glm_keys), .rotary = true, .rotary_rounds_up = true, .linears = GLM_LINEARS},
    [PLIM_FAMILY_GLM4] = {KEYS(glm_keys), .rotary = true, .rotary_rounds_up = true, .linears = GLM_LINEARS,
                          .liger = {.norms = PLIM_LIGER_NORM_APART, .last_norm = PLIM_LIGER_NORM_APART,
                                    .mlp = PLIM_LIGER_MLP_SWIGLU, .loss = PLIM_LIGER_LOSS_FUSED}},
    [PLIM_FAMILY_QWEN3_5_TEXT] = {KEYS(qwen3_5_keys), .layer_types = true, .linear = true, .rotary = true,
                                  .rotary_rounds_up = true,
                                  .liger = {.norms = PLIM_LIGER_NORM_APART, .last_norm = PLIM_LIGER_NORM_APART,
                                            .head_norms = PLIM_LIGER_NORM_APART, .mlp = PLIM_LIGER_MLP_SWIGLU,
                                            .loss = PLIM_LIGER_LOSS_FUSED},
                                  .linears = {"q_proj", "k_proj", "v_proj", "o_proj", "out_proj", "in_proj_qkv",
                                              "in_proj_z", "in_proj_b", "in_proj_a", "gate_proj", "up_proj",
                                              "down_proj"}},
    [PLIM_FAMILY_QWEN3_5_MOE_TEXT] = {KEYS(qwen3_5_moe_keys), .tasks = CAUSAL_ALONE, .layer_types = true,
                                      .linear = true, .rotary = true,
                                      .rotary_rounds_up = true,
                                      .liger = {.norms = PLIM_LIGER_NORM_APART, .last_norm = PLIM_LIGER_NORM_APART,
                                                .head_norms = PLIM_LIGER_NORM_APART, .mlp = PLIM_LIGER_MLP_EXPERTS,
                                                .loss = PLIM_LIGER_LOSS_FUSED},
                                      .linears = {"q_proj", "k_proj", "v_proj", "o_proj", "out_proj", "in_proj_qkv",
                                                  "in_proj_z", "in_proj_b", "in_proj_a", "gate_proj", "up_proj",
                                                  "down_proj", "shared_expert_gate"}},
    [PLIM_FAMILY_QWEN3_NEXT] = {KEYS(qwen3_next_keys), .layer_types = true, .linear = true, .rotary = true,
                                .rotary_rounds_up = true,
                                .liger = {.norms = PLIM_LIGER_NORM_APART, .last_norm = PLIM_LIGER_NORM_APART,
                                          .head_norms = PLIM_LIGER_NORM_APART, .mlp = PLIM_LIGER_MLP_EXPERTS,
                                          .loss = PLIM_LIGER_LOSS_FUSED},
                                .linears = {"q_proj", "k_proj", "v_proj", "o_proj", "in_proj_qkvz", "in_proj_ba",
                                            "out_proj", "gate_proj", "up_proj", "down_proj", "shared_expert_gate"}},
    [PLIM_FAMILY_OLMOE] = {KEYS(olmoe_keys), .tasks = CAUSAL_ALONE, .rotary = true, .head_dim_derives = true,
                           .linears = {"q_proj", "k_proj", "v_proj", "o_proj"}},
    [PLIM_FAMILY_GRANITEMOE] = {KEYS(granitemoe_keys), .tasks = CAUSAL_ALONE, .rotary = true,
                                .linears = {"q_proj", "k_proj", "v_proj", "o_proj"}},
    [PLIM_FAMILY_MINISTRAL3] = {KEYS(ministral3_keys), .sliding = PLIM_SLIDING_ALL, .rotary = true,
                                .rope = PLIM_ROPE_YARN, .rope_original_positions = 16384, .linears = LLAMA_LINEARS},
    [PLIM_FAMILY_ARCEE] = {KEYS(arcee_keys), .rotary = true, .heads_must_divide = true, .linears = UNGATED_LINEARS},
    [PLIM_FAMILY_NEMOTRON] = {KEYS(nemotron_keys), .rotary = true, .required = {PLIM_FIELD_KV_HEADS},
                              .liger = {.mlp = PLIM_LIGER_MLP_RELU2, .loss = PLIM_LIGER_LOSS_FUSED},
                              .linears = UNGATED_LINEARS},
    [PLIM_FAMILY_EXAONE4] = {KEYS(exaone4_keys), .sliding = PLIM_SLIDING_PATTERN, .nope = PLIM_NOPE_FULL,
                             .layer_types = true, .rotary = true,
                             .liger = {LIGER_DECODER(APART, SWIGLU), .head_norms = PLIM_LIGER_NORM_APART},
                             .linears = LLAMA_LINEARS},
    [PLIM_FAMILY_SEED_OSS] = {KEYS(seed_oss_keys), .rotary = true, .functional_dropout = true,
                              .linears = LLAMA_LINEARS},
    [PLIM_FAMILY_ERNIE4_5] = {KEYS(ernie4_5_keys), .tasks = CAUSAL_ALONE, .rotary = true, .linears = LLAMA_LINEARS},
    [PLIM_FAMILY_HUNYUAN_V1_DENSE] = {KEYS(hunyuan_v1_dense_keys), .rotary = true, .required = {PLIM_FIELD_HEAD_DIM},
                                      .liger = LIGER_LLAMA, .linears = LLAMA_LINEARS},
    [PLIM_FAMILY_FALCON] = {KEYS(falcon_keys), .rotary = true, .heads_must_divide = true, .functional_dropout = true,
                            .uncut = true, .linears = {"query_key_value", "dense", "dense_h_to_4h", "dense_4h_to_h"},
                            .lora_default = {"query_key_value"}},
    [PLIM_FAMILY_LFM2] = {KEYS(lfm2_keys), .tasks = CAUSAL_ALONE, .layer_types = true, .convolves = true,
                          .activation = PLIM_ACTIVATION_SILU, .rotary = true,
                          .linears = {"q_proj", "k_proj", "v_proj", "out_proj", "in_proj", "w1", "w3", "w2"}},
};
