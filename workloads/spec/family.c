/* Reads the keys of a family. */
#include "family.h"

#include <string.h>

enum { ACTIVATION_SWISH = PLIM_ACTIVATION_GELU_PYTHON + 1 };

static const char *const activation_names[] = {
    [PLIM_ACTIVATION_GELU] = "gelu",
    [PLIM_ACTIVATION_GELU_NEW] = "gelu_new",
    [PLIM_ACTIVATION_GELU_PYTORCH_TANH] = "gelu_pytorch_tanh",
    [PLIM_ACTIVATION_SILU] = "silu",
    [PLIM_ACTIVATION_RELU] = "relu",
    [PLIM_ACTIVATION_RELU2] = "relu2",
    [PLIM_ACTIVATION_QUICK_GELU] = "quick_gelu",
    [PLIM_ACTIVATION_XIELU] = "xielu",
    [PLIM_ACTIVATION_GELU_PYTHON] = "gelu_python",
    [ACTIVATION_SWISH] = "swish",
};

/* Indexed by enum plim_feed_forward; t5's gated-gelu is gelu_new. */
static const char *const feed_forward_names[PLIM_FEED_COUNT] = {
    "gelu", "gelu_new", "gelu_pytorch_tanh", "silu", "relu", "relu2", "quick_gelu", "xielu", "gelu_python",
    "gated-gelu", "gated-gelu_new", "gated-gelu_pytorch_tanh", "gated-silu", "gated-relu", "gated-relu2",
    "gated-quick_gelu", "gated-xielu", "gated-gelu_python",
};

/* Indexed by enum plim_top_k */
static const char *const top_k_names[PLIM_TOP_K_COUNT] = {"greedy", "group_limited_greedy"};

/* Indexed by enum plim_seeing */
static const char *const seeing_names[PLIM_SEEING_COUNT] = {"none", "vision"};
/* Indexed by enum plim_position_scores, and another spelling of the last */
enum { SCORES_TURNED = PLIM_SCORES_COUNT };
static const char *const score_names[] = {"none", "c2p", "p2c", "p2c|c2p", "c2p|p2c"};
/* Indexed by enum plim_position_kind */
static const char *const position_names[PLIM_POSITIONS_COUNT] = {"absolute", "rotary"};
/* Indexed by enum plim_position_use */
static const char *const position_use_names[PLIM_POSITION_USE_COUNT] = {"nope", "rope"};
/* Indexed by enum plim_distance_norm */
static const char *const distance_names[PLIM_DISTANCE_COUNT] = {"none", "layer_norm"};

/* The value type of a row of PLIM_FIELD_MAP, with the names of an enumeration */
#define OF_INT .type = PLIM_VALUE_INT
#define OF_NUMBER .type = PLIM_VALUE_NUMBER
#define OF_BOOL .type = PLIM_VALUE_BOOL
#define OF_NAMES(table)                                                                            \
    .type = PLIM_VALUE_ENUM, .names = table, .name_count = sizeof(table) / sizeof((table)[0])
#define OF_ACTIVATION OF_NAMES(activation_names)
#define OF_FEED_FORWARD OF_NAMES(feed_forward_names)
#define OF_TASK OF_NAMES(plim_task_names)
#define OF_TOP_K OF_NAMES(top_k_names)
#define OF_SEEING OF_NAMES(seeing_names)
#define OF_POSITION_SCORES OF_NAMES(score_names)
#define OF_DISTANCE_NORM OF_NAMES(distance_names)
#define OF_POSITION_KIND OF_NAMES(position_names)
#define OF_POSITION_USE OF_NAMES(position_use_names)
#define OF_POOLING OF_NAMES(plim_pooling_names)
#define OF_FAMILY OF_NAMES(plim_family_names)

/* The value of null for fields in which 0 is a valid value */
#define NULL_VALUE(field)                                                                          \
    ((field) == PLIM_FIELD_PAD_TOKEN            ? PLIM_NO_TOKEN                                     \
     : (field) == PLIM_FIELD_DECODER_START      ? PLIM_NO_TOKEN                                     \
     : (field) == PLIM_FIELD_MASK_TOKEN         ? PLIM_NO_TOKEN                                     \
     : (field) == PLIM_FIELD_DROPOUT_CLASSIFIER ? -1                                                \
                                                : 0)

