/* The families: how the keys of their config.json are called, and what tells them apart. */
#include "family_rows.h"

static const struct plim_family_key gpt2_keys[] = {
    TASKS_OF_DECODER,
    KEY("vocab_size", VOCAB_SIZE, "50257"),
    TWO("n_positions", "max_position_embeddings", POSITIONS, "1024"),
    TWO("n_embd", "hidden_size", HIDDEN_SIZE, "768"),
    TWO("n_layer", "num_hidden_layers", LAYERS, "12"),
    TWO("n_head", "num_attention_heads", HEADS, "12"),
    NUL("n_inner", INTERMEDIATE_SIZE, "null"),
    KEY("activation_function", ACTIVATION, "gelu_new"),
    KEY("resid_pdrop", DROPOUT_RESIDUAL, "0.1"),
    KEY("embd_pdrop", DROPOUT_EMBEDDING, "0.1"),
    KEY("attn_pdrop", DROPOUT_ATTENTION, "0.1"),
    KEY("scale_attn_weights", SCALE_ATTN_WEIGHTS, "true"),
    KEY("scale_attn_by_inverse_layer_idx", SCALE_ATTN_BY_LAYER, "false"),
    KEY("reorder_and_upcast_attn", REORDER_AND_UPCAST, "false"),
    KEY("tie_word_embeddings", TIE_WORD_EMBEDDINGS, "true"),
};

static const struct plim_family_key llama_keys[] = {
    TASKS_OF_DECODER,
    KEYS_OF_LLAMA,
};

static const struct plim_family_key mistral_keys[] = {
    TASKS_OF_DECODER,
    KEY("vocab_size", VOCAB_SIZE, "32000"),
    KEY("hidden_size", HIDDEN_SIZE, "4096"),
    KEY("intermediate_size", INTERMEDIATE_SIZE, "14336"),
    KEY("num_hidden_layers", LAYERS, "32"),
    KEY("num_attention_heads", HEADS, "32"),
    KEY("num_key_value_heads", KV_HEADS, "8"),
    NUL("head_dim", HEAD_DIM, "null"),
    KEY("hidden_act", ACTIVATION, "silu"),
    KEY("max_position_embeddings", POSITIONS, "131072"),
    NUL("pad_token_id", PAD_TOKEN, "null"),
    KEY("tie_word_embeddings", TIE_WORD_EMBEDDINGS, "false"),
    NUL("sliding_window", SLIDING_WINDOW, "4096"),
    KEY("attention_dropout", DROPOUT_ATTENTION, "0.0"),
};

/* head_dim is no field of Qwen2Config, PhiConfig, Phi3Config and Olmo2Config, but their models take
 * it from the configuration where a config.json has it; without it, it derives. */
static const struct plim_family_key qwen2_keys[] = {
    TASKS_OF_DECODER,
    KEY("vocab_size", VOCAB_SIZE, "151936"),
    KEY("hidden_size", HIDDEN_SIZE, "4096"),
    KEY("intermediate_size", INTERMEDIATE_SIZE, "22016"),
    KEY("num_hidden_layers", LAYERS, "32"),
    KEY("num_attention_heads", HEADS, "32"),
    NUL("num_key_value_heads", KV_HEADS, "32"),
    KEY("head_dim", HEAD_DIM, NULL),
    KEY("hidden_act", ACTIVATION, "silu"),
    KEY("max_position_embeddings", POSITIONS, "32768"),
    KEY("tie_word_embeddings", TIE_WORD_EMBEDDINGS, "false"),
    KEY("use_sliding_window", USE_SLIDING_WINDOW, "false"),
    NUL("sliding_window", SLIDING_WINDOW, "4096"),
    KEY("max_window_layers", MAX_WINDOW_LAYERS, "28"),
    KEY("attention_dropout", DROPOUT_ATTENTION, "0.0"),
    NUL("pad_token_id", PAD_TOKEN, "null"),
};

static const struct plim_family_key qwen3_keys[] = {
    TASKS_OF_DECODER,
    KEY("vocab_size", VOCAB_SIZE, "151936"),
    KEY("hidden_size", HIDDEN_SIZE, "4096"),
    KEY("intermediate_size", INTERMEDIATE_SIZE, "22016"),
    KEY("num_hidden_layers", LAYERS, "32"),
    KEY("num_attention_heads", HEADS, "32"),
    NUL("num_key_value_heads", KV_HEADS, "32"),
    KEY("head_dim", HEAD_DIM, "128"),
    KEY("hidden_act", ACTIVATION, "silu"),
    KEY("max_position_embeddings", POSITIONS, "32768"),
    KEY("tie_word_embeddings", TIE_WORD_EMBEDDINGS, "false"),
    KEY("attention_bias", ATTENTION_BIAS, "false"),
    KEY("use_sliding_window", USE_SLIDING_WINDOW, "false"),
    NUL("sliding_window", SLIDING_WINDOW, "4096"),
    KEY("max_window_layers", MAX_WINDOW_LAYERS, "28"),
    KEY("attention_dropout", DROPOUT_ATTENTION, "0.0"),
    NUL("pad_token_id", PAD_TOKEN, "null"),
};

