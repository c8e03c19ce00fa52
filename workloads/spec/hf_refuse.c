#include "hf_refuse.h"

#include <string.h>

/* Model types that people have and this version does not plan, by what stands in the way. */
static const struct other_kind {
    const char *what;
    const char *types[20];
} other_kinds[] = {
    {"a mixture of experts",
     {"mixtral", "qwen2_moe", "qwen3_moe", "deepseek_v2", "deepseek_v3", "gpt_oss", "olmoe", "dbrx",
      "phimoe", "granitemoe", "jamba", "llama4", "glm4_moe"}},
    {"a state-space model",
     {"mamba", "mamba2", "falcon_mamba", "rwkv", "recurrent_gemma", "zamba2"}},
    {"an encoder",
     {"bert", "roberta", "distilbert", "electra", "deberta", "deberta-v2", "albert", "modernbert",
      "xlm-roberta", "mpnet", "esm", "longformer"}},
    {"an encoder-decoder",
     {"t5", "mt5", "umt5", "bart", "mbart", "pegasus", "marian", "whisper", "longt5",
      "blenderbot"}},
    {"a vision model",
     {"vit", "swin", "convnext", "convnextv2", "resnet", "deit", "beit", "dinov2", "segformer",
      "detr"}},
    {"a multimodal model",
     {"clip", "siglip", "gemma3", "llava", "qwen2_vl", "qwen2_5_vl", "qwen3_vl", "idefics3",
      "paligemma", "mllama", "blip-2", "internvl"}},
    {"a decoder of another family",
     {"gemma", "falcon", "gpt_neo", "gptj", "codegen", "gpt_bigcode", "mpt", "cohere", "stablelm",
      "starcoder2", "olmo", "olmo3", "granite", "glm", "smollm3", "gpt-j"}},
};

const char *plim_hf_other_kind(const char *type)
{
    for (size_t k = 0; k < sizeof(other_kinds) / sizeof(other_kinds[0]); k++)
        for (size_t t = 0; t < 20 && other_kinds[k].types[t]; t++)
            if (strcmp(other_kinds[k].types[t], type) == 0) return other_kinds[k].what;
    return NULL;
}

/* A refused key is refused at any value but these. */
enum harmless { HARMLESS_FALSE, HARMLESS_TRUE, HARMLESS_EMPTY };

static const struct refused_key {
    const char *key;
    enum harmless harmless;
    const char *why;
} refused_keys[] = {
    {"per_layer_config", HARMLESS_EMPTY, "its layers differ"},
    {"add_cross_attention", HARMLESS_FALSE, "cross-attention is not in this version"},
    {"is_encoder_decoder", HARMLESS_FALSE, "encoder-decoders are not in this version"},
    {"is_causal", HARMLESS_TRUE, "bidirectional attention is not in this version"},
    {"use_bidirectional_attention", HARMLESS_FALSE,
     "bidirectional attention is not in this version"},
    {"slow_but_exact", HARMLESS_FALSE, "bloom's sliced projections are not in this version"},
    {"output_hidden_states", HARMLESS_FALSE, "kept hidden states are not in this version"},
    {"output_attentions", HARMLESS_FALSE, "kept attention scores are not in this version"},
};

static bool is_harmless(const struct plim_yaml *yaml, const struct plim_yaml_node *node,
                        enum harmless harmless)
{
    bool flag;
    if (plim_yaml_is_null(node)) return true;
    if (harmless == HARMLESS_EMPTY) return node->kind != PLIM_YAML_SCALAR && node->count == 0;
    return plim_yaml_bool(yaml, node, &flag, NULL) == PLIM_OK &&
           flag == (harmless == HARMLESS_TRUE);
}

enum plim_status plim_hf_refuse_keys(const struct plim_yaml *yaml, struct plim_error *err)
{
    static const char *const removal[] = {[HARMLESS_FALSE] = "false", [HARMLESS_TRUE] = "true",
                                          [HARMLESS_EMPTY] = "a config.json without it"};
    for (size_t i = 0; i < sizeof(refused_keys) / sizeof(refused_keys[0]); i++) {
        const struct refused_key *refused = &refused_keys[i];
        const struct plim_yaml_node *node = plim_yaml_get(yaml->root, refused->key);
        if (node && !is_harmless(yaml, node, refused->harmless))
            return plim_yaml_fail(yaml, node, err, "%s: %s, expected %s", refused->key,
                                  refused->why, removal[refused->harmless]);
    }
    return PLIM_OK;
}

static bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), tail = strlen(end);
    return length >= tail && strcmp(text + length - tail, end) == 0;
}

enum plim_status plim_hf_refuse_other_code(const struct plim_yaml *yaml, struct plim_error *err)
{
    const struct plim_yaml_node *map = plim_yaml_get(yaml->root, "auto_map");
    const struct plim_yaml_node *list = plim_yaml_get(yaml->root, "architectures");
    if (map && !is_harmless(yaml, map, HARMLESS_EMPTY))
        return plim_yaml_fail(
            yaml, map, err,
            "auto_map: this model brings its own code, expected transformers' own class (to plan "
            "it as that, write a spec with model: {hf: FILE, family: NAME})");
    if (!list || list->kind != PLIM_YAML_SEQUENCE || list->count == 0 ||
        list->items[0]->kind != PLIM_YAML_SCALAR)
        return PLIM_OK;
    const char *name = list->items[0]->text;
    bool plain = ends_with(name, "Model") && !ends_with(name, "DoubleHeadsModel") &&
                 !ends_with(name, "RewardModel");
    if (plain || ends_with(name, "ForCausalLM")) return PLIM_OK;
    return plim_yaml_fail(
        yaml, list->items[0], err,
        "architectures names %.64s, expected a causal language model (to plan it as one, write a "
        "spec with model: {hf: FILE, family: NAME})",
        name);
}
