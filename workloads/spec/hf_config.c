#include "hf_config.h"
#include "hf_refuse.h"
#include "spec_internal.h"
#include "spec_vision.h"

#include "autotune/base/text.h"

#include <string.h>

/* --- the family ------------------------------------------------------------------------------- */

static void list_families(char *out, size_t size)
{
    size_t used = 0;
    for (size_t i = 0; i < PLIM_FAMILY_COUNT && used < size; i++) {
        int wrote = snprintf(out + used, size - used, "%s%s", i ? ", " : "", plim_family_names[i]);
        used += wrote > 0 ? (size_t)wrote : 0;
    }
}

static enum plim_status unknown_type(const struct plim_yaml *yaml,
                                     const struct plim_yaml_node *node, struct plim_error *err)
{
    char known[PLIM_ERROR_TEXT], near_text[64] = "";
    list_families(known, sizeof(known));
    const char *kind = plim_hf_other_kind(node->text);
    if (kind)
        return plim_yaml_fail(yaml, node, err,
                              "model_type %s (%s) is not supported, expected one of %s (plimsoll exec runs any "
                              "training program)",
                              node->text, kind, known);
    int near = plim_nearest(node->text, plim_family_names, PLIM_FAMILY_COUNT);
    if (near >= 0)
        snprintf(near_text, sizeof(near_text), " (did you mean %s?)", plim_family_names[near]);
    return plim_yaml_fail(yaml, node, err,
                          "model_type '%.40s' is not known%s, expected one of %s (plimsoll exec runs any "
                          "training program)",
                          node->text, near_text, known);
}

/* Finds the family of `model_type`. A family named by the user replaces an unknown type, but does not turn one known
 * model into another. */
static enum plim_status read_family(const struct plim_yaml *yaml, const enum plim_family *wanted,
                                    enum plim_family *family, struct plim_error *err)
{
    const struct plim_yaml_node *node = plim_yaml_get(yaml->root, "model_type");
    bool is_camembert = plim_yaml_is_text(node, "camembert"); /* it has xlm-roberta's classes */
    if (wanted) *family = *wanted;
    if (!node || node->kind != PLIM_YAML_SCALAR || plim_yaml_is_null(node)) {
        char known[PLIM_ERROR_TEXT];
        list_families(known, sizeof(known));
        return wanted ? PLIM_OK
                      : plim_yaml_fail(yaml, node ? node : yaml->root, err,
                                       "this config.json has no model_type, expected one of %s",
                                       known);
    }
    enum plim_family named = is_camembert ? PLIM_FAMILY_XLM_ROBERTA : plim_family_named(node->text);
    if (named == PLIM_FAMILY_COUNT)
        return wanted && !plim_hf_other_kind(node->text) ? PLIM_OK : unknown_type(yaml, node, err);
    if (wanted && *wanted != named)
        return plim_yaml_fail(yaml, node, err, "model_type is %s, but the spec says family %s, expected the same",
                              node->text, plim_family_names[*wanted]);
    *family = named;
    return PLIM_OK;
}

/* --- layer types and rotary embeddings -------------------------------------------------------- */

static enum plim_status read_layer_types(const struct plim_place *place,
                                         const struct plim_yaml_node *node, struct plim_spec *spec)
{
    enum plim_family family = spec->model_as_given.family;
    /* older configs of Mamba-2 layers have other names (remap_legacy_layer_types) */
    const char *const names[] = {"full_attention", plim_family_other_layers(family), "attention", "mamba",
                                 "mlp", "moe"};
    static const char letters[] = {PLIM_LAYER_ATTENTION, PLIM_LAYER_MAMBA, PLIM_LAYER_ATTENTION, PLIM_LAYER_MAMBA,
                                   PLIM_LAYER_MLP, PLIM_LAYER_EXPERTS};
    const struct plim_family_info *info = plim_family_info(family);
    size_t count = info->pattern ? 6 : info->mamba ? 4 : 2;
    char *pattern = spec->model_as_given.layer_pattern;
    const struct plim_value type = {.type = PLIM_VALUE_ENUM, .names = names, .name_count = count};
    if (plim_yaml_is_null(node)) {
        if (!info->pattern) spec->layer_types_given = 0;
        return PLIM_OK;
    }
    if (node->kind != PLIM_YAML_SEQUENCE || node->count == 0 || node->count > PLIM_MAX_LAYERS) {
        char expected[80];
        snprintf(expected, sizeof(expected), "one of full_attention or %s for each layer", names[1]);
        return plim_value_refuse(place, node, expected);
    }
    bool is_other[PLIM_MAX_LAYERS] = {false};
    for (size_t i = 0; i < node->count; i++) {
        int index = 0;
        enum plim_status st = plim_value_read(&type, place, node->items[i], &index);
        if (st != PLIM_OK) return st;
        is_other[i] = index == 1 || index == 3;
        if (info->pattern) pattern[i] = letters[index];
    }
    if (info->pattern) pattern[node->count] = '\0';
    memcpy(plim_model_layer_types(&spec->model_as_given), is_other, sizeof(is_other));
    spec->layer_types_given = node->count;
    return PLIM_OK;
}