/* Phi3Config has an embd_pdrop too, but its model has no such dropout. */
static const struct plim_family_key phi3_keys[] = {
    TASKS_OF_DECODER,
    KEY("vocab_size", VOCAB_SIZE, "32064"),
    KEY("hidden_size", HIDDEN_SIZE, "3072"),
    KEY("intermediate_size", INTERMEDIATE_SIZE, "8192"),
    KEY("num_hidden_layers", LAYERS, "32"),
    KEY("num_attention_heads", HEADS, "32"),
    NUL("num_key_value_heads", KV_HEADS, "null"),
    KEY("head_dim", HEAD_DIM, NULL),
    KEY("resid_pdrop", DROPOUT_RESIDUAL, "0.0"),
    KEY("attention_dropout", DROPOUT_ATTENTION, "0.0"),
    KEY("hidden_act", ACTIVATION, "silu"),
    KEY("max_position_embeddings", POSITIONS, "4096"),
    KEY("original_max_position_embeddings", ROPE_ORIGINAL_POSITIONS, "4096"),
    KEY("tie_word_embeddings", TIE_WORD_EMBEDDINGS, "false"),
    KEY("partial_rotary_factor", PARTIAL_ROTARY, "1.0"),
    NUL("pad_token_id", PAD_TOKEN, "32000"),
    NUL("sliding_window", SLIDING_WINDOW, "null"),
};

static const struct plim_family_key phi_keys[] = {
    TASKS_OF_DECODER,
    KEY("vocab_size", VOCAB_SIZE, "51200"),
    KEY("hidden_size", HIDDEN_SIZE, "2048"),
    KEY("intermediate_size", INTERMEDIATE_SIZE, "8192"),
    KEY("num_hidden_layers", LAYERS, "24"),
    KEY("num_attention_heads", HEADS, "32"),
    NUL("num_key_value_heads", KV_HEADS, "null"),
    KEY("head_dim", HEAD_DIM, NULL),
    KEY("resid_pdrop", DROPOUT_RESIDUAL, "0.0"),
    KEY("embd_pdrop", DROPOUT_EMBEDDING, "0.0"),
    KEY("attention_dropout", DROPOUT_ATTENTION, "0.0"),
    KEY("hidden_act", ACTIVATION, "gelu_new"),
    KEY("max_position_embeddings", POSITIONS, "2048"),
    KEY("tie_word_embeddings", TIE_WORD_EMBEDDINGS, "false"),
    KEY("partial_rotary_factor", PARTIAL_ROTARY, "0.5"),
    KEY("qk_layernorm", QK_LAYERNORM, "false"),
    NUL("pad_token_id", PAD_TOKEN, "null"),
};

static const struct plim_family_key gemma2_keys[] = {
    TASKS_OF_DECODER,
    KEY("vocab_size", VOCAB_SIZE, "256000"),
    KEY("hidden_size", HIDDEN_SIZE, "2304"),
    KEY("intermediate_size", INTERMEDIATE_SIZE, "9216"),
    KEY("num_hidden_layers", LAYERS, "26"),
    KEY("num_attention_heads", HEADS, "8"),
    KEY("num_key_value_heads", KV_HEADS, "4"),
    KEY("head_dim", HEAD_DIM, "256"),
    KEY("hidden_activation", ACTIVATION, "gelu_pytorch_tanh"),
    KEY("max_position_embeddings", POSITIONS, "8192"),
    NUL("pad_token_id", PAD_TOKEN, "0"),
    KEY("tie_word_embeddings", TIE_WORD_EMBEDDINGS, "true"),
    KEY("attention_bias", ATTENTION_BIAS, "false"),
    KEY("attention_dropout", DROPOUT_ATTENTION, "0.0"),
    KEY("sliding_window", SLIDING_WINDOW, "4096"),
    NUL("final_logit_softcapping", FINAL_SOFTCAP, "30.0"),
    NUL("attn_logit_softcapping", ATTN_SOFTCAP, "50.0"),
};

static const struct plim_family_key gemma3_text_keys[] = {TASKS_OF_DECODER, KEYS_OF_GEMMA3_TEXT};

static const struct plim_family_key gpt_neox_keys[] = {
    TASKS_OF_DECODER,
    KEY("vocab_size", VOCAB_SIZE, "50432"),
    KEY("hidden_size", HIDDEN_SIZE, "6144"),
    KEY("num_hidden_layers", LAYERS, "44"),
    KEY("num_attention_heads", HEADS, "64"),
    KEY("intermediate_size", INTERMEDIATE_SIZE, "24576"),
    KEY("hidden_act", ACTIVATION, "gelu"),
    KEY("attention_dropout", DROPOUT_ATTENTION, "0.0"),
    KEY("hidden_dropout", DROPOUT_RESIDUAL, "0.0"),
    KEY("hidden_dropout", DROPOUT_EMBEDDING, "0.0"), /* one key, two places */
    KEY("max_position_embeddings", POSITIONS, "2048"),
    KEY("tie_word_embeddings", TIE_WORD_EMBEDDINGS, "false"),
    KEY("use_parallel_residual", PARALLEL_RESIDUAL, "true"),
    KEY("rotary_pct", PARTIAL_ROTARY, "0.25"),
    KEY("attention_bias", ATTENTION_BIAS, "true"),
};