struct plim_liger_patches plim_family_liger(const struct plim_model_config *config,
                                            const struct plim_train_setting *setting)
{
    if (!setting->liger) return (struct plim_liger_patches){0};
    return plim_liger_selected(&plim_family_info(config->family)->liger, &setting->liger_kernels);
}

const struct plim_field_info *plim_field_info(enum plim_field field)
{
#define FIELD(suffix, member, type_suffix, low, high, usual, unit_text, help_text)                 \
    [PLIM_FIELD_##suffix] = {                                                                      \
        .name = usual,                                                                             \
        .offset = offsetof(struct plim_model_config, member),                                      \
        .value = {OF_##type_suffix,                                                                \
                  .null_value = NULL_VALUE(PLIM_FIELD_##suffix),                                   \
                  .minimum = low,                                                                  \
                  .maximum = high},                                                                \
        .unit = unit_text,                                                                         \
        .help = help_text,                                                                         \
    },
    static const struct plim_field_info fields[PLIM_FIELD_COUNT] = {PLIM_FIELD_MAP(FIELD)};
#undef FIELD
    return &fields[field];
}

enum plim_family plim_family_named(const char *name)
{
    int f = 0;
    while (f < PLIM_FAMILY_COUNT && strcmp(plim_family_names[f], name) != 0) f++;
    return (enum plim_family)f;
}

bool plim_family_has_task(enum plim_family family, enum plim_task task)
{
    unsigned tasks = plim_family_info(family)->tasks;
    return (tasks ? tasks : 1u << PLIM_TASK_CAUSAL_LM | 1u << PLIM_TASK_CLASSIFICATION) >> task & 1;
}

const char *plim_family_other_layers(enum plim_family family)
{
    const struct plim_family_info *info = plim_family_info(family);
    return info->convolves ? "conv" : plim_family_mixes(info) ? "linear_attention" : "sliding_attention";
}

bool plim_family_is_decoder(enum plim_family family)
{
    return plim_family_has_task(family, PLIM_TASK_CAUSAL_LM);
}

const char *plim_model_classifier(const struct plim_model_config *model)
{
    const struct plim_family_info *info = plim_family_info(model->family);
    switch (model->task) {
    case PLIM_TASK_CLASSIFICATION: return info->classifier ? info->classifier : "score";
    case PLIM_TASK_TOKEN_CLASSIFICATION: return "classifier";
    case PLIM_TASK_QUESTION_ANSWERING: return info->answers ? info->answers : "qa_outputs";
    default: return NULL;
    }
}

const struct plim_family_key *plim_family_find(enum plim_family family, const char *name,
                                               bool usual)
{
    const struct plim_family_info *info = plim_family_info(family);
    for (size_t i = 0; i < info->key_count; i++) {
        const struct plim_family_key *key = &info->keys[i];
        if (strcmp(key->name, name) == 0 || (key->alias && strcmp(key->alias, name) == 0)) return key;
    }
    for (size_t i = 0; i < info->key_count && usual; i++) /* it may name another key (qwen2_vl) */
        if (strcmp(plim_field_info(info->keys[i].field)->name, name) == 0) return &info->keys[i];
    return NULL;
}

const char *plim_family_key_name(enum plim_family family, enum plim_field field)
{
    const struct plim_family_info *info = plim_family_info(family);
    for (size_t i = 0; i < info->key_count; i++)
        if (info->keys[i].field == field) return info->keys[i].name;
    return plim_field_info(field)->name;
}

struct plim_value plim_family_key_value(const struct plim_family_key *key)
{
    struct plim_value value = plim_field_info(key->field)->value;
    value.nullable = key->nullable;
    return value;
}

/* Joins a list of words with |: pos_att_type may be written either way. `joined` is a scalar with `text`. */
static void join_words(const struct plim_yaml_node *list, char *text, size_t size, struct plim_yaml_node *joined)
{
    size_t used = 0;
    snprintf(text, size, list->count ? "" : "none");
    for (size_t i = 0; i < list->count && used < size; i++) {
        const struct plim_yaml_node *word = list->items[i];
        int wrote = snprintf(text + used, size - used, "%s%s", i ? "|" : "",
                             word->kind == PLIM_YAML_SCALAR ? word->text : "?");
        used += wrote > 0 ? (size_t)wrote : 0;
    }
    *joined = *list;
    joined->kind = PLIM_YAML_SCALAR;
    joined->text = text;
}

/* Returns the single value of a list [height, width] of two equal values; otherwise `list` itself */
static const struct plim_yaml_node *one_of_two(const struct plim_yaml_node *list)
{
    if (list->kind != PLIM_YAML_SEQUENCE || list->count != 2) return list;
    const struct plim_yaml_node *a = list->items[0], *b = list->items[1];
    return a->kind == PLIM_YAML_SCALAR && b->kind == PLIM_YAML_SCALAR && !strcmp(a->text, b->text) ? a : list;
}

enum plim_status plim_family_key_read(enum plim_family family, const struct plim_family_key *key,
                                      const struct plim_place *place,
                                      const struct plim_yaml_node *node,
                                      struct plim_model_config *model)
{
    const struct plim_family_info *info = plim_family_info(family);
    enum plim_status st = PLIM_OK;
    char words[64];
    struct plim_yaml_node joined;
    bool is_side = key->field == PLIM_FIELD_VISION_IMAGE || key->field == PLIM_FIELD_VISION_PATCH;
    if (is_side) node = one_of_two(node);
    if (key->field == PLIM_FIELD_MAMBA_HEAD_DIM && plim_yaml_is_text(node, "auto")) return PLIM_OK; /* derived */
    bool is_list = key->field == PLIM_FIELD_POSITION_SCORES && node->kind == PLIM_YAML_SEQUENCE;
    if (is_list) join_words(node, words, sizeof(words), &joined);
    if (is_list) node = &joined;
    for (size_t i = 0; i < info->key_count && st == PLIM_OK; i++) {
        if (strcmp(info->keys[i].name, key->name) != 0) continue;
        const struct plim_value value = plim_family_key_value(&info->keys[i]);
        st = plim_value_read(&value, place, node,
                             (char *)model + plim_field_info(info->keys[i].field)->offset);
    }
    enum plim_activation *functions[] = {&model->activation, &model->classifier_activation, &model->vision.activation};
    for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++)
        if ((int)*functions[i] == ACTIVATION_SWISH) *functions[i] = PLIM_ACTIVATION_SILU;
    if ((int)model->position_scores == SCORES_TURNED) model->position_scores = PLIM_SCORES_BOTH;
    return st;
}

