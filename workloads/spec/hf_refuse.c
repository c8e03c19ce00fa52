#include "hf_refuse.h"
#include "autotune/base/text.h"
#include "family.h"

#include <stdio.h>
#include <string.h>

/* Model types that are not supported, with the kind of model */
static const struct other_kind {
    const char *what;
    const char *types[20];
} other_kinds[] = {
    {"a mixture of experts",
     {"dbrx", "phimoe", "jamba", "llama4"}},
    {"a state-space model",
     {"mamba", "mamba2", "falcon_mamba", "bamba", "rwkv", "recurrent_gemma", "zamba2"}},
    {"an encoder",
     {"deberta",
      "longformer", "roformer", "layoutlm", "eurobert"}},
    {"an encoder-decoder",
     {"umt5", "pegasus", "marian", "longt5",
      "blenderbot"}},
    {"a vision model",
     {"swin", "convnext", "convnextv2", "resnet", "deit", "beit", "dinov2", "segformer",
      "detr"}},
    {"a multimodal model",
     {"clip", "siglip", "gemma3n", "idefics3", "paligemma",
      "mllama", "blip-2", "llava_next"}},
    {"a decoder of another family",
     {"gpt_neo", "codegen", "mpt"}},
};

const char *plim_hf_other_kind(const char *type)
{
    for (size_t k = 0; k < sizeof(other_kinds) / sizeof(other_kinds[0]); k++)
        for (size_t t = 0; t < 20 && other_kinds[k].types[t]; t++)
            if (strcmp(other_kinds[k].types[t], type) == 0) return other_kinds[k].what;
    return NULL;
}

/* Values at which a key is not refused */
enum harmless { HARMLESS_FALSE, HARMLESS_TRUE, HARMLESS_EMPTY, HARMLESS_ZERO,
                HARMLESS_VISION, /* from here on: words */
                HARMLESS_GROUPED, HARMLESS_LAST, HARMLESS_LAST_BUT_ONE, HARMLESS_GELU, HARMLESS_ONE, HARMLESS_DEFAULT,
                HARMLESS_CLIP, HARMLESS_HALF, HARMLESS_LAYER_NORM, HARMLESS_SILU };
static const char *const harmless_words[] = {
    [HARMLESS_FALSE] = "false", [HARMLESS_TRUE] = "true", [HARMLESS_VISION] = "null or vision",
    [HARMLESS_EMPTY] = "a config.json without it", [HARMLESS_ZERO] = "0", [HARMLESS_GROUPED] = "grouped_mm",
    [HARMLESS_LAST] = "-1", [HARMLESS_LAST_BUT_ONE] = "-2", [HARMLESS_GELU] = "gelu", [HARMLESS_ONE] = "1",
    [HARMLESS_DEFAULT] = "default", [HARMLESS_CLIP] = "clip_vision_model",
    [HARMLESS_HALF] = "0.5", [HARMLESS_LAYER_NORM] = "layer_norm", [HARMLESS_SILU] = "silu"};

/* The families of which a key is refused (only, but): those whose classes read it */
#define END PLIM_FAMILY_COUNT
#define LIST(...) (const enum plim_family[]){__VA_ARGS__, END}
#define OF(...) LIST(__VA_ARGS__), NULL
#define BUT(...) NULL, LIST(__VA_ARGS__)
#define OF_ALL NULL, NULL
#define BERTS PLIM_FAMILY_BERT, PLIM_FAMILY_ROBERTA, PLIM_FAMILY_XLM_ROBERTA, PLIM_FAMILY_ELECTRA
#define ENCODERS BERTS, PLIM_FAMILY_DISTILBERT, PLIM_FAMILY_MODERNBERT, PLIM_FAMILY_DEBERTA_V2, \
    PLIM_FAMILY_ALBERT, PLIM_FAMILY_MPNET, PLIM_FAMILY_ESM, PLIM_FAMILY_VIT