static const struct plim_family_key opt_keys[] = {
    TASKS_OF_DECODER,
    KEY("vocab_size", VOCAB_SIZE, "50272"),
    KEY("hidden_size", HIDDEN_SIZE, "768"),
    KEY("num_hidden_layers", LAYERS, "12"),
    KEY("ffn_dim", INTERMEDIATE_SIZE, "3072"),
    KEY("max_position_embeddings", POSITIONS, "2048"),
    KEY("do_layer_norm_before", LAYER_NORM_BEFORE, "true"),
    KEY("_remove_final_layer_norm", REMOVE_FINAL_LAYER_NORM, "false"),
    NUL("word_embed_proj_dim", WORD_EMBED_PROJ_DIM, "null"),
    KEY("dropout", DROPOUT_RESIDUAL, "0.1"),
    KEY("attention_dropout", DROPOUT_ATTENTION, "0.0"),
    KEY("num_attention_heads", HEADS, "12"),
    KEY("activation_function", ACTIVATION, "relu"),
    KEY("layerdrop", LAYERDROP, "0.0"),
    NUL("pad_token_id", PAD_TOKEN, "1"),
    KEY("enable_bias", ENABLE_BIAS, "true"),
    KEY("layer_norm_elementwise_affine", LAYER_NORM_AFFINE, "true"),
    KEY("tie_word_embeddings", TIE_WORD_EMBEDDINGS, "true"),
};

static const struct plim_family_key bloom_keys[] = {
    TASKS_OF_DECODER,
    KEY("vocab_size", VOCAB_SIZE, "250880"),
    TWO("hidden_size", "n_embed", HIDDEN_SIZE, "64"),
    TWO("n_layer", "num_hidden_layers", LAYERS, "2"),
    TWO("n_head", "num_attention_heads", HEADS, "8"),
    KEY("apply_residual_connection_post_layernorm", POST_LAYERNORM_RESIDUAL, "false"),
    KEY("hidden_dropout", DROPOUT_RESIDUAL, "0.0"),
    KEY("attention_dropout", DROPOUT_ATTENTION, "0.0"),
    KEY("tie_word_embeddings", TIE_WORD_EMBEDDINGS, "true"),
};

static const struct plim_family_key olmo2_keys[] = {
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
};

static const struct plim_family_key bert_keys[] = {
    KEY("task", TASK, "masked-lm"),
    KEY("num_labels", LABELS, "2"),
    KEY("vocab_size", VOCAB_SIZE, "30522"),
    KEY("hidden_size", HIDDEN_SIZE, "768"),
    KEY("num_hidden_layers", LAYERS, "12"),
    KEY("num_attention_heads", HEADS, "12"),
    KEY("intermediate_size", INTERMEDIATE_SIZE, "3072"),
    KEY("hidden_act", ACTIVATION, "gelu"),
    KEY("hidden_dropout_prob", DROPOUT_RESIDUAL, "0.1"),
    KEY("hidden_dropout_prob", DROPOUT_EMBEDDING, "0.1"), /* one key, two places */
    KEY("attention_probs_dropout_prob", DROPOUT_ATTENTION, "0.1"),
    KEY("max_position_embeddings", POSITIONS, "512"),
    KEY("type_vocab_size", TYPE_VOCAB_SIZE, "2"),
    NUL("pad_token_id", PAD_TOKEN, "0"),
    NUL("classifier_dropout", DROPOUT_CLASSIFIER, "null"),
    KEY("tie_word_embeddings", TIE_WORD_EMBEDDINGS, "true"),
};

#define KEYS_OF_ROBERTA(vocabulary)                                                                \
    KEY("task", TASK, "masked-lm"),                                                                \
    KEY("num_labels", LABELS, "2"),                                                                \
    KEY("vocab_size", VOCAB_SIZE, vocabulary),                                                     \
    KEY("hidden_size", HIDDEN_SIZE, "768"),                                                        \
    KEY("num_hidden_layers", LAYERS, "12"),                                                        \
    KEY("num_attention_heads", HEADS, "12"),                                                       \
    KEY("intermediate_size", INTERMEDIATE_SIZE, "3072"),                                           \
    KEY("hidden_act", ACTIVATION, "gelu"),                                                         \
    KEY("hidden_dropout_prob", DROPOUT_RESIDUAL, "0.1"),                                           \
    KEY("hidden_dropout_prob", DROPOUT_EMBEDDING, "0.1"),                                          \
    KEY("attention_probs_dropout_prob", DROPOUT_ATTENTION, "0.1"),                                 \
    KEY("max_position_embeddings", POSITIONS, "512"),                                              \
    KEY("type_vocab_size", TYPE_VOCAB_SIZE, "2"),                                                  \
    KEY("pad_token_id", PAD_TOKEN, "1"),                                                           \
    NUL("classifier_dropout", DROPOUT_CLASSIFIER, "null"),                                         \
    KEY("tie_word_embeddings", TIE_WORD_EMBEDDINGS, "true")