/* nemotron_h: the letters of all layers. A list takes precedence. */
static enum plim_status read_pattern(const struct plim_place *place, const struct plim_yaml_node *node,
                                     struct plim_spec *spec)
{
    struct plim_model_config *model = &spec->model_as_given;
    const char letters[] = {PLIM_LAYER_MAMBA, PLIM_LAYER_ATTENTION, PLIM_LAYER_MLP, PLIM_LAYER_EXPERTS, '\0'};
    if (plim_yaml_is_null(node)) return PLIM_OK;
    bool is_text = node->kind == PLIM_YAML_SCALAR;
    size_t count = is_text ? strlen(node->text) : 0;
    if (!count || count > PLIM_MAX_LAYERS || strspn(node->text, letters) != count)
        return plim_value_refuse(place, node, "a string of M, *, - and E, one letter for each layer");
    memcpy(model->layer_pattern, node->text, count + 1);
    spec->layer_types_given = count;
    for (size_t i = 0; i < count; i++) model->layer_is_linear[i] = node->text[i] == PLIM_LAYER_MAMBA;
    return PLIM_OK;
}

/* lfm2: the layers with attention; the others are convolutions. A layer_types list takes precedence. */
static enum plim_status read_attending(const struct plim_place *place, const struct plim_yaml_node *node,
                                       struct plim_spec *spec)
{
    struct plim_model_config *model = &spec->model_as_given;
    const struct plim_value type = {.type = PLIM_VALUE_INT, .minimum = 0, .maximum = PLIM_MAX_LAYERS - 1};
    if (plim_yaml_is_null(node) || spec->layer_types_given) return PLIM_OK;
    if (node->kind != PLIM_YAML_SEQUENCE) return plim_value_refuse(place, node, "a list of layers, counted from 0");
    for (int64_t i = 0; i < model->layers; i++) model->layer_is_linear[i] = true;
    for (size_t i = 0; i < node->count; i++) {
        int64_t layer = 0;
        enum plim_status st = plim_value_read(&type, place, node->items[i], &layer);
        if (st != PLIM_OK) return st;
        model->layer_is_linear[layer] = false;
    }
    spec->layer_types_given = (size_t)model->layers;
    return PLIM_OK;
}

/* 0: the layer has no rotary embeddings. */
static enum plim_status read_nope_layers(const struct plim_place *place,
                                         const struct plim_yaml_node *node, struct plim_spec *spec)
{
    bool is_nope[PLIM_MAX_LAYERS] = {false};
    spec->nope_layers_given = 0;
    if (plim_yaml_is_null(node)) return PLIM_OK;
    if (node->kind != PLIM_YAML_SEQUENCE || node->count == 0 || node->count > PLIM_MAX_LAYERS)
        return plim_value_refuse(place, node, "0 or 1 for each layer");
    for (size_t i = 0; i < node->count; i++) {
        static const struct plim_value flag = {.type = PLIM_VALUE_INT, .minimum = 0, .maximum = 1};
        int64_t turns = 0;
        enum plim_status st = plim_value_read(&flag, place, node->items[i], &turns);
        if (st != PLIM_OK) return st;
        is_nope[i] = !turns;
    }
    memcpy(spec->model_as_given.layer_is_nope, is_nope, sizeof(is_nope));
    spec->nope_layers_given = node->count;
    return PLIM_OK;
}