#define T5S PLIM_FAMILY_T5, PLIM_FAMILY_MT5
#define BARTS PLIM_FAMILY_BART, PLIM_FAMILY_MBART
#define LAYERED PLIM_FAMILY_WHISPER, BARTS
#define SEQ2SEQ T5S, LAYERED
#define OF_EXPERTS \
    OF(PLIM_FAMILY_MIXTRAL, PLIM_FAMILY_QWEN2_MOE, PLIM_FAMILY_QWEN3_MOE, PLIM_FAMILY_GPT_OSS, \
       PLIM_FAMILY_QWEN3_VL_MOE, PLIM_FAMILY_QWEN3_5_MOE_TEXT, PLIM_FAMILY_QWEN3_5_MOE, \
       PLIM_FAMILY_QWEN3_NEXT, PLIM_FAMILY_OLMOE, PLIM_FAMILY_GRANITEMOE, PLIM_FAMILY_GRANITEMOEHYBRID, \
       PLIM_FAMILY_AFMOE, PLIM_FAMILY_ERNIE4_5_MOE, PLIM_FAMILY_LFM2_MOE, PLIM_FAMILY_MINIMAX_M2, \
       PLIM_FAMILY_GLM4_MOE, PLIM_FAMILY_DEEPSEEK_V2, PLIM_FAMILY_DEEPSEEK_V3, PLIM_FAMILY_GLM4_MOE_LITE, \
       PLIM_FAMILY_GEMMA4_TEXT, PLIM_FAMILY_GEMMA4, PLIM_FAMILY_NEMOTRON_H)