static const struct plim_family_key roberta_keys[] = {KEYS_OF_ROBERTA("50265")};
static const struct plim_family_key xlm_roberta_keys[] = {KEYS_OF_ROBERTA("30522")};

static const struct plim_family_key electra_keys[] = {
    KEY("task", TASK, "masked-lm"),
    KEY("num_labels", LABELS, "2"),
    KEY("vocab_size", VOCAB_SIZE, "30522"),
    KEY("embedding_size", WORD_EMBED_PROJ_DIM, "128"),
    KEY("hidden_size", HIDDEN_SIZE, "256"),
    KEY("num_hidden_layers", LAYERS, "12"),
    KEY("num_attention_heads", HEADS, "4"),
    KEY("intermediate_size", INTERMEDIATE_SIZE, "1024"),
    KEY("hidden_act", ACTIVATION, "gelu"),
    KEY("hidden_dropout_prob", DROPOUT_RESIDUAL, "0.1"),
    KEY("hidden_dropout_prob", DROPOUT_EMBEDDING, "0.1"), /* one key, two places */
    KEY("attention_probs_dropout_prob", DROPOUT_ATTENTION, "0.1"),
    KEY("max_position_embeddings", POSITIONS, "512"),
    KEY("type_vocab_size", TYPE_VOCAB_SIZE, "2"),
    NUL("pad_token_id", PAD_TOKEN, "0"),
    NUL("classifier_dropout", DROPOUT_CLASSIFIER, "null"),
    KEY("tie_word_embeddings", TIE_WORD_EMBEDDINGS, "true"),
};

static const struct plim_family_key distilbert_keys[] = {
    KEY("task", TASK, "masked-lm"),
    KEY("num_labels", LABELS, "2"),
    KEY("vocab_size", VOCAB_SIZE, "30522"),
    KEY("max_position_embeddings", POSITIONS, "512"),
    KEY("sinusoidal_pos_embds", SINUSOIDAL_POSITIONS, "false"),
    TWO("n_layers", "num_hidden_layers", LAYERS, "6"),
    TWO("n_heads", "num_attention_heads", HEADS, "12"),
    TWO("dim", "hidden_size", HIDDEN_SIZE, "768"),
    KEY("hidden_dim", INTERMEDIATE_SIZE, "3072"),
    KEY("dropout", DROPOUT_RESIDUAL, "0.1"),
    KEY("dropout", DROPOUT_EMBEDDING, "0.1"), /* one key, two places */
    KEY("attention_dropout", DROPOUT_ATTENTION, "0.1"),
    KEY("activation", ACTIVATION, "gelu"),
    KEY("seq_classif_dropout", DROPOUT_CLASSIFIER, "0.2"),
    KEY("qa_dropout", DROPOUT_ANSWERS, "0.1"),
    NUL("pad_token_id", PAD_TOKEN, "0"),
    KEY("tie_word_embeddings", TIE_WORD_EMBEDDINGS, "true"),
};

static const struct plim_family_key modernbert_keys[] = {
    KEY("task", TASK, "masked-lm"),
    KEY("num_labels", LABELS, "2"),
    KEY("vocab_size", VOCAB_SIZE, "50368"),
    KEY("hidden_size", HIDDEN_SIZE, "768"),
    KEY("intermediate_size", INTERMEDIATE_SIZE, "1152"),
    KEY("num_hidden_layers", LAYERS, "22"),
    KEY("num_attention_heads", HEADS, "12"),
    KEY("hidden_activation", ACTIVATION, "gelu"),
    KEY("max_position_embeddings", POSITIONS, "8192"),
    KEY("norm_bias", NORM_BIAS, "false"),
    NUL("pad_token_id", PAD_TOKEN, "50283"),
    KEY("attention_bias", ATTENTION_BIAS, "false"),
    KEY("attention_dropout", DROPOUT_ATTENTION, "0.0"),
    KEY("local_attention", LOCAL_ATTENTION, "128"),
    KEY("global_attn_every_n_layers", SLIDING_PATTERN, "3"),
    KEY("embedding_dropout", DROPOUT_EMBEDDING, "0.0"),
    KEY("mlp_bias", MLP_BIAS, "false"),
    KEY("mlp_dropout", DROPOUT_MLP, "0.0"),
    KEY("decoder_bias", DECODER_BIAS, "true"),
    KEY("classifier_pooling", CLASSIFIER_POOLING, "cls"),
    KEY("classifier_dropout", DROPOUT_CLASSIFIER, "0.0"),
    KEY("classifier_bias", CLASSIFIER_BIAS, "false"),
    KEY("classifier_activation", CLASSIFIER_ACTIVATION, "gelu"),
    KEY("tie_word_embeddings", TIE_WORD_EMBEDDINGS, "true"),
};