static bool is_filled(const struct plim_yaml_node *node)
{
    return node && node->kind == PLIM_YAML_MAPPING && node->count > 0;
}

static bool is_filled_list(const struct plim_yaml_node *node)
{
    return node && node->kind == PLIM_YAML_SEQUENCE && node->count > 0;
}

/* transformers uses a non-empty rope_scaling instead of rope_parameters (gemma3: in addition to them; gemma4: not at
 * all), and treats an empty mapping of either name as none. */
static bool rope_is_superseded(const struct plim_yaml_node *map, const struct plim_yaml_node *node,
                               const char *name, enum plim_family family)
{
    bool empty = plim_yaml_is_null(node) || (node->kind == PLIM_YAML_MAPPING && node->count == 0);
    bool newer = strcmp(name, "rope_parameters") == 0 && !plim_family_info(family)->rotary_by_layers;
    bool ignored = strcmp(name, "rope_scaling") == 0 && plim_family_info(family)->rope == PLIM_ROPE_PROPORTIONAL;
    return empty || ignored || (newer && is_filled(plim_yaml_get(map, "rope_scaling")));
}

/* Refuses types that run kernels of their own in each step, in the mappings that are not read otherwise: those of
 * layer types other than gemma3's full attention. */
static enum plim_status check_uncounted(const struct plim_place *place, const struct plim_yaml_node *node,
                                        const char *layers)
{
    const struct plim_yaml_node *type = plim_yaml_get(plim_yaml_get(node, layers), "rope_type");
    if (!plim_yaml_is_text(type, "dynamic") && !plim_yaml_is_text(type, "longrope")) return PLIM_OK;
    return plim_yaml_fail(place->yaml, type, place->err,
                          "%s.%s: frequencies that depend on the sequence length are not supported for these layers, "
                          "expected another rope_type (plimsoll exec runs any training program)",
                          place->key, layers);
}

/* Returns the mapping to read: gemma3 has one for each layer type, of which that of full attention is read. Its
 * rope_scaling is the older, single mapping, and belongs to full attention. */
static const struct plim_yaml_node *rope_mapping(enum plim_family family, const char *name,
                                                 const struct plim_yaml_node *node)
{
    bool nested = plim_family_info(family)->rotary_by_layers && strcmp(name, "rope_parameters") == 0;
    return nested ? plim_yaml_get(node, "full_attention") : node;
}

/* Reads rope_parameters (or its older name rope_scaling): only what changes shapes or kernels. */
static enum plim_status read_rope(const struct plim_place *place, const struct plim_yaml_node *node,
                                  struct plim_spec *spec)
{
    static const struct plim_value type = {
        .type = PLIM_VALUE_ENUM, .names = plim_rope_names, .name_count = PLIM_ROPE_COUNT};
    struct plim_model_config *model = &spec->model_as_given;
    const struct plim_family_info *info = plim_family_info(model->family);
    enum plim_rope rope = is_filled(node) ? PLIM_ROPE_DEFAULT : info->rope;
    enum plim_status st = PLIM_OK;
    if (!plim_yaml_is_null(node) && node->kind != PLIM_YAML_MAPPING)
        return plim_value_refuse(place, node, "a mapping such as {rope_type: linear, factor: 2.0}");