static const struct refused_key {
    const char *key;
    enum harmless harmless;
    const char *why;
    const enum plim_family *only, *but; /* NULL: all; none */
} refused_keys[] = {
    {"per_layer_config", HARMLESS_EMPTY, "its layers differ", OF_ALL},
    {"add_cross_attention", HARMLESS_FALSE, "cross-attention is not supported", OF_ALL},
    {"is_encoder_decoder", HARMLESS_FALSE, "encoder-decoders of this family are not supported",
     BUT(SEQ2SEQ)},
    {"num_hidden_layers", HARMLESS_EMPTY, "beside it transformers makes num_decoder_layers of num_layers",
     OF(T5S)},
    {"apply_spec_augment", HARMLESS_FALSE, "SpecAugment is not supported", OF(PLIM_FAMILY_WHISPER)},
    {"encoder_layerdrop", HARMLESS_ZERO, "layerdrop is not supported",
     OF(LAYERED)},
    {"decoder_layerdrop", HARMLESS_ZERO, "layerdrop is not supported",
     OF(LAYERED)},
    {"tie_word_embeddings", HARMLESS_TRUE, "separate embeddings of encoder and decoder are not supported",
     OF(BARTS)},
    {"is_causal", HARMLESS_TRUE, "a decoder's bidirectional attention is not supported",
     BUT(ENCODERS)},
    {"use_bidirectional_attention", HARMLESS_FALSE,
     "a decoder's bidirectional attention is not supported",
     OF(PLIM_FAMILY_GEMMA, PLIM_FAMILY_GEMMA2, PLIM_FAMILY_GEMMA3_TEXT, PLIM_FAMILY_GEMMA3)},
    {"use_bidirectional_attention", HARMLESS_VISION,
     "a decoder's bidirectional attention is not supported",
     OF(PLIM_FAMILY_GEMMA4_TEXT, PLIM_FAMILY_GEMMA4_UNIFIED_TEXT, PLIM_FAMILY_GEMMA4,
        PLIM_FAMILY_GEMMA4_UNIFIED)},
    {"is_decoder", HARMLESS_FALSE, "an encoder's causal attention is not supported",
     OF(BERTS, PLIM_FAMILY_ESM)},
    {"is_folding_model", HARMLESS_FALSE, "ESMFold is not supported", OF(PLIM_FAMILY_ESM)},
    {"chunk_size_feed_forward", HARMLESS_ZERO, "chunked MLPs are not supported",
     OF(BERTS, PLIM_FAMILY_DISTILBERT, PLIM_FAMILY_ALBERT)},
    {"inner_group_num", HARMLESS_ONE, "groups of several layers are not supported", OF(PLIM_FAMILY_ALBERT)},
    {"sparse_prediction", HARMLESS_FALSE,
     "how many tokens the head sees depends on their values", OF(PLIM_FAMILY_MODERNBERT)},
    {"conv_kernel_size", HARMLESS_ZERO, "a convolution beside the first block (deberta-v2-xlarge, -xxlarge) is not "
                                        "supported", OF(PLIM_FAMILY_DEBERTA_V2)},
    {"embedding_size", HARMLESS_EMPTY, "embeddings of another width than hidden_size are not supported",
     OF(PLIM_FAMILY_DEBERTA_V2)},
    {"legacy", HARMLESS_TRUE, "the head of legacy: false is not supported", OF(PLIM_FAMILY_DEBERTA_V2)},
    {"mlp_only_layers", HARMLESS_EMPTY, "layers without experts but by decoder_sparse_step are not supported",
     OF(PLIM_FAMILY_QWEN2_MOE, PLIM_FAMILY_QWEN3_MOE, PLIM_FAMILY_QWEN3_NEXT,
        PLIM_FAMILY_QWEN3_VL_MOE)},
    {"mlp_layer_types", HARMLESS_EMPTY, "dense layers other than the first are not supported",
     OF(PLIM_FAMILY_GLM4_MOE_LITE)},
    {"output_router_logits", HARMLESS_FALSE, "the load-balancing loss is not supported",
     OF_EXPERTS},
    {"router_jitter_noise", HARMLESS_ZERO, "router noise is not supported",
     OF(PLIM_FAMILY_MIXTRAL, PLIM_FAMILY_MINIMAX_M2)},
    {"experts_implementation", HARMLESS_GROUPED,
     "only grouped products of experts are supported", OF_EXPERTS},
    {"_experts_implementation", HARMLESS_GROUPED,
     "only grouped products of experts are supported", OF_EXPERTS},
    {"vision_feature_layer", HARMLESS_LAST,
     "features of another vision block than the last are not supported",
     OF(PLIM_FAMILY_MISTRAL3, PLIM_FAMILY_INTERNVL)},
    {"vision_feature_layer", HARMLESS_LAST_BUT_ONE,
     "features of another vision block than the last but one are not supported", OF(PLIM_FAMILY_LLAVA)},
    {"vision_feature_select_strategy", HARMLESS_DEFAULT,
     "the class token among the image features is not supported",
     OF(PLIM_FAMILY_LLAVA, PLIM_FAMILY_INTERNVL)},
    {"vision_config.model_type", HARMLESS_CLIP, "another vision tower is not supported",
     OF(PLIM_FAMILY_LLAVA)},
    {"vision_config.attention_dropout", HARMLESS_ZERO, "dropout in a vision tower is not supported",
     OF(PLIM_FAMILY_LLAVA, PLIM_FAMILY_INTERNVL)},
    {"vision_config.hidden_dropout_prob", HARMLESS_ZERO, "dropout in a vision tower is not supported",
     OF(PLIM_FAMILY_INTERNVL)},
    {"vision_config.projection_dropout", HARMLESS_ZERO, "dropout in a vision tower is not supported",
     OF(PLIM_FAMILY_INTERNVL)},
    {"vision_config.use_qk_norm", HARMLESS_FALSE, "normalised queries and keys of a vision tower are not supported",
     OF(PLIM_FAMILY_INTERNVL)},
    {"vision_config.norm_type", HARMLESS_LAYER_NORM, "other norms of a vision tower are not supported",
     OF(PLIM_FAMILY_INTERNVL)},
    {"vision_config.use_mask_token", HARMLESS_FALSE, "a token for masked patches is not supported",
     OF(PLIM_FAMILY_INTERNVL)},
    {"vision_config.use_absolute_position_embeddings", HARMLESS_TRUE,
     "a vision tower without position embeddings is not supported", OF(PLIM_FAMILY_INTERNVL)},
    {"vision_config.use_mean_pooling", HARMLESS_TRUE, "a norm after the vision tower is not supported",
     OF(PLIM_FAMILY_INTERNVL)},
    {"downsample_ratio", HARMLESS_HALF, "image tokens of other than 2 x 2 patches are not supported",
     OF(PLIM_FAMILY_INTERNVL)},
    {"multimodal_projector_bias", HARMLESS_TRUE, "a projector without biases is not supported",
     OF(PLIM_FAMILY_LLAVA)},
    {"multimodal_projector_bias", HARMLESS_FALSE, "biases in the projector are not supported",
     OF(PLIM_FAMILY_MISTRAL3)},
    {"projector_hidden_act", HARMLESS_GELU, "another activation of a projector is not supported",
     OF(PLIM_FAMILY_MISTRAL3, PLIM_FAMILY_LLAVA, PLIM_FAMILY_INTERNVL)},
    {"qk_layernorm", HARMLESS_FALSE, "separate norms for each head are not supported",
     OF(PLIM_FAMILY_STABLELM)},
    {"alibi", HARMLESS_FALSE, "falcon's alibi is not supported", OF(PLIM_FAMILY_FALCON)},
    {"conv_bias", HARMLESS_FALSE, "biases of convolutions are not supported",
     OF(PLIM_FAMILY_LFM2, PLIM_FAMILY_LFM2_MOE)},
    {"moe_latent_size", HARMLESS_EMPTY, "experts of another width than hidden_size are not supported",
     OF(PLIM_FAMILY_NEMOTRON_H)},
    {"mamba_hidden_act", HARMLESS_SILU, "another activation of Mamba-2 layers is not supported",
     OF(PLIM_FAMILY_NEMOTRON_H)},
    {"tie_word_embeddings", HARMLESS_FALSE, "transformers makes a head of its own all the same",
     OF(PLIM_FAMILY_NEMOTRON_H)},
    {"mamba_rms_norm", HARMLESS_FALSE, "a norm after Mamba-2 layers is not supported", OF(PLIM_FAMILY_FALCON_H1)},
    {"slow_but_exact", HARMLESS_FALSE, "bloom's sliced projections are not supported", OF(PLIM_FAMILY_BLOOM)},
    {"output_hidden_states", HARMLESS_FALSE, "returning hidden states is not supported", OF_ALL},
    {"output_attentions", HARMLESS_FALSE, "returning attention scores is not supported", OF_ALL},
};