/* Those from position_buckets on are no fields of DebertaV2Config, but its modules look for them. */
static const struct plim_family_key deberta_v2_keys[] = {
    KEY("task", TASK, "masked-lm"),
    KEY("num_labels", LABELS, "2"),
    KEY("vocab_size", VOCAB_SIZE, "128100"),
    KEY("hidden_size", HIDDEN_SIZE, "1536"),
    KEY("num_hidden_layers", LAYERS, "24"),
    KEY("num_attention_heads", HEADS, "24"),
    KEY("intermediate_size", INTERMEDIATE_SIZE, "6144"),
    KEY("hidden_act", ACTIVATION, "gelu"),
    KEY("hidden_dropout_prob", DROPOUT_RESIDUAL, "0.1"),
    KEY("hidden_dropout_prob", DROPOUT_EMBEDDING, "0.1"), /* one key, two places */
    KEY("attention_probs_dropout_prob", DROPOUT_ATTENTION, "0.1"),
    KEY("max_position_embeddings", POSITIONS, "512"),
    KEY("type_vocab_size", TOKEN_TYPES, "0"),
    KEY("relative_attention", RELATIVE_ATTENTION, "false"),
    KEY("max_relative_positions", RELATIVE_POSITIONS, "-1"),
    NUL("pad_token_id", PAD_TOKEN, "0"),
    KEY("position_biased_input", ABSOLUTE_POSITIONS, "true"),
    NUL("pos_att_type", POSITION_SCORES, "none"),
    KEY("pooler_dropout", DROPOUT_POOLER, "0.0"),
    KEY("pooler_hidden_act", CLASSIFIER_ACTIVATION, "gelu"),
    KEY("tie_word_embeddings", TIE_WORD_EMBEDDINGS, "true"),
    KEY("position_buckets", POSITION_BUCKETS, "-1"),
    KEY("share_att_key", SHARES_PROJECTIONS, "false"),
    KEY("norm_rel_ebd", DISTANCE_NORM, "none"),
    NUL("cls_dropout", DROPOUT_CLASSIFIER, "null"),
    KEY("attention_head_size", HEAD_DIM, NULL),
};

static const struct plim_family_key mixtral_keys[] = {
    TASKS_OF_DECODER,
    KEY("vocab_size", VOCAB_SIZE, "32000"),
    KEY("hidden_size", HIDDEN_SIZE, "4096"),
    KEY("intermediate_size", INTERMEDIATE_SIZE, "14336"),
    KEY("num_hidden_layers", LAYERS, "32"),
    KEY("num_attention_heads", HEADS, "32"),
    NUL("num_key_value_heads", KV_HEADS, "8"),
    NUL("head_dim", HEAD_DIM, "null"),
    KEY("hidden_act", ACTIVATION, "silu"),
    KEY("max_position_embeddings", POSITIONS, "131072"),
    NUL("pad_token_id", PAD_TOKEN, "null"),
    KEY("tie_word_embeddings", TIE_WORD_EMBEDDINGS, "false"),
    NUL("sliding_window", SLIDING_WINDOW, "null"),
    KEY("attention_dropout", DROPOUT_ATTENTION, "0.0"),
    KEY("num_experts_per_tok", EXPERTS_PER_TOKEN, "2"),
    TWO("num_local_experts", "num_experts", EXPERTS, "8"),
    KEY("router_aux_loss_coef", AUX_LOSS_COEF, "0.001"),
};

static const struct plim_family_key qwen2_moe_keys[] = {
    TASKS_OF_DECODER,
    KEY("vocab_size", VOCAB_SIZE, "151936"),
    KEY("hidden_size", HIDDEN_SIZE, "2048"),
    KEY("intermediate_size", INTERMEDIATE_SIZE, "5632"),
    KEY("num_hidden_layers", LAYERS, "24"),
    KEY("num_attention_heads", HEADS, "16"),
    NUL("num_key_value_heads", KV_HEADS, "16"),
    KEY("head_dim", HEAD_DIM, NULL),
    KEY("hidden_act", ACTIVATION, "silu"),
    KEY("max_position_embeddings", POSITIONS, "32768"),
    KEY("tie_word_embeddings", TIE_WORD_EMBEDDINGS, "false"),
    KEY("use_sliding_window", USE_SLIDING_WINDOW, "false"),
    NUL("sliding_window", SLIDING_WINDOW, "4096"),
    KEY("max_window_layers", MAX_WINDOW_LAYERS, "28"),
    KEY("attention_dropout", DROPOUT_ATTENTION, "0.0"),
    KEY("decoder_sparse_step", SPARSE_STEP, "1"),
    KEY("moe_intermediate_size", EXPERT_SIZE, "1408"),
    KEY("shared_expert_intermediate_size", SHARED_EXPERT_SIZE, "5632"),
    KEY("num_experts_per_tok", EXPERTS_PER_TOKEN, "4"),
    KEY("num_experts", EXPERTS, "60"),
    KEY("router_aux_loss_coef", AUX_LOSS_COEF, "0.001"),
    KEY("norm_topk_prob", NORMALIZED_ROUTING, "false"),
    KEY("qkv_bias", ATTENTION_BIAS, "true"),
    NUL("pad_token_id", PAD_TOKEN, "null"),
};