    st = check_uncounted(place, node, "sliding_attention");
    if (model->family == PLIM_FAMILY_MODERNBERT)
        return st ? st : check_uncounted(place, node, "full_attention");
    if (st) return st;
    const struct plim_yaml_node *name = NULL, *share = NULL, *positions = NULL;
    const struct plim_yaml_node *map = is_filled(node) ? rope_mapping(model->family, place->key, node) : NULL;
    if (is_filled(node) && !map && !plim_yaml_get(node, "sliding_attention"))
        return plim_value_refuse(place, node, "a mapping of full_attention and sliding_attention");
    if (is_filled(map)) {
        name = plim_yaml_get(map, "rope_type");
        /* gemma3 merges rope_scaling into a mapping whose rope_type takes precedence over type. */
        bool ignored = info->rotary_by_layers && map == node;
        if (!name && !ignored) name = plim_yaml_get(map, "type");
        share = plim_yaml_get(map, "partial_rotary_factor");
        positions = plim_yaml_get(map, "original_max_position_embeddings");
        if (info->rope) model->rope_original_positions = 0;
    }
    if (model->family == PLIM_FAMILY_MISTRAL3) /* text_config says which family the text is */
        model->scales_queries = plim_yaml_get(map, "llama_4_scaling_beta") != NULL;
    const struct plim_yaml_node *sections = info->mrope_section[0] ? plim_yaml_get(map, "mrope_section") : NULL;
    if (sections) PLIM_TRY(plim_vision_read_sections(place, sections, model));
    if (info->flat && plim_yaml_is_text(name, "mrope")) name = NULL; /* Qwen2VLTextConfig treats it as default */
    if (name) st = plim_value_read(&type, place, name, &rope);
    if (st == PLIM_OK && model->family == PLIM_FAMILY_PHI3) {
        /* Phi3Config treats yarn as longrope and accepts nothing else. */
        if (rope == PLIM_ROPE_YARN) rope = PLIM_ROPE_LONGROPE;
        if (rope != PLIM_ROPE_DEFAULT && rope != PLIM_ROPE_LONGROPE)
            return plim_value_refuse(place, name, "default or longrope for phi3");
    }
    const struct plim_family_key *key = plim_family_find(model->family, "partial_rotary_factor", true);
    bool has_own = is_filled(map) && info->rope == PLIM_ROPE_PROPORTIONAL;
    const struct plim_value *factor = &plim_field_info(PLIM_FIELD_PARTIAL_ROTARY)->value;
    if (has_own) model->partial_rotary_factor = 1;
    if (st == PLIM_OK && share && has_own) st = plim_value_read(factor, place, share, &model->partial_rotary_factor);
    if (st == PLIM_OK && share && key)
        st = plim_family_key_read(model->family, key, place, share, model);
    if (st == PLIM_OK && positions &&
        model->family != PLIM_FAMILY_PHI3) /* phi3 has a separate key for it */
        st = plim_value_read(&plim_field_info(PLIM_FIELD_ROPE_ORIGINAL_POSITIONS)->value, place,
                             positions, &model->rope_original_positions);
    if (st == PLIM_OK) model->rope = rope;
out:
    return st;
}

/* Outside of the mapping it takes precedence over the one inside; phi3 has a field for it, gemma3 ignores it. */
static enum plim_status read_original_positions(const struct plim_place *place,
                                                const struct plim_yaml_node *node,
                                                struct plim_spec *spec)
{
    return plim_value_read(&plim_field_info(PLIM_FIELD_ROPE_ORIGINAL_POSITIONS)->value, place, node,
                           &spec->model_as_given.rope_original_positions);
}

/* The number of labels is its size, unless num_labels says otherwise. */
static enum plim_status read_labels(const struct plim_place *place,
                                    const struct plim_yaml_node *node, struct plim_spec *spec)
{
    const struct plim_yaml_node *number = plim_yaml_get(place->yaml->root, "num_labels");
    if (plim_yaml_is_null(node) || (number && !plim_yaml_is_null(number))) return PLIM_OK;
    if (node->kind != PLIM_YAML_MAPPING)
        return plim_value_refuse(place, node, "a mapping from numbers to labels");
    if (node->count) spec->model_as_given.labels = (int64_t)node->count;
    return PLIM_OK;
}

/* Refuses losses other than the cross entropy of one label per row; with num_labels 1, regression is right. */
static enum plim_status read_problem(const struct plim_place *place,
                                     const struct plim_yaml_node *node, struct plim_spec *spec)
{
    bool is_other = spec->model_as_given.task == PLIM_TASK_CLASSIFICATION &&
                    !plim_yaml_is_text(node, "single_label_classification");
    bool is_of_one = spec->model_as_given.labels == 1 && plim_yaml_is_text(node, "regression");
    if (plim_yaml_is_null(node) || !is_other || is_of_one) return PLIM_OK;
    return plim_yaml_fail(place->yaml, node, place->err,
                          "problem_type: its loss is not supported, expected single_label_classification (plimsoll "
                          "exec runs any training program)");
}