enum plim_status plim_family_defaults(enum plim_family family, struct plim_model_config *model,
                                      struct plim_error *err)
{
    const struct plim_family_info *info = plim_family_info(family);
    enum plim_status st = PLIM_OK;
    *model = (struct plim_model_config){
        .family = family,
        .partial_rotary_factor = info->rope == PLIM_ROPE_PROPORTIONAL ? 0.25 : 1,
        .pad_token_id = PLIM_NO_TOKEN,
        .activation = info->activation, .rope = info->rope, .rope_original_positions = info->rope_original_positions};
    for (int64_t *count = &model->vision.deep_count; *count < PLIM_MAX_DEEP && info->deep[*count]; ++*count)
        model->vision.deep[*count] = info->deep[*count];
    for (int64_t *count = &model->vision.full_count; *count < PLIM_MAX_DEEP && info->full[*count]; ++*count)
        model->vision.full[*count] = info->full[*count];
    for (int i = 0; i < PLIM_GRIDS; i++) model->mrope_section[i] = info->mrope_section[i];
    for (size_t i = 0; i < info->key_count && st == PLIM_OK; i++) {
        const struct plim_family_key *key = &info->keys[i];
        if (!key->fallback) continue;
        const struct plim_yaml yaml = {0};
        const struct plim_yaml_node node = {.kind = PLIM_YAML_SCALAR, .text = key->fallback};
        const struct plim_place place = {.yaml = &yaml, .prefix = "", .key = key->name, .err = err};
        st = plim_family_key_read(family, key, &place, &node, model);
    }
    return st;
}