static bool is_harmless(const struct plim_yaml *yaml, const struct plim_yaml_node *node,
                        enum harmless harmless)
{
    bool flag;
    if (plim_yaml_is_null(node)) return true;
    if (harmless == HARMLESS_EMPTY) return node->kind != PLIM_YAML_SCALAR && node->count == 0;
    /* grouped_mm is transformers' default, and the only implementation whose sizes do not depend on the routing;
     * vision: bidirectional only among tokens of an image. */
    const char *word = harmless == HARMLESS_VISION ? "vision" : harmless_words[harmless];
    if (harmless >= HARMLESS_VISION) return plim_yaml_is_text(node, word);
    double number;
    if (harmless == HARMLESS_ZERO)
        return plim_yaml_number(yaml, node, &number, NULL) == PLIM_OK && number == 0;
    return plim_yaml_bool(yaml, node, &flag, NULL) == PLIM_OK &&
           flag == (harmless == HARMLESS_TRUE);
}

static bool is_one_of(enum plim_family family, const enum plim_family *list)
{
    while (*list != END && *list != family) list++;
    return *list == family;
}

/* Returns the value of a key, also of "vision_config.KEY"; NULL if it is missing */
static const struct plim_yaml_node *value_of(const struct plim_yaml *yaml, const char *key)
{
    const char *dot = strchr(key, '.');
    return dot ? plim_yaml_get(plim_yaml_get(yaml->root, "vision_config"), dot + 1) : plim_yaml_get(yaml->root, key);
}

enum plim_status plim_hf_refuse_keys(const struct plim_yaml *yaml, enum plim_family family,
                                     struct plim_error *err)
{
    for (size_t i = 0; i < sizeof(refused_keys) / sizeof(refused_keys[0]); i++) {
        const struct refused_key *refused = &refused_keys[i];
        const struct plim_yaml_node *node = value_of(yaml, refused->key);
        if (refused->only && !is_one_of(family, refused->only)) continue;
        if (refused->but && is_one_of(family, refused->but)) continue;
        if (node && !is_harmless(yaml, node, refused->harmless))
            return plim_yaml_fail(yaml, node, err,
                                  "%s: %s, expected %s (plimsoll exec runs any training program)",
                                  refused->key, refused->why, harmless_words[refused->harmless]);
    }
    return PLIM_OK;
}

enum plim_status plim_hf_refuse_other_code(const struct plim_yaml *yaml, struct plim_error *err)
{
    const struct plim_yaml_node *map = plim_yaml_get(yaml->root, "auto_map");
    if (!map || is_harmless(yaml, map, HARMLESS_EMPTY)) return PLIM_OK;
    return plim_yaml_fail(
        yaml, map, err,
        "auto_map: this model brings its own code, expected transformers' own class (to plan "
        "it as that, write a spec with model: {hf: FILE, family: NAME}; plimsoll exec runs any "
        "training program)");
}

/* Ministral3Attention.forward() reads them whatever the type of the rotary embedding is. */
enum plim_status plim_hf_refuse_unscaled(const struct plim_yaml *yaml, enum plim_family family, struct plim_error *err)
{
    const struct plim_yaml_node *older = plim_yaml_get(yaml->root, "rope_scaling");
    const struct plim_yaml_node *map = older && older->count ? older : plim_yaml_get(yaml->root, "rope_parameters");
    if (family != PLIM_FAMILY_MINISTRAL3 || !map || plim_yaml_is_null(map)) return PLIM_OK;
    const struct plim_yaml_node *beta = plim_yaml_get(map, "llama_4_scaling_beta"),
                                *positions = plim_yaml_get(map, "original_max_position_embeddings");
    if (beta && positions && !plim_yaml_is_null(beta) && !plim_yaml_is_null(positions)) return PLIM_OK;
    return plim_yaml_fail(yaml, map, err,
                          "its rotary embedding has no llama_4_scaling_beta and original_max_position_embeddings, "
                          "expected both, without which transformers fails to run ministral3");
}