/* The type in which from_pretrained loads the weights */
static enum plim_status read_dtype(const struct plim_place *place,
                                   const struct plim_yaml_node *node, struct plim_spec *spec)
{
    static const struct plim_value type = {
        .type = PLIM_VALUE_ENUM, .names = plim_dtype_names, .name_count = PLIM_WEIGHTS_COUNT};
    if (plim_yaml_is_null(node)) return PLIM_OK;
    return plim_value_read(&type, place, node, &spec->model_as_given.dtype);
}

/* The attention that from_pretrained selects by default */
static enum plim_status read_attention(const struct plim_place *place,
                                       const struct plim_yaml_node *node, struct plim_spec *spec)
{
    static const struct plim_value type = {
        .type = PLIM_VALUE_ENUM, .names = plim_attention_names, .name_count = PLIM_ATTENTION_COUNT};
    if (plim_yaml_is_null(node)) return PLIM_OK;
    return plim_value_read(&type, place, node, &spec->model_as_given.attention);
}

/* --- keys ------------------------------------------------------------------------------------- */

/* Which families have a key */
enum whose { OF_ALL, OF_LAYER_TYPES, OF_MAMBA, OF_PATTERN, OF_CONVOLUTIONS, OF_NOPE, OF_CLASSIFIERS, OF_ROTARY,
             OF_ROTARY_OF_ALL, OF_DEEPSTACK, OF_WINDOWS };

/* Keys that are not rows of a family's table. Of those that set the same field a later one takes precedence. */
static const struct special_key {
    const char *name;
    enum plim_status (*read)(const struct plim_place *, const struct plim_yaml_node *,
                             struct plim_spec *);
    enum whose whose;
    const char *expected, *help; /* NULL: an older name of another one */
} special_keys[] = {
    {"hybrid_override_pattern", read_pattern, OF_PATTERN, "a string of M, *, - and E, one letter for each layer",
     "without layer_types: each layer's type: Mamba-2, attention, MLP or experts; default: ME*-"},
    {"layer_types", read_layer_types, OF_LAYER_TYPES,
     "a list of full_attention and sliding_attention, linear_attention or conv, one a layer",
     "each layer's type; default: the family's pattern (lfm2_moe has none)"},
    {"layers_block_type", read_layer_types, OF_MAMBA, NULL, NULL},
    {"full_attn_idxs", read_attending, OF_CONVOLUTIONS, "a list of integers from 0 to 1023",
     "without layer_types: the layers with attention; the others are convolutions"},
    {"no_rope_layers", read_nope_layers, OF_NOPE, "a list of 1 or 0, one a layer or more",
     "0: the layer has no rotary embeddings; default: by no_rope_layer_interval"},
    {"id2label", read_labels, OF_CLASSIFIERS, "a mapping", "its size is num_labels"},
    {"problem_type", read_problem, OF_CLASSIFIERS, "single_label_classification, or null",
     "loss of a classification head; null: by its labels"},
    {"rope_parameters", read_rope, OF_ROTARY, "a mapping",
     "of which rope_type, partial_rotary_factor, original_max_position_embeddings and (with images) mrope_section "
     "change shapes; in older configs rope_scaling"},
    {"rope_scaling", read_rope, OF_ROTARY, NULL, NULL},
    {"original_max_position_embeddings", read_original_positions, OF_ROTARY_OF_ALL, NULL, NULL},
    {"vision_deepstack_visual_indexes", plim_vision_read_deep, OF_DEEPSTACK, "a list of at most 16 integers",
     "vision blocks whose outputs are added to the text after its first blocks; default: the class's"},
    {"vision_fullatt_block_indexes", plim_vision_read_full, OF_WINDOWS, "a list of at most 16 integers",
     "vision blocks without windows, whose patches attend to their whole image; default: the class's"},
    {"torch_dtype", read_dtype, OF_ALL, NULL, NULL},
    {"dtype", read_dtype, OF_ALL, "float32, bfloat16 or float16",
     "type of the published weights; in older configs torch_dtype"},
    {"quantization_config", plim_hf_read_quantization, OF_ALL, "a mapping",
     "of bitsandbytes: becomes train.quantization"},
    {"attn_implementation", read_attention, OF_ALL, "sdpa, eager or flash_attention_2",
     "attention, unless train.attention says"},
    {"_attn_implementation", read_attention, OF_ALL, NULL, NULL},
};

