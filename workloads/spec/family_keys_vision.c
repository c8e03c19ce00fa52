/* Models of images and text: the keys of their config.json, of text_config first, then of vision_config. */
#include "family_rows.h"

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
    KEY("vision_depth", VISION_LAYERS, "27"),
    KEY("vision_hidden_size", VISION_HIDDEN, "1152"),
    KEY("vision_hidden_act", VISION_ACTIVATION, "gelu_pytorch_tanh"),
    KEY("vision_intermediate_size", VISION_INTERMEDIATE, "4304"),
    TWO("vision_num_heads", "vision_num_attention_heads", VISION_HEADS, "16"),
    KEY("vision_in_channels", VISION_CHANNELS, "3"),
    KEY("vision_patch_size", VISION_PATCH, "16"),
    KEY("vision_spatial_merge_size", VISION_MERGE, "2"),
    KEY("vision_temporal_patch_size", VISION_FRAMES, "2"),
    KEY("vision_out_hidden_size", VISION_OUT, "3584"),
    KEY("vision_num_position_embeddings", VISION_POSITIONS, "2304"),
};

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

const struct plim_family_info plim_vision_families[PLIM_FAMILY_COUNT] = {
    [PLIM_FAMILY_QWEN3_VL] = {KEYS(qwen3_vl_keys), .tasks = 1u << PLIM_TASK_CAUSAL_LM, .vision = true,
                              .deep = {8, 16, 24}, .rotary = true,
                              .liger = {LIGER_DECODER(IN_PLACE, NONE), .head_norms = PLIM_LIGER_NORM_IN_PLACE},
                              .linears = {"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj",
                                          "qkv", "attn.proj", "linear_fc1", "linear_fc2"}},
    [PLIM_FAMILY_GEMMA3] = {KEYS(gemma3_keys), .sliding = PLIM_SLIDING_PATTERN, .tasks = 1u << PLIM_TASK_CAUSAL_LM,
                            .vision = true, .mostly_text = true, .layer_types = true, .rotary = true,
                            .rotary_by_layers = true, .heads_must_divide = true,
                            .linears = {"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj",
                                        "out_proj", "fc1", "fc2"},
                            .lora_default = {"q_proj", "v_proj"}},
};