static const struct plim_family_key qwen3_moe_keys[] = {
    TASKS_OF_DECODER,
    KEY("vocab_size", VOCAB_SIZE, "151936"),
    KEY("hidden_size", HIDDEN_SIZE, "2048"),
    KEY("intermediate_size", INTERMEDIATE_SIZE, "6144"),
    KEY("num_hidden_layers", LAYERS, "24"),
    KEY("num_attention_heads", HEADS, "32"),
    KEY("num_key_value_heads", KV_HEADS, "4"),
    KEY("head_dim", HEAD_DIM, NULL),
    KEY("hidden_act", ACTIVATION, "silu"),
    KEY("max_position_embeddings", POSITIONS, "32768"),
    KEY("tie_word_embeddings", TIE_WORD_EMBEDDINGS, "false"),
    KEY("attention_bias", ATTENTION_BIAS, "false"),
    KEY("use_sliding_window", USE_SLIDING_WINDOW, "false"),
    NUL("sliding_window", SLIDING_WINDOW, "4096"),
    KEY("attention_dropout", DROPOUT_ATTENTION, "0.0"),
    KEY("decoder_sparse_step", SPARSE_STEP, "1"),
    KEY("moe_intermediate_size", EXPERT_SIZE, "768"),
    KEY("num_experts_per_tok", EXPERTS_PER_TOKEN, "8"),
    TWO("num_experts", "num_local_experts", EXPERTS, "128"),
    KEY("router_aux_loss_coef", AUX_LOSS_COEF, "0.001"),
    KEY("norm_topk_prob", NORMALIZED_ROUTING, "false"),
    NUL("pad_token_id", PAD_TOKEN, "null"),
};

static const struct plim_family_key gpt_oss_keys[] = {
    TASKS_OF_DECODER,
    KEY("num_hidden_layers", LAYERS, "36"),
    TWO("num_local_experts", "num_experts", EXPERTS, "128"),
    KEY("vocab_size", VOCAB_SIZE, "201088"),
    KEY("hidden_size", HIDDEN_SIZE, "2880"),
    KEY("intermediate_size", INTERMEDIATE_SIZE, "2880"),
    NUL("head_dim", HEAD_DIM, "64"),
    KEY("num_attention_heads", HEADS, "64"),
    NUL("num_key_value_heads", KV_HEADS, "8"),
    KEY("sliding_window", SLIDING_WINDOW, "128"),
    KEY("tie_word_embeddings", TIE_WORD_EMBEDDINGS, "false"),
    KEY("hidden_act", ACTIVATION, "silu"),
    KEY("max_position_embeddings", POSITIONS, "131072"),
    KEY("attention_dropout", DROPOUT_ATTENTION, "0.0"),
    KEY("num_experts_per_tok", EXPERTS_PER_TOKEN, "4"),
    KEY("router_aux_loss_coef", AUX_LOSS_COEF, "0.001"),
    NUL("pad_token_id", PAD_TOKEN, "null"),
    KEY("attention_bias", ATTENTION_BIAS, "true"),
};

static const struct plim_family_key vit_keys[] = {
    KEY("task", TASK, "classification"),
    KEY("num_labels", LABELS, "2"),
    KEY("hidden_size", HIDDEN_SIZE, "768"),
    KEY("num_hidden_layers", LAYERS, "12"),
    KEY("num_attention_heads", HEADS, "12"),
    KEY("intermediate_size", INTERMEDIATE_SIZE, "3072"),
    KEY("hidden_act", ACTIVATION, "gelu"),
    KEY("hidden_dropout_prob", DROPOUT_RESIDUAL, "0.0"),
    KEY("hidden_dropout_prob", DROPOUT_EMBEDDING, "0.0"), /* one key, two places */
    KEY("attention_probs_dropout_prob", DROPOUT_ATTENTION, "0.0"),
    KEY("image_size", IMAGE_SIZE, "224"),
    KEY("patch_size", PATCH_SIZE, "16"),
    KEY("num_channels", CHANNELS, "3"),
    KEY("qkv_bias", ATTENTION_BIAS, "true"),
};

#define ATTENTION_LINEARS {"q_proj", "k_proj", "v_proj", "o_proj"}
#define ENCODER_TASKS (1u << PLIM_TASK_MASKED_LM | 1u << PLIM_TASK_CLASSIFICATION | \
                       1u << PLIM_TASK_TOKEN_CLASSIFICATION | 1u << PLIM_TASK_QUESTION_ANSWERING)
