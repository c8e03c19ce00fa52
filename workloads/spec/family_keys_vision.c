/* Models of images and text: the keys of their config.json, of text_config first, then of vision_config. */
#include "family_rows.h"

/* Qwen3VLVisionConfig and Qwen3_5VisionConfig, but for the former's deepstack */
#define QWEN3_TOWER \
    KEY("vision_depth", VISION_LAYERS, "27"), \
    KEY("vision_hidden_size", VISION_HIDDEN, "1152"), \
    KEY("vision_hidden_act", VISION_ACTIVATION, "gelu_pytorch_tanh"), \
    KEY("vision_intermediate_size", VISION_INTERMEDIATE, "4304"), \
    TWO("vision_num_heads", "vision_num_attention_heads", VISION_HEADS, "16"), \
    KEY("vision_in_channels", VISION_CHANNELS, "3"), \
    KEY("vision_patch_size", VISION_PATCH, "16"), \
    KEY("vision_spatial_merge_size", VISION_MERGE, "2"), \
    KEY("vision_temporal_patch_size", VISION_FRAMES, "2"), \
    KEY("vision_out_hidden_size", VISION_OUT, "3584"), \
    KEY("vision_num_position_embeddings", VISION_POSITIONS, "2304")

/* Qwen3VLTextConfig, Qwen3VLConfig's own, Qwen3VLVisionConfig */
static const struct plim_family_key qwen3_vl_keys[] = {
    KEY("task", TASK, "causal-lm"),
    KEY("vocab_size", VOCAB_SIZE, "151936"),
    KEY("hidden_size", HIDDEN_SIZE, "4096"),
    KEY("intermediate_size", INTERMEDIATE_SIZE, "22016"),
    KEY("num_hidden_layers", LAYERS, "32"),
    KEY("num_attention_heads", HEADS, "32"),
    NUL("num_key_value_heads", KV_HEADS, "32"),
    KEY("head_dim", HEAD_DIM, "128"),
    KEY("hidden_act", ACTIVATION, "silu"),
    KEY("max_position_embeddings", POSITIONS, "128000"),
    KEY("attention_bias", ATTENTION_BIAS, "false"),
    KEY("attention_dropout", DROPOUT_ATTENTION, "0.0"),
    NUL("pad_token_id", PAD_TOKEN, "null"),
    KEY("tie_word_embeddings", TIE_WORD_EMBEDDINGS, "false"),
    QWEN3_TOWER,
};

/* Qwen3VLMoeTextConfig, Qwen3VLMoeConfig's own, Qwen3VLMoeVisionConfig */
static const struct plim_family_key qwen3_vl_moe_keys[] = {
    KEY("task", TASK, "causal-lm"),
    KEY("vocab_size", VOCAB_SIZE, "151936"),
    KEY("hidden_size", HIDDEN_SIZE, "2048"),
    KEY("intermediate_size", INTERMEDIATE_SIZE, "5632"),
    KEY("num_hidden_layers", LAYERS, "24"),
    KEY("num_attention_heads", HEADS, "16"),
    KEY("num_key_value_heads", KV_HEADS, "16"),
    KEY("hidden_act", ACTIVATION, "silu"),
    KEY("max_position_embeddings", POSITIONS, "128000"),
    KEY("tie_word_embeddings", TIE_WORD_EMBEDDINGS, "false"),
    KEY("attention_bias", ATTENTION_BIAS, "false"),
    KEY("attention_dropout", DROPOUT_ATTENTION, "0.0"),
    KEY("decoder_sparse_step", SPARSE_STEP, "1"),
    KEY("moe_intermediate_size", EXPERT_SIZE, "1408"),
    KEY("num_experts_per_tok", EXPERTS_PER_TOKEN, "4"),
    TWO("num_experts", "num_local_experts", EXPERTS, "60"),
    KEY("router_aux_loss_coef", AUX_LOSS_COEF, "0.001"),
    NUL("pad_token_id", PAD_TOKEN, "null"),
    NUL("head_dim", HEAD_DIM, "null"),
    QWEN3_TOWER,
};