enum plim_status plim_hf_read_text_class(const struct plim_yaml *text, enum plim_family *family, struct plim_error *err)
{
    const struct plim_yaml_node *type = plim_yaml_get(text->root, "model_type");
    const enum plim_family *classes = plim_family_info(*family)->texts;
    char expected[64] = "";
    size_t used = 0, i = 0;
    for (; i < PLIM_FAMILY_MAX_TEXTS && classes[i]; i++) {
        const char *name = plim_family_names[classes[i]];
        used += (size_t)snprintf(expected + used, sizeof(expected) - used, "%s%s", i ? " or " : "", name);
        bool is_it = type ? plim_yaml_is_text(type, name) : i == 0;
        if (!is_it) continue;
        *family = classes[i];
        return plim_hf_refuse_unscaled(text, *family, err);
    }
    return plim_yaml_fail(text, type, err, "text_config.model_type: expected %s (plimsoll exec runs any training "
                          "program)", expected);
}

/* --- heads ------------------------------------------------------------------------------------ */

/* The endings of the names of classes with a task's head */
static const char *const head_names[PLIM_TASK_COUNT] = {
    [PLIM_TASK_CAUSAL_LM] = "ForCausalLM",
    [PLIM_TASK_MASKED_LM] = "ForMaskedLM",
    [PLIM_TASK_CLASSIFICATION] = "ForSequenceClassification",
    [PLIM_TASK_SEQ2SEQ_LM] = "ForConditionalGeneration",
    [PLIM_TASK_TOKEN_CLASSIFICATION] = "ForTokenClassification",
    [PLIM_TASK_QUESTION_ANSWERING] = "ForQuestionAnswering",
};

static enum plim_status refuse_head(const struct plim_yaml *yaml, const struct plim_yaml_node *node,
                                    enum plim_family family, struct plim_error *err)
{
    if (plim_family_has_task(family, PLIM_TASK_CAUSAL_LM))
        return plim_yaml_fail(
            yaml, node, err,
            "architectures names %.64s, expected a causal language model%s (to plan it as one, write "
            "a spec with model: {hf: FILE, family: NAME}; plimsoll exec runs any training program)",
            node->text,
            plim_family_has_task(family, PLIM_TASK_CLASSIFICATION) ? " or a sequence classification" : "");
    if (plim_family_info(family)->images)
        return plim_yaml_fail(yaml, node, err,
                              "architectures names %.64s, expected an image classification (plimsoll "
                              "exec runs any training program)",
                              node->text);
    if (plim_family_has_task(family, PLIM_TASK_SEQ2SEQ_LM))
        return plim_yaml_fail(yaml, node, err,
                              "architectures names %.64s, expected an encoder-decoder for conditional generation (to "
                              "plan it as one, write a spec with model: {hf: FILE, family: NAME}; plimsoll exec runs "
                              "any training program)", node->text);
    return plim_yaml_fail(
        yaml, node, err,
        "architectures names %.64s, expected a masked language model, a classification of sequences or of tokens, or "
        "question answering (to plan it as one, write a spec with model: {hf: FILE, family: NAME, task: TASK}; "
        "plimsoll exec runs any training program)",
        node->text);
}

enum plim_status plim_hf_read_task(const struct plim_yaml *yaml, enum plim_family family,
                                   bool user_names_family, enum plim_task *task,
                                   struct plim_error *err)
{
    const struct plim_yaml_node *list = plim_yaml_get(yaml->root, "architectures");
    if (!list || list->kind != PLIM_YAML_SEQUENCE || list->count == 0 ||
        list->items[0]->kind != PLIM_YAML_SCALAR)
        return PLIM_OK;
    const char *name = list->items[0]->text;
    bool plain = plim_text_ends_with(name, "Model") && !plim_text_ends_with(name, "DoubleHeadsModel") &&
                 !plim_text_ends_with(name, "RewardModel") && !plim_text_ends_with(name, "EncoderModel");
    if (plain) return PLIM_OK;
    bool images = plim_family_info(family)->images;
    if (plim_family_info(family)->vision && plim_text_ends_with(name, "ForConditionalGeneration")) return PLIM_OK;
    for (int i = 0; i < PLIM_TASK_COUNT; i++)
        if (plim_text_ends_with(name, images ? "ForImageClassification" : head_names[i]) &&
            plim_family_has_task(family, (enum plim_task)i)) {
            *task = (enum plim_task)i;
            return PLIM_OK;
        }
    return user_names_family ? PLIM_OK : refuse_head(yaml, list->items[0], family, err);
}