enum { SPECIAL_COUNT = sizeof(special_keys) / sizeof(special_keys[0]), NAMES_MAX = 100 };

static bool has_special(enum plim_family family, size_t special)
{
    const struct plim_family_info *info = plim_family_info(family);
    switch (special_keys[special].whose) {
    case OF_ALL: return true;
    case OF_LAYER_TYPES: return info->layer_types;
    case OF_MAMBA: return info->mamba;
    case OF_PATTERN: return info->pattern;
    case OF_CONVOLUTIONS: return info->convolves && !info->needs_layer_types;
    case OF_NOPE: return info->nope == PLIM_NOPE_INTERVAL;
    case OF_CLASSIFIERS: return plim_family_has_task(family, PLIM_TASK_CLASSIFICATION);
    case OF_ROTARY: return info->rotary || family == PLIM_FAMILY_MODERNBERT;
    case OF_ROTARY_OF_ALL: return info->rotary && !info->rotary_by_layers;
    case OF_DEEPSTACK: return info->deep[0] > 0;
    case OF_WINDOWS: return info->full[0] > 0;
    }
    return false;
}

const char *plim_model_special_key(enum plim_family family, size_t index, const char **name, const char **help)
{
    for (size_t i = 0; i < SPECIAL_COUNT; i++) {
        if (!special_keys[i].expected || !has_special(family, i) || index--) continue;
        *name = special_keys[i].name;
        *help = special_keys[i].help;
        return special_keys[i].expected;
    }
    return NULL;
}

static enum plim_status unknown_key(const struct plim_place *place,
                                    const struct plim_yaml_node *node, enum plim_family family)
{
    const struct plim_family_info *info = plim_family_info(family);
    const char *names[NAMES_MAX];
    size_t count = 0;
    for (size_t i = 0; i < info->key_count; i++) {
        names[count++] = info->keys[i].name;
        if (info->keys[i].alias) names[count++] = info->keys[i].alias;
    }
    for (size_t i = 0; i < SPECIAL_COUNT; i++)
        if (has_special(family, i)) names[count++] = special_keys[i].name;
    int near = plim_nearest(place->key, names, count);
    return plim_yaml_fail(place->yaml, node, place->err,
                          "unknown key %s%.40s for %s, expected %s%s", place->prefix, place->key,
                          plim_family_names[family],
                          near < 0 ? "a key of its config.json" : "the nearest known key ",
                          near < 0 ? "" : names[near]);
}

enum plim_status plim_model_key_read(const struct plim_place *place,
                                     const struct plim_yaml_node *node, struct plim_spec *spec)
{
    enum plim_family family = spec->model_as_given.family;
    const struct plim_family_key *key = plim_family_find(family, place->key, true);
    if (key) return plim_family_key_read(family, key, place, node, &spec->model_as_given);
    for (size_t i = 0; i < SPECIAL_COUNT; i++)
        if (strcmp(special_keys[i].name, place->key) == 0 && has_special(family, i))
            return special_keys[i].read(place, node, spec);
    return unknown_key(place, node, family);
}