/* Qwen3_5TextConfig and Qwen3_5VisionConfig */
static const struct plim_family_key qwen3_5_keys[] = {
    KEY("task", TASK, "causal-lm"),
    KEY("vocab_size", VOCAB_SIZE, "248320"),
    KEY("hidden_size", HIDDEN_SIZE, "4096"),
    KEY("intermediate_size", INTERMEDIATE_SIZE, "12288"),
    KEY("num_hidden_layers", LAYERS, "32"),
    KEY("num_attention_heads", HEADS, "16"),
    KEY("num_key_value_heads", KV_HEADS, "4"),
    KEYS_OF_HYBRID,
    NUL("pad_token_id", PAD_TOKEN, "null"),
    QWEN3_TOWER,
};

/* Qwen3_5MoeTextConfig and Qwen3_5MoeVisionConfig */
static const struct plim_family_key qwen3_5_moe_keys[] = {
    KEY("task", TASK, "causal-lm"),
    KEY("vocab_size", VOCAB_SIZE, "248320"),
    KEY("hidden_size", HIDDEN_SIZE, "2048"),
    KEY("num_hidden_layers", LAYERS, "40"),
    KEY("num_attention_heads", HEADS, "16"),
    KEY("num_key_value_heads", KV_HEADS, "2"),
    KEYS_OF_HYBRID,
    KEYS_OF_QWEN3_5_EXPERTS,
    NUL("pad_token_id", PAD_TOKEN, "null"),
    QWEN3_TOWER,
};

/* Qwen2VLTextConfig and Qwen2_5_VLTextConfig, which are alike, and Qwen2VLConfig's own */
#define QWEN2_VL_TEXT \
    KEY("task", TASK, "causal-lm"), KEY("vocab_size", VOCAB_SIZE, "152064"), KEY("hidden_size", HIDDEN_SIZE, "8192"), \
    KEY("intermediate_size", INTERMEDIATE_SIZE, "29568"), KEY("num_hidden_layers", LAYERS, "80"), \
    KEY("num_attention_heads", HEADS, "64"), NUL("num_key_value_heads", KV_HEADS, "8"), \
    KEY("hidden_act", ACTIVATION, "silu"), KEY("max_position_embeddings", POSITIONS, "32768"), \
    KEY("use_sliding_window", USE_SLIDING_WINDOW, "false"), NUL("sliding_window", SLIDING_WINDOW, "4096"), \
    KEY("max_window_layers", MAX_WINDOW_LAYERS, "80"), KEY("attention_dropout", DROPOUT_ATTENTION, "0.0"), \
    NUL("pad_token_id", PAD_TOKEN, "null"), KEY("tie_word_embeddings", TIE_WORD_EMBEDDINGS, "false")

static const struct plim_family_key qwen2_vl_keys[] = {
    QWEN2_VL_TEXT,
    KEY("vision_depth", VISION_LAYERS, "32"),
    KEY("vision_embed_dim", VISION_HIDDEN, "1280"),
    KEY("vision_hidden_size", VISION_OUT, "3584"),
    KEY("vision_hidden_act", VISION_ACTIVATION, "quick_gelu"),
    KEY("vision_mlp_ratio", VISION_RATIO, "4"),
    TWO("vision_num_heads", "vision_num_attention_heads", VISION_HEADS, "16"),
    KEY("vision_in_channels", VISION_CHANNELS, "3"),
    KEY("vision_patch_size", VISION_PATCH, "14"),
    KEY("vision_spatial_merge_size", VISION_MERGE, "2"),
    KEY("vision_temporal_patch_size", VISION_FRAMES, "2"),
};

static const struct plim_family_key qwen2_5_vl_keys[] = {
    QWEN2_VL_TEXT,
    KEY("vision_depth", VISION_LAYERS, "32"),
    KEY("vision_hidden_size", VISION_HIDDEN, "3584"),
    KEY("vision_hidden_act", VISION_ACTIVATION, "silu"),
    KEY("vision_intermediate_size", VISION_INTERMEDIATE, "3420"),
    TWO("vision_num_heads", "vision_num_attention_heads", VISION_HEADS, "16"),
    KEY("vision_in_channels", VISION_CHANNELS, "3"),
    KEY("vision_patch_size", VISION_PATCH, "14"),
    KEY("vision_spatial_merge_size", VISION_MERGE, "2"),
    KEY("vision_temporal_patch_size", VISION_FRAMES, "2"),
    KEY("vision_window_size", VISION_WINDOW, "112"),
    KEY("vision_out_hidden_size", VISION_OUT, "3584"),
};