#define NEOX_LINEARS {"query_key_value", "dense", "dense_h_to_4h", "dense_4h_to_h"}

static const struct plim_family_info families[PLIM_FAMILY_COUNT] = {
    [PLIM_FAMILY_GPT2] = {KEYS(gpt2_keys), .uncut = true, .learned_positions = true, .heads_must_divide = true,
                          .linears = {"c_attn", "c_proj", "c_fc"}, .lora_default = {"c_attn"}},
    [PLIM_FAMILY_LLAMA] = {KEYS(llama_keys), .rotary = true, .liger = LIGER_LLAMA,
                           .heads_must_divide = true, .linears = LLAMA_LINEARS, .lora_default = {"q_proj", "v_proj"}},
    [PLIM_FAMILY_MISTRAL] = {KEYS(mistral_keys), .sliding = PLIM_SLIDING_ALL, .rotary = true,
                             .liger = {LIGER_DECODER(IN_PLACE, SWIGLU), .has_own_loss = true},
                             .linears = LLAMA_LINEARS, .lora_default = {"q_proj", "v_proj"}},
    [PLIM_FAMILY_MINISTRAL] = {KEYS(mistral_keys), .sliding = PLIM_SLIDING_ALL, .layer_types = true, .rotary = true,
                               .required = {PLIM_FIELD_HEAD_DIM, PLIM_FIELD_SLIDING_WINDOW},
                               .liger = LIGER_LLAMA, .linears = LLAMA_LINEARS},
    [PLIM_FAMILY_QWEN2] = {KEYS(qwen2_keys), .sliding = PLIM_SLIDING_TAIL, .layer_types = true,
                           .rotary = true, .liger = LIGER_LLAMA, .linears = LLAMA_LINEARS,
                           .lora_default = {"q_proj", "v_proj"}},
    [PLIM_FAMILY_QWEN3] = {KEYS(qwen3_keys), .sliding = PLIM_SLIDING_TAIL, .layer_types = true,
                           .rotary = true,
                           .liger = {LIGER_DECODER(IN_PLACE, SWIGLU), .head_norms = PLIM_LIGER_NORM_IN_PLACE},
                           .linears = LLAMA_LINEARS,
                           .lora_default = {"q_proj", "v_proj"}},
    [PLIM_FAMILY_PHI3] = {KEYS(phi3_keys), .sliding = PLIM_SLIDING_ALL, .rotary = true,
                          .rotary_rounds_up = true, .liger = LIGER_LLAMA,
                          .linears = {"qkv_proj", "o_proj", "gate_up_proj", "down_proj"}},
    [PLIM_FAMILY_PHI] = {KEYS(phi_keys), .rotary = true,
                         .linears = {"q_proj", "k_proj", "v_proj", "dense", "fc1", "fc2"},
                         .lora_default = {"q_proj", "v_proj", "fc1", "fc2"}},
    [PLIM_FAMILY_GEMMA2] = {KEYS(gemma2_keys), .sliding = PLIM_SLIDING_ALTERNATE,
                            .layer_types = true, .rotary = true, .heads_must_divide = true,
                            .liger = {LIGER_DECODER(APART, GEGLU)},
                            .linears = LLAMA_LINEARS, .lora_default = {"q_proj", "v_proj"}},
    [PLIM_FAMILY_GEMMA3_TEXT] = {KEYS(gemma3_text_keys), .sliding = PLIM_SLIDING_PATTERN,
                                 .layer_types = true, .rotary = true, .rotary_by_layers = true,
                                 .liger = {LIGER_DECODER(APART, GEGLU), .head_norms = PLIM_LIGER_NORM_APART},
                                 .heads_must_divide = true, .linears = LLAMA_LINEARS,
                                 .lora_default = {"q_proj", "v_proj"}},
    [PLIM_FAMILY_GPT_NEOX] = {KEYS(gpt_neox_keys), .uncut = true, .rotary = true, .rotary_rounds_up = true,
                              .heads_must_divide = true, .linears = NEOX_LINEARS,
                              .lora_default = {"query_key_value"}},
    [PLIM_FAMILY_OPT] = {KEYS(opt_keys), .learned_positions = true, .heads_must_divide = true,
                         .linears = {"q_proj", "k_proj", "v_proj", "out_proj", "fc1", "fc2",
                                     "project_in", "project_out"},
                         .lora_default = {"q_proj", "v_proj"}},
    [PLIM_FAMILY_BLOOM] = {KEYS(bloom_keys), .uncut = true, .heads_must_divide = true, .eager_only = true,
                           .linears = NEOX_LINEARS, .lora_default = {"query_key_value"}},
    [PLIM_FAMILY_OLMO2] = {KEYS(olmo2_keys), .rotary = true, .liger = LIGER_OLMO2, .linears = LLAMA_LINEARS},
    [PLIM_FAMILY_BERT] = {KEYS(bert_keys), .learned_positions = true, .heads_must_divide = true,
                          .tasks = ENCODER_TASKS, .classifier = "classifier",
                          .linears = {"query", "key", "value", "dense"},
                          .lora_default = {"query", "value"}},
    [PLIM_FAMILY_ROBERTA] = {KEYS(roberta_keys), .learned_positions = true, .counts_positions = true,
                             .heads_must_divide = true, .tasks = ENCODER_TASKS, .classifier = "out_proj",
                             .linears = {"query", "key", "value", "dense"},
                             .lora_default = {"query", "value"}},
    [PLIM_FAMILY_XLM_ROBERTA] = {KEYS(xlm_roberta_keys), .learned_positions = true, .counts_positions = true,
                             .heads_must_divide = true, .tasks = ENCODER_TASKS, .classifier = "out_proj",
                             .linears = {"query", "key", "value", "dense"},
                             .lora_default = {"query", "value"}},
    [PLIM_FAMILY_ELECTRA] = {KEYS(electra_keys), .learned_positions = true,
                             .heads_must_divide = true, .tasks = ENCODER_TASKS, .classifier = "out_proj",
                             .linears = {"query", "key", "value", "dense", "embeddings_project"},
                             .lora_default = {"query", "value"}},
    [PLIM_FAMILY_DISTILBERT] = {KEYS(distilbert_keys), .learned_positions = true,
                                .heads_must_divide = true, .tasks = ENCODER_TASKS, .classifier = "classifier",
                                .linears = {"q_lin", "k_lin", "v_lin", "out_lin", "lin1", "lin2",
                                            "vocab_transform", "pre_classifier"}},
    [PLIM_FAMILY_MODERNBERT] = {KEYS(modernbert_keys), .sliding = PLIM_SLIDING_BETWEEN,
                                .layer_types = true, .heads_must_divide = true,
                                .tasks = ENCODER_TASKS, .classifier = "classifier", .answers = "classifier",
                                .linears = {"Wqkv", "Wo", "Wi", "dense"}},
    [PLIM_FAMILY_DEBERTA_V2] = {KEYS(deberta_v2_keys), .heads_must_divide = true, .head_dim_derives = true,
                                .eager_only = true, .tasks = ENCODER_TASKS, .classifier = "classifier",
                                .linears = {"query_proj", "key_proj", "value_proj", "dense", "pos_key_proj",
                                            "pos_query_proj"},
                                .lora_default = {"query_proj", "value_proj"}},
    [PLIM_FAMILY_VIT] = {KEYS(vit_keys), .images = true, .heads_must_divide = true,
                         .tasks = 1u << PLIM_TASK_CLASSIFICATION, .classifier = "classifier",
                         .linears = {"q_proj", "k_proj", "v_proj", "o_proj", "fc1", "fc2"}},
    [PLIM_FAMILY_MIXTRAL] = {KEYS(mixtral_keys), .sliding = PLIM_SLIDING_ALL, .rotary = true,
                             .liger = {LIGER_DECODER(IN_PLACE, EXPERTS)},
                             .linears = ATTENTION_LINEARS, .lora_default = {"q_proj", "v_proj"}},
    [PLIM_FAMILY_QWEN2_MOE] = {KEYS(qwen2_moe_keys), .sliding = PLIM_SLIDING_HEAD,
                               .layer_types = true, .rotary = true,
                               .linears = {"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj",
                                           "up_proj", "down_proj", "shared_expert_gate"}},
    [PLIM_FAMILY_QWEN3_MOE] = {KEYS(qwen3_moe_keys), .sliding = PLIM_SLIDING_ALL, .rotary = true,
                               .liger = {LIGER_DECODER(IN_PLACE, EXPERTS), .head_norms = PLIM_LIGER_NORM_IN_PLACE},
                               .linears = LLAMA_LINEARS},
    [PLIM_FAMILY_GPT_OSS] = {KEYS(gpt_oss_keys), .sliding = PLIM_SLIDING_ALTERNATE, .layer_types = true,
                             .rotary = true, .rope = PLIM_ROPE_YARN, .rope_original_positions = 4096,
                             .liger = {.norms = PLIM_LIGER_NORM_IN_PLACE, .last_norm = PLIM_LIGER_NORM_IN_PLACE,
                                       .rope = true, .loss = PLIM_LIGER_LOSS_FUSED, .loss_budget = 8},
                             .eager_only = true, .linears = ATTENTION_LINEARS},
};

/* ACT2FN's names that run the kernels of enum plim_activation. swish is silu by another name. */

const struct plim_family_info *plim_family_info(enum plim_family family)
{
    const struct plim_family_info *const others[] = {plim_further_families, plim_expert_families,
                                                           plim_seq2seq_families, plim_encoder_families};
    if (families[family].keys) return &families[family];
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        if (others[i][family].keys) return &others[i][family];
    return &plim_vision_families[family];
}