/* Reads the family's keys in the order of precedence of its class: keys, aliases, then the rope mapping. */
static enum plim_status read_known(const struct plim_yaml *yaml, const struct plim_yaml_node *map,
                                   const char *prefix, bool usual, struct plim_spec *spec,
                                   struct plim_error *err)
{
    enum plim_family family = spec->model_as_given.family;
    struct plim_place place = {.yaml = yaml, .prefix = prefix, .err = err};
    enum plim_status st = PLIM_OK;
    for (int aliases = 0; aliases <= 1; aliases++)
        for (size_t i = 0; i < map->count && st == PLIM_OK; i++) {
            place.key = map->keys[i]->text;
            const struct plim_family_key *key = plim_family_find(family, place.key, usual);
            bool is_alias = key && key->alias && strcmp(key->alias, place.key) == 0;
            if (!key || is_alias != (aliases == 1)) continue;
            if (is_alias && strcmp(place.key, "n_embed") == 0 && plim_yaml_is_null(map->items[i]))
                continue; /* BloomConfig ignores a null n_embed */
            bool has_types = is_filled_list(plim_yaml_get(map, "layer_types"));
            if (family == PLIM_FAMILY_EXAONE4 && key->field == PLIM_FIELD_SLIDING_PATTERN && has_types)
                continue; /* Exaone4Config ignores it then: it may be null, or "LLLG" */
            st = plim_family_key_read(family, key, &place, map->items[i], &spec->model_as_given);
        }
    for (size_t i = 0; i < SPECIAL_COUNT && st == PLIM_OK; i++) {
        const struct plim_yaml_node *node = plim_yaml_get(map, special_keys[i].name);
        place.key = special_keys[i].name;
        if (!node || !has_special(family, i)) continue;
        bool rope = special_keys[i].read == read_rope;
        if (rope && !usual && rope_is_superseded(map, node, place.key, family)) continue;
        st = special_keys[i].read(&place, node, spec);
    }
    return st;
}

enum plim_status plim_model_section_read(const struct plim_yaml *yaml,
                                         const struct plim_yaml_node *section,
                                         const char *const *skip, struct plim_spec *spec,
                                         struct plim_error *err)
{
    enum plim_family family = spec->model_as_given.family;
    for (size_t i = 0; i < section->count; i++) {
        const char *name = section->keys[i]->text;
        bool known = plim_family_find(family, name, true) != NULL;
        for (size_t s = 0; skip[s] && !known; s++) known = strcmp(skip[s], name) == 0;
        for (size_t s = 0; s < SPECIAL_COUNT && !known; s++)
            known = strcmp(special_keys[s].name, name) == 0 && has_special(family, s);
        const struct plim_place place = {.yaml = yaml, .prefix = "model.", .key = name, .err = err};
        if (!known) return unknown_key(&place, section->keys[i], family);
    }
    return read_known(yaml, section, "model.", true, spec, err);
}

/* Returns the mapping to read the model from: text_config if the config is that of a vision-language model and its
 * text alone is requested, whose family is called like it (qwen3_5_text: Qwen3_5ForCausalLM.from_pretrained()). */
static struct plim_yaml_node *text_of(struct plim_yaml_node *root, const enum plim_family *wanted)
{
    struct plim_yaml_node *text = (struct plim_yaml_node *)plim_yaml_get(root, "text_config");
    const struct plim_yaml_node *type = plim_yaml_get(root, "model_type");
    char name[64] = "";
    if (type && type->kind == PLIM_YAML_SCALAR) snprintf(name, sizeof(name), "%.50s_text", type->text);
    return wanted && is_filled(text) && !strcmp(name, plim_family_names[*wanted]) ? text : root;
}

/* Reads the keys of a vision-language model outside of its parts, among them whether its embeddings are tied. `tied`:
 * text_config has that key, which only qwen2_vl's and llava's classes read there. */
static enum plim_status read_own(const struct plim_yaml *yaml, bool tied, struct plim_spec *spec,
                                 struct plim_error *err)
{
    struct plim_model_config *model = &spec->model_as_given;
    struct plim_model_config text = *model;
    size_t types = spec->layer_types_given;
    enum plim_status st = read_known(yaml, yaml->root, "", false, spec, err);
    text.tie_word_embeddings = model->tie_word_embeddings || tied;
    text.dtype = model->dtype;
    text.vision.image_tokens = model->vision.image_tokens, text.vision.merge_size = model->vision.merge_size;
    *model = text;
    spec->layer_types_given = types;
    return st;
}

/* Reads a text_config of another family, with that family's defaults. They also decide whether embeddings are tied, if
 * the file does not: mistral3's and internvl's classes would tie them, but from_pretrained() keeps a head that the
 * checkpoint has; llava's class asks the text's config. */