/* Its rotary embedding goes to a name that transformers 5.17 does not use. */
#define LIGER_QWEN2_VL(tower) \
    {.norms = PLIM_LIGER_NORM_IN_PLACE, .last_norm = PLIM_LIGER_NORM_IN_PLACE, \
     .tower_norms = PLIM_LIGER_NORM_##tower, .mlp = PLIM_LIGER_MLP_SWIGLU, .loss = PLIM_LIGER_LOSS_FUSED}
#define QWEN2_VL(table) KEYS(table), .tasks = 1u << PLIM_TASK_CAUSAL_LM, .vision = true, .flat = true, \
                        .sliding = PLIM_SLIDING_TAIL, .layer_types = true, .rotary = true, \
                        .mrope_section = {16, 24, 24}

/* Gemma3TextConfig, Gemma3Config's own, SiglipVisionConfig */
static const struct plim_family_key gemma3_keys[] = {
    KEY("task", TASK, "causal-lm"),
    KEYS_OF_GEMMA3_TEXT,
    KEY("mm_tokens_per_image", IMAGE_TOKENS, "256"),
    KEY("vision_num_hidden_layers", VISION_LAYERS, "12"),
    KEY("vision_hidden_size", VISION_HIDDEN, "768"),
    KEY("vision_intermediate_size", VISION_INTERMEDIATE, "3072"),
    KEY("vision_num_attention_heads", VISION_HEADS, "12"),
    KEY("vision_num_channels", VISION_CHANNELS, "3"),
    KEY("vision_image_size", VISION_IMAGE, "224"),
    KEY("vision_patch_size", VISION_PATCH, "16"),
    KEY("vision_hidden_act", VISION_ACTIVATION, "gelu_pytorch_tanh"),
};

/* Mistral3Config's own text and tower */
static const struct plim_family_key mistral3_keys[] = {
    KEY("task", TASK, "causal-lm"),
    KEY("vocab_size", VOCAB_SIZE, "131072"),
    KEY("hidden_size", HIDDEN_SIZE, "5120"),
    KEY("intermediate_size", INTERMEDIATE_SIZE, "32768"),
    KEY("num_hidden_layers", LAYERS, "40"),
    KEY("num_attention_heads", HEADS, "32"),
    KEY("num_key_value_heads", KV_HEADS, "8"),
    NUL("head_dim", HEAD_DIM, "128"),
    KEY("hidden_act", ACTIVATION, "silu"),
    KEY("max_position_embeddings", POSITIONS, "131072"),
    NUL("pad_token_id", PAD_TOKEN, "null"),
    NUL("sliding_window", SLIDING_WINDOW, "null"),
    KEY("attention_dropout", DROPOUT_ATTENTION, "0.0"),
    KEY("spatial_merge_size", VISION_MERGE, "2"),
    KEY("tie_word_embeddings", TIE_WORD_EMBEDDINGS, "true"),
    KEY("vision_hidden_size", VISION_HIDDEN, "1024"),
    KEY("vision_intermediate_size", VISION_INTERMEDIATE, "4096"),
    KEY("vision_num_hidden_layers", VISION_LAYERS, "24"),
    KEY("vision_num_attention_heads", VISION_HEADS, "16"),
    KEY("vision_num_channels", VISION_CHANNELS, "3"),
    KEY("vision_patch_size", VISION_PATCH, "14"),
    KEY("vision_hidden_act", VISION_ACTIVATION, "gelu"),
};

/* LlamaConfig, and LlavaConfig's own tower */
static const struct plim_family_key llava_keys[] = {
    KEY("task", TASK, "causal-lm"),
    KEYS_OF_LLAMA,
    KEY("vision_hidden_size", VISION_HIDDEN, "1024"),
    KEY("vision_intermediate_size", VISION_INTERMEDIATE, "4096"),
    KEY("vision_num_hidden_layers", VISION_LAYERS, "24"),
    KEY("vision_num_attention_heads", VISION_HEADS, "16"),
    KEY("vision_num_channels", VISION_CHANNELS, "3"),
    KEY("vision_image_size", VISION_IMAGE, "336"),
    KEY("vision_patch_size", VISION_PATCH, "14"),
    KEY("vision_hidden_act", VISION_ACTIVATION, "quick_gelu"),
};

/* Qwen2Config or Qwen3Config, InternVLConfig's own, InternVLVisionConfig */
static const struct plim_family_key internvl_keys[] = {
    KEY("task", TASK, "causal-lm"),
    KEY("text_model_type", TEXT, "qwen2"),
    KEY("vocab_size", VOCAB_SIZE, "151936"),
    KEY("hidden_size", HIDDEN_SIZE, "4096"),
    KEY("intermediate_size", INTERMEDIATE_SIZE, "22016"),
    KEY("num_hidden_layers", LAYERS, "32"),
    KEY("num_attention_heads", HEADS, "32"),
    NUL("num_key_value_heads", KV_HEADS, "32"),
    KEY("head_dim", HEAD_DIM, NULL),
    KEY("hidden_act", ACTIVATION, "silu"),
    KEY("max_position_embeddings", POSITIONS, "32768"),
    KEY("attention_bias", ATTENTION_BIAS, "false"),
    KEY("use_sliding_window", USE_SLIDING_WINDOW, "false"),
    NUL("sliding_window", SLIDING_WINDOW, "4096"),
    KEY("max_window_layers", MAX_WINDOW_LAYERS, "28"),
    KEY("attention_dropout", DROPOUT_ATTENTION, "0.0"),
    NUL("pad_token_id", PAD_TOKEN, "null"),
    KEY("tie_word_embeddings", TIE_WORD_EMBEDDINGS, "true"),
    KEY("vision_hidden_size", VISION_HIDDEN, "1024"),
    KEY("vision_num_hidden_layers", VISION_LAYERS, "24"),
    KEY("vision_num_attention_heads", VISION_HEADS, "16"),
    KEY("vision_attention_bias", VISION_BIAS, "false"),
    KEY("vision_intermediate_size", VISION_INTERMEDIATE, "4096"),
    KEY("vision_hidden_act", VISION_ACTIVATION, "gelu"),
    KEY("vision_image_size", VISION_IMAGE, "448"),
    KEY("vision_patch_size", VISION_PATCH, "14"),
    KEY("vision_num_channels", VISION_CHANNELS, "3"),
};

/* Gemma4TextConfig, Gemma4Config's own, Gemma4VisionConfig, Gemma4AudioConfig, which may be missing */
static const struct plim_family_key gemma4_keys[] = {
    KEY("task", TASK, "causal-lm"),
    KEYS_OF_GEMMA4_TEXT,
    NUL("use_bidirectional_attention", SEEING, "null"),
    KEY("vision_hidden_size", VISION_HIDDEN, "768"),
    KEY("vision_intermediate_size", VISION_INTERMEDIATE, "3072"),
    KEY("vision_num_hidden_layers", VISION_LAYERS, "16"),
    KEY("vision_num_attention_heads", VISION_HEADS, "12"),
    KEY("vision_num_key_value_heads", VISION_KV_HEADS, "12"),
    KEY("vision_head_dim", VISION_HEAD_DIM, "64"),
    KEY("vision_hidden_activation", VISION_ACTIVATION, "gelu_pytorch_tanh"),
    KEY("vision_pooling_kernel_size", VISION_MERGE, "3"),
    KEY("vision_patch_size", VISION_PATCH, "16"),
    KEY("vision_position_embedding_size", VISION_POSITIONS, "10240"),
    KEY("vision_use_clipped_linears", VISION_CLIPS, "false"),
    KEY("vision_standardize", VISION_STANDARDIZES, "false"),
    NUL("audio_num_hidden_layers", AUDIO_LAYERS, "null"),
    KEY("audio_hidden_size", AUDIO_HIDDEN, "1024"),
    KEY("audio_num_attention_heads", AUDIO_HEADS, "8"),
    KEY("audio_conv_channels_0", AUDIO_CHANNELS, "128"),
    KEY("audio_conv_channels_1", AUDIO_MORE_CHANNELS, "32"),
    KEY("audio_conv_kernel_size", AUDIO_KERNEL, "5"),
    KEY("audio_output_proj_dims", AUDIO_OUT, "1536"),
    KEY("audio_use_clipped_linears", AUDIO_CLIPS, "true"),
};

/* Gemma4UnifiedTextConfig, Gemma4UnifiedConfig's own, and of what makes tokens of patches and of sound */
static const struct plim_family_key gemma4_unified_keys[] = {
    KEY("task", TASK, "causal-lm"),
    GEMMA4_TEXT("262144", "1024"),
    NUL("use_bidirectional_attention", SEEING, "null"),
    KEY("vision_patch_size", VISION_PATCH, "16"),
    KEY("vision_pooling_kernel_size", VISION_MERGE, "3"),
    KEY("vision_mm_embed_dim", VISION_HIDDEN, "3840"),
    KEY("vision_mm_posemb_size", VISION_POSITIONS, "1120"),
    KEY("vision_output_proj_dims", VISION_INTERMEDIATE, "3840"),
    NUL("audio_audio_embed_dim", AUDIO_OUT, "null"),
};

const struct plim_family_info plim_vision_families[PLIM_FAMILY_COUNT] = {
    [PLIM_FAMILY_QWEN2_VL] = {QWEN2_VL(qwen2_vl_keys), .liger = LIGER_QWEN2_VL(LAYER),
                              .linears = {"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj",
                                          "qkv", "attn.proj", "fc1", "fc2", "mlp.0", "mlp.2"}},
    [PLIM_FAMILY_QWEN2_5_VL] = {QWEN2_VL(qwen2_5_vl_keys), .full = {7, 15, 23, 31},
                                .liger = LIGER_QWEN2_VL(IN_PLACE),
                                .linears = {"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj",
                                            "down_proj", "qkv", "attn.proj", "mlp.0", "mlp.2"}},
    [PLIM_FAMILY_QWEN3_VL] = {KEYS(qwen3_vl_keys), .tasks = 1u << PLIM_TASK_CAUSAL_LM, .vision = true,
                              .deep = {8, 16, 24}, .rotary = true, .mrope_section = {24, 20, 20},
                              .liger = {LIGER_DECODER(IN_PLACE, NONE), .head_norms = PLIM_LIGER_NORM_IN_PLACE},
                              .linears = {"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj",
                                          "qkv", "attn.proj", "linear_fc1", "linear_fc2"}},
    [PLIM_FAMILY_QWEN3_VL_MOE] = {KEYS(qwen3_vl_moe_keys), .tasks = 1u << PLIM_TASK_CAUSAL_LM, .vision = true,
                                  .deep = {8, 16, 24}, .rotary = true, .mrope_section = {24, 20, 20},
                                  .linears = {"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj",
                                              "down_proj", "qkv", "attn.proj", "linear_fc1", "linear_fc2"}},
    [PLIM_FAMILY_QWEN3_5] = {KEYS(qwen3_5_keys), .tasks = 1u << PLIM_TASK_CAUSAL_LM, .vision = true,
                             .mostly_text = true, .causal_lm = PLIM_FAMILY_QWEN3_5_TEXT,
                             .layer_types = true, .linear = true, .rotary = true, .rotary_rounds_up = true,
                             .mrope_section = {11, 11, 10},
                             .liger = {.norms = PLIM_LIGER_NORM_APART, .last_norm = PLIM_LIGER_NORM_APART,
                                       .head_norms = PLIM_LIGER_NORM_APART, .mlp = PLIM_LIGER_MLP_SWIGLU,
                                       .loss = PLIM_LIGER_LOSS_FUSED},
                             .linears = {"q_proj", "k_proj", "v_proj", "o_proj", "out_proj", "in_proj_qkv", "in_proj_z",
                                         "in_proj_b", "in_proj_a", "gate_proj", "up_proj", "down_proj", "qkv",
                                         "attn.proj", "linear_fc1", "linear_fc2"}},
    [PLIM_FAMILY_QWEN3_5_MOE] = {KEYS(qwen3_5_moe_keys), .tasks = 1u << PLIM_TASK_CAUSAL_LM, .vision = true,
                                 .mostly_text = true, .causal_lm = PLIM_FAMILY_QWEN3_5_MOE_TEXT,
                                 .layer_types = true, .linear = true, .rotary = true, .rotary_rounds_up = true,
                                 .mrope_section = {11, 11, 10},
                                 .linears = {"q_proj", "k_proj", "v_proj", "o_proj", "out_proj", "in_proj_qkv",
                                             "in_proj_z", "in_proj_b", "in_proj_a", "gate_proj", "up_proj",
                                             "down_proj", "shared_expert_gate", "qkv", "attn.proj", "linear_fc1",
                                             "linear_fc2"}},
    [PLIM_FAMILY_GEMMA3] = {KEYS(gemma3_keys), .sliding = PLIM_SLIDING_PATTERN, .tasks = 1u << PLIM_TASK_CAUSAL_LM,
                            .vision = true, .mostly_text = true, .layer_types = true, .rotary = true,
                            .rotary_by_layers = true, .heads_must_divide = true,
                            .liger = {LIGER_DECODER(APART, GEGLU), .head_norms = PLIM_LIGER_NORM_APART,
                                      .tower_norms = PLIM_LIGER_NORM_LAYER},
                            .linears = {"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj",
                                        "out_proj", "fc1", "fc2"}},
    [PLIM_FAMILY_GEMMA4] = {INFO_OF_GEMMA4(gemma4_keys), .vision = true, .mostly_text = true,
                            .required = {PLIM_FIELD_PAD_TOKEN}, /* which stands for what is none of its tokens */
                            .linears = {LINEARS_OF_GEMMA4, "linear", "input_proj", "embedding_projection",
                                        "input_proj_linear", "relative_k_proj", "output_proj"},
                            .lora_default = {"q_proj", "v_proj"}},
    [PLIM_FAMILY_GEMMA4_UNIFIED] = {INFO_OF_GEMMA4(gemma4_unified_keys), .vision = true, .mostly_text = true,
                                    .required = {PLIM_FIELD_PAD_TOKEN},
                                    .linears = {"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj",
                                                "down_proj", "patch_dense", "embedding_projection"}},
    [PLIM_FAMILY_MISTRAL3] = {KEYS(mistral3_keys), .sliding = PLIM_SLIDING_ALL, .tasks = 1u << PLIM_TASK_CAUSAL_LM,
                              .vision = true, .mostly_text = true, .rotary = true,
                              .texts = {PLIM_FAMILY_MISTRAL, PLIM_FAMILY_MINISTRAL3},
                              .linears = {"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj",
                                          "merging_layer", "linear_1", "linear_2"}},
    [PLIM_FAMILY_LLAVA] = {KEYS(llava_keys), .tasks = CAUSAL_ALONE, .vision = true, .rotary = true,
                           .texts = {PLIM_FAMILY_LLAMA}, .heads_must_divide = true, .liger = LIGER_LLAMA,
                           .linears = {"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj",
                                       "out_proj", "fc1", "fc2", "linear_1", "linear_2"}},
    [PLIM_FAMILY_INTERNVL] = {KEYS(internvl_keys), .sliding = PLIM_SLIDING_TAIL, .tasks = CAUSAL_ALONE, .vision = true,
                              .layer_types = true, .rotary = true, .texts = {PLIM_FAMILY_QWEN2, PLIM_FAMILY_QWEN3},
                              .liger = {LIGER_DECODER(IN_PLACE, SWIGLU), .head_norms = PLIM_LIGER_NORM_IN_PLACE,
                                        .tower_norms = PLIM_LIGER_NORM_LAYER},
                              .linears = {"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj",
                                          "projection_layer", "fc1", "fc2", "linear_1", "linear_2"}},
};