static enum plim_status read_other_text(const struct plim_yaml *text, struct plim_spec *spec, bool *is_tied,
                                        struct plim_error *err)
{
    struct plim_model_config *model = &spec->model_as_given, own = *model;
    enum plim_family of = own.family;
    enum plim_status st = PLIM_OK;
    PLIM_TRY(plim_hf_read_text_class(text, &of, err));
    PLIM_TRY(plim_family_defaults(of, model, err));
    model->family = own.family, model->vision = own.vision, model->dtype = own.dtype;
    if (own.text) model->text = of;
    PLIM_TRY(read_known(text, text->root, "text_config.", false, spec, err));
    model->scales_queries = of == PLIM_FAMILY_MINISTRAL3, *is_tied = model->tie_word_embeddings;
out:
    return st;
}

/* A vision-language model has its keys in text_config and vision_config, and a few of its own, which take
 * precedence. */
static enum plim_status read_parts(const struct plim_yaml *yaml, struct plim_spec *spec, struct plim_error *err)
{
    enum plim_family family = spec->model_as_given.family;
    struct plim_yaml text = *yaml;
    text.root = (struct plim_yaml_node *)plim_yaml_get(yaml->root, "text_config");
    enum plim_status st = PLIM_OK;
    struct plim_model_config *model = &spec->model_as_given;
    bool usual = model->tie_word_embeddings, has_text = is_filled(text.root), is_tied, tied = false;
    if (has_text) {
        PLIM_TRY(plim_hf_refuse_keys(&text, family, err));
        if (plim_family_info(family)->texts[0]) PLIM_TRY(read_other_text(&text, spec, &usual, err));
        else PLIM_TRY(read_known(&text, text.root, "text_config.", false, spec, err));
        bool either_ties = plim_family_info(family)->flat || family == PLIM_FAMILY_LLAVA;
        tied = either_ties && model->tie_word_embeddings;
    }
    is_tied = model->tie_word_embeddings;
    model->tie_word_embeddings = usual;
    PLIM_TRY(plim_vision_read(yaml, plim_yaml_get(yaml->root, "vision_config"), spec, err));
    bool hears = family == PLIM_FAMILY_GEMMA4 || family == PLIM_FAMILY_GEMMA4_UNIFIED;
    if (hears) PLIM_TRY(plim_audio_read(yaml, spec, err));
    if (has_text || !plim_family_info(family)->flat) PLIM_TRY(read_own(yaml, tied, spec, err));
    else PLIM_TRY(read_known(yaml, yaml->root, "", false, spec, err));
    model->text_ties_otherwise = has_text && is_tied != model->tie_word_embeddings;
out:
    return st;
}

enum plim_status plim_hf_read(const struct plim_yaml *document, const enum plim_family *wanted,
                              struct plim_spec *spec, struct plim_error *err)
{
    enum plim_status st = PLIM_OK;
    enum plim_family family = PLIM_FAMILY_GPT2;
    if (!document->root || document->root->kind != PLIM_YAML_MAPPING)
        return plim_fail_at(err, PLIM_SPEC, document->source, 1, 1,
                            "expected a config.json: a mapping with a model_type");
    struct plim_yaml text = *document;
    text.root = text_of(document->root, wanted);
    const struct plim_yaml *yaml = &text;
    PLIM_TRY(read_family(yaml, wanted, &family, err));
    PLIM_TRY(plim_hf_refuse_keys(yaml, family, err));
    PLIM_TRY(plim_family_defaults(family, &spec->model_as_given, err));
    if (!wanted) PLIM_TRY(plim_hf_refuse_other_code(yaml, err));
    PLIM_TRY(plim_hf_read_task(yaml, family, wanted != NULL, &spec->model_as_given.task, err));
    PLIM_TRY(plim_hf_refuse_unscaled(yaml, family, err));
    spec->layer_types_given = spec->nope_layers_given = 0;
    PLIM_TRY(plim_family_info(family)->vision ? read_parts(yaml, spec, err)
                                              : read_known(yaml, yaml->root, "", false, spec, err));
out:
    return st;
}
