#include "spec_vision.h"
#include "family.h"
#include "spec_internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* --- reading ---------------------------------------------------------------------------------- */

static enum plim_status read_blocks(const struct plim_place *place, const struct plim_yaml_node *node,
                                    int64_t blocks[PLIM_MAX_DEEP], int64_t *count)
{
    static const struct plim_value layer = {.type = PLIM_VALUE_INT, .minimum = 0, .maximum = PLIM_MAX_LAYERS};
    if (node->kind != PLIM_YAML_SEQUENCE || node->count > PLIM_MAX_DEEP)
        return plim_value_refuse(place, node, "a list of at most 16 blocks of the vision tower");
    memset(blocks, 0, PLIM_MAX_DEEP * sizeof(*blocks));
    *count = 0;
    for (size_t i = 0; i < node->count; i++) {
        enum plim_status st = plim_value_read(&layer, place, node->items[i], &blocks[i]);
        if (st != PLIM_OK) return st;
        ++*count;
    }
    return PLIM_OK;
}

enum plim_status plim_vision_read_deep(const struct plim_place *place, const struct plim_yaml_node *node,
                                       struct plim_spec *spec)
{
    struct plim_vision *vision = &spec->model_as_given.vision;
    return read_blocks(place, node, vision->deep, &vision->deep_count);
}

enum plim_status plim_vision_read_full(const struct plim_place *place, const struct plim_yaml_node *node,
                                       struct plim_spec *spec)
{
    struct plim_vision *vision = &spec->model_as_given.vision;
    return read_blocks(place, node, vision->full, &vision->full_count);
}

enum plim_status plim_vision_read_sections(const struct plim_place *place, const struct plim_yaml_node *node,
                                           struct plim_model_config *model)
{
    static const struct plim_value angles = {.type = PLIM_VALUE_INT, .minimum = 0, .maximum = 1 << 16};
    enum plim_status st = PLIM_OK;
    if (node->kind != PLIM_YAML_SEQUENCE || node->count != PLIM_GRIDS)
        return plim_value_refuse(place, node, "mrope_section: a list of three numbers of angles");
    for (size_t i = 0; i < PLIM_GRIDS && st == PLIM_OK; i++)
        st = plim_value_read(&angles, place, node->items[i], &model->mrope_section[i]);
    return st;
}

/* SiglipVisionModel has a pooling head unless its config says otherwise, as all of gemma3's do. */
static enum plim_status check_head(const struct plim_place *place, const struct plim_yaml_node *config)
{
    const struct plim_yaml_node *head = plim_yaml_get(config, "vision_use_head");
    if (head && head->kind == PLIM_YAML_SCALAR && (!strcmp(head->text, "false") || !strcmp(head->text, "False")))
        return PLIM_OK;
    return plim_value_refuse(place, head ? head : config, "vision_use_head: false, as it is published; a tower's "
                                                          "pooling head is not supported");
}

/* PixtralVisionConfig and CLIPVisionConfig, whose defaults differ from the towers that Mistral3Config and LlavaConfig
 * create without a vision_config */
static void take_class_defaults(struct plim_model_config *model)
{
    static const struct {
        enum plim_family family;
        enum plim_field field;
        int64_t value;
    } defaults[] = {
        {PLIM_FAMILY_MISTRAL3, PLIM_FIELD_VISION_PATCH, 16},
        {PLIM_FAMILY_LLAVA, PLIM_FIELD_VISION_HIDDEN, 768},
        {PLIM_FAMILY_LLAVA, PLIM_FIELD_VISION_INTERMEDIATE, 3072},
        {PLIM_FAMILY_LLAVA, PLIM_FIELD_VISION_LAYERS, 12},
        {PLIM_FAMILY_LLAVA, PLIM_FIELD_VISION_HEADS, 12},
        {PLIM_FAMILY_LLAVA, PLIM_FIELD_VISION_IMAGE, 224},
        {PLIM_FAMILY_LLAVA, PLIM_FIELD_VISION_PATCH, 32},
    };
    for (size_t i = 0; i < sizeof(defaults) / sizeof(defaults[0]); i++)
        if (defaults[i].family == model->family)
            memcpy((char *)model + plim_field_info(defaults[i].field)->offset, &defaults[i].value, sizeof(int64_t));
}

enum plim_status plim_vision_read(const struct plim_yaml *yaml, const struct plim_yaml_node *config,
                                  struct plim_spec *spec, struct plim_error *err)
{
    enum plim_family family = spec->model_as_given.family;
    const struct plim_family_info *info = plim_family_info(family);
    struct plim_place place = {.yaml = yaml, .prefix = "vision_config.", .err = err};
    enum plim_status st = PLIM_OK;
    if (config && config->kind == PLIM_YAML_MAPPING) take_class_defaults(&spec->model_as_given);
    if (family == PLIM_FAMILY_GEMMA3 && config && config->kind == PLIM_YAML_MAPPING) {
        place.key = "vision_use_head";
        st = check_head(&place, config);
    }
    for (size_t i = 0; config && config->kind == PLIM_YAML_MAPPING && i < config->count && st == PLIM_OK; i++) {
        char name[96];
        place.key = config->keys[i]->text;
        snprintf(name, sizeof(name), "vision_%s", place.key);
        const struct plim_family_key *key = plim_family_find(family, name, false);
        if (key) st = plim_family_key_read(family, key, &place, config->items[i], &spec->model_as_given);
        if (info->deep[0] && !strcmp(place.key, "deepstack_visual_indexes"))
            st = plim_vision_read_deep(&place, config->items[i], spec);
        if (info->full[0] && !strcmp(place.key, "fullatt_block_indexes"))
            st = plim_vision_read_full(&place, config->items[i], spec);
    }
    return st;
}

/* Output channels of the audio tower's two subsampling convolutions */
static enum plim_status read_channels(const struct plim_place *place, const struct plim_yaml_node *node,
                                      struct plim_spec *spec)
{
    static const char *const names[] = {"audio_conv_channels_0", "audio_conv_channels_1"};
    enum plim_family family = spec->model_as_given.family;
    enum plim_status st = PLIM_OK;
    if (node->kind != PLIM_YAML_SEQUENCE || node->count != 2) return plim_value_refuse(place, node, "two numbers");
    for (int i = 0; i < 2 && st == PLIM_OK; i++)
        st = plim_family_key_read(family, plim_family_find(family, names[i], false), place, node->items[i],
                                  &spec->model_as_given);
    return st;
}

enum plim_status plim_audio_read(const struct plim_yaml *yaml, struct plim_spec *spec, struct plim_error *err)
{
    enum plim_family family = spec->model_as_given.family;
    const struct plim_yaml_node *config = plim_yaml_get(yaml->root, "audio_config"),
                                *vision = plim_yaml_get(yaml->root, "vision_config");
    struct plim_place place = {.yaml = yaml, .prefix = "audio_config.", .err = err};
    enum plim_status st = PLIM_OK;
    if (!vision || vision->kind != PLIM_YAML_MAPPING)
        return plim_yaml_fail(yaml, vision ? vision : yaml->root, err, "vision_config is missing, expected one (a "
                              "model of text alone is family gemma4_text or gemma4_unified_text)");
    if (!config || config->kind != PLIM_YAML_MAPPING) return PLIM_OK;
    if (family == PLIM_FAMILY_GEMMA4) spec->model_as_given.audio.layers = 12; /* Gemma4AudioConfig's default */
    else spec->model_as_given.audio.out_size = 640;                           /* Gemma4UnifiedAudioConfig's */
    for (size_t i = 0; i < config->count && st == PLIM_OK; i++) {
        char name[96];
        place.key = config->keys[i]->text;
        snprintf(name, sizeof(name), "audio_%s", place.key);
        const struct plim_family_key *key = plim_family_find(family, name, false);
        if (key) st = plim_family_key_read(family, key, &place, config->items[i], &spec->model_as_given);
        if (!strcmp(place.key, "subsampling_conv_channels")) st = read_channels(&place, config->items[i], spec);
    }
    return st;
}

void plim_vision_derive(struct plim_model_config *model)
{
    struct plim_vision *v = &model->vision;
    if (model->family == PLIM_FAMILY_MISTRAL3) {
        v->row_ends = v->by_ids = true;
        v->frames = 1;
        v->out_hidden_size = model->hidden_size;
    }
    v->has_no_blocks = model->family == PLIM_FAMILY_GEMMA4_UNIFIED;
    if (model->family == PLIM_FAMILY_GEMMA4 || v->has_no_blocks) {
        v->channels = 3; /* the class ignores num_channels */
        v->frames = 1;
        v->out_hidden_size = model->hidden_size;
    }
    if (!v->image_size) return;
    int64_t side = v->image_size / v->patch_size, tokens = (int64_t)sqrt((double)v->image_tokens);
    v->positions = side * side;
    v->has_tiles = model->family == PLIM_FAMILY_INTERNVL;
    v->has_class = v->by_ids = model->family == PLIM_FAMILY_LLAVA || v->has_tiles;
    v->merge_size = v->has_tiles ? 2 : v->has_class ? 1 : side / tokens; /* the last: Gemma3MultiModalProjector */
    v->frames = 1;
    v->out_hidden_size = model->hidden_size;
}

/* --- checks ----------------------------------------------------------------------------------- */

/* Checks a tower with images of a fixed size. */
static enum plim_status check_pooled(const struct plim_vision *v, const char **culprit, struct plim_error *err)
{
    *culprit = "vision_num_attention_heads";
    if (v->hidden_size % v->heads)
        return plim_fail(err, PLIM_SPEC, "vision_hidden_size is %lld and vision_num_attention_heads %lld, expected "
                         "heads that divide it", (long long)v->hidden_size, (long long)v->heads);
    *culprit = "vision_image_size";
    int64_t unit = v->patch_size * v->merge_size;
    if (v->has_class && (v->image_size < unit || v->image_size % unit))
        return plim_fail(err, PLIM_SPEC, "vision_image_size is %lld, expected a multiple of %lld, the size of a "
                                         "token", (long long)v->image_size, (long long)unit);
    if (v->has_class) return PLIM_OK;
    *culprit = "mm_tokens_per_image";
    int64_t side = v->image_size / v->patch_size, tokens = side / (v->merge_size ? v->merge_size : 1);
    if (!v->merge_size || v->image_size % v->patch_size || tokens * v->merge_size != side ||
        tokens * tokens != v->image_tokens)
        return plim_fail(err, PLIM_SPEC, "mm_tokens_per_image is %lld, expected a square number of tokens whose sides "
                         "divide the %lld patches of an image's (vision_image_size %lld, vision_patch_size %lld)",
                         (long long)v->image_tokens, (long long)side, (long long)v->image_size,
                         (long long)v->patch_size);
    return PLIM_OK;
}

/* Checks gemma4's towers. */
static enum plim_status check_clipped(const struct plim_model_config *model, const char **culprit,
                                      struct plim_error *err)
{
    const struct plim_vision *v = &model->vision;
    const struct plim_audio *a = &model->audio;
    *culprit = "vision_num_key_value_heads";
    if (v->heads % v->kv_heads)
        return plim_fail(err, PLIM_SPEC, "vision_num_attention_heads is %lld and vision_num_key_value_heads %lld, "
                         "expected key-value heads that divide it", (long long)v->heads, (long long)v->kv_heads);
    *culprit = "vision_head_dim";
    if (v->head_dim % 4)
        return plim_fail(err, PLIM_SPEC, "vision_head_dim is %lld, expected a multiple of 4, for rotary embeddings "
                                         "in two dimensions", (long long)v->head_dim);
    *culprit = v->layers > PLIM_MAX_CLIPPED ? "vision_num_hidden_layers" : "audio_num_hidden_layers";
    if (v->layers > PLIM_MAX_CLIPPED || a->layers > PLIM_MAX_CLIPPED)
        return plim_fail(err, PLIM_SPEC, "a tower of %s has more than %d blocks, which is not supported",
                         plim_family_names[model->family], PLIM_MAX_CLIPPED);
    *culprit = "audio_num_attention_heads";
    if (a->layers && a->hidden_size % a->heads)
        return plim_fail(err, PLIM_SPEC, "audio_hidden_size is %lld and audio_num_attention_heads %lld, expected heads "
                         "that divide it", (long long)a->hidden_size, (long long)a->heads);
    return PLIM_OK;
}

enum plim_status plim_vision_check(const struct plim_model_config *model, const char **culprit,
                                   struct plim_error *err)
{
    const struct plim_vision *v = &model->vision;
    const enum plim_family *texts = plim_family_info(model->family)->texts;
    *culprit = "text_model_type";
    if (model->text && model->text != texts[0] && model->text != texts[1])
        return plim_fail(err, PLIM_SPEC, "text_model_type is %s, expected %s or %s", plim_family_names[model->text],
                         plim_family_names[texts[0]], plim_family_names[texts[1]]);
    if (!v->layers) return PLIM_OK;
    if (v->image_size) return check_pooled(v, culprit, err);
    if (v->head_dim) return check_clipped(model, culprit, err);
    *culprit = v->row_ends ? "vision_num_attention_heads" : "vision_num_heads";
    if (v->hidden_size % v->heads || v->hidden_size / v->heads % 4)
        return plim_fail(err, PLIM_SPEC, "vision_hidden_size is %lld and %s %lld, expected heads whose width is a "
                                         "multiple of 4, for rotary embeddings in two dimensions",
                         (long long)v->hidden_size, *culprit, (long long)v->heads);
    *culprit = "vision_window_size";
    if (v->window_size && v->window_size / v->merge_size / v->patch_size < 1)
        return plim_fail(err, PLIM_SPEC, "vision_window_size is %lld, expected at least %lld, the size of a token",
                         (long long)v->window_size, (long long)(v->merge_size * v->patch_size));
    *culprit = "vision_deepstack_visual_indexes";
    for (int64_t i = 0; i < v->deep_count; i++)
        if (v->deep[i] >= v->layers)
            return plim_fail(err, PLIM_SPEC, "vision_deepstack_visual_indexes has %lld, expected blocks below "
                             "vision_depth = %lld", (long long)v->deep[i], (long long)v->layers);
    return PLIM_OK;
}

struct plim_images plim_spec_images(const struct plim_spec *spec)
{
    const struct plim_vision *v = &spec->model.vision;
    struct plim_images images = spec->images;
    images.pixels = 0;
    if (!plim_vision_exists(v)) return (struct plim_images){0};
    if (images.count < 0) images.count = v->layers > 0 && !plim_family_info(spec->model.family)->mostly_text;
    if (!images.count) return (struct plim_images){0};
    if (v->image_size) {
        if (!images.height) images.height = v->image_size;
        if (!images.width) images.width = v->image_size;
    }
    int64_t unit = v->patch_size * v->merge_size;
    int64_t side = (int64_t)sqrt((double)spec->images.pixels) / unit * unit;
    if (!images.height) images.height = side;
    if (!images.width) images.width = side;
    return images;
}

static enum plim_status check_sizes(const struct plim_spec *spec, const struct plim_images *images,
                                    struct plim_error *err)
{
    const struct plim_vision *v = &spec->model.vision;
    if (!spec->images.height != !spec->images.width)
        return plim_fail(err, PLIM_SPEC, "data.image_height or data.image_width is given, expected both or neither");
    if (v->out_hidden_size != spec->model.hidden_size) /* the class's defaults do not match */
        return plim_fail(err, PLIM_SPEC, "vision_out_hidden_size is %lld and hidden_size %lld, expected the same: "
                                         "image features replace tokens of the text",
                         (long long)v->out_hidden_size, (long long)spec->model.hidden_size);
    if (v->image_size && !v->has_tiles && (images->height != v->image_size || images->width != v->image_size))
        return plim_fail(err, PLIM_SPEC, "data.image_height is %lld and data.image_width %lld, expected none, or "
                                         "%lld, the size to which the model's processor resizes "
                                         "images", (long long)images->height,
                         (long long)images->width, (long long)v->image_size);
    int64_t unit = v->has_tiles ? v->image_size : v->patch_size * v->merge_size;
    if (!images->height)
        return plim_fail(err, PLIM_SPEC, "data.image_pixels is %lld, expected at least %lld, the size of a token",
                         (long long)spec->images.pixels, (long long)(unit * unit));
    if (images->height % unit || images->width % unit)
        return plim_fail(err, PLIM_SPEC, "data.image_height is %lld and data.image_width %lld, expected multiples of "
                                         "%lld, as the model's processor resizes images",
                         (long long)images->height, (long long)images->width, (long long)unit);
    int64_t tokens = plim_image_extent(v, images), least = plim_image_shortest_row(v, images);
    for (size_t i = 0; i < spec->seq.count; i++)
        if (spec->seq.values[i] < least)
            return plim_fail(err, PLIM_SPEC, "data.seq is %lld, expected at least %lld: data.images %lld of %lld "
                             "tokens each, and the text around them", (long long)spec->seq.values[i],
                             (long long)least, (long long)images->count, (long long)tokens);
    return PLIM_OK;
}

enum plim_status plim_spec_check_images(const struct plim_spec *spec, struct plim_error *err)
{
    const char *family = plim_family_names[spec->model.family];
    if (!spec->model.vision.layers)
        return spec->images.count <= 0 ? PLIM_OK
                                       : plim_fail(err, PLIM_SPEC, "data.images is %lld, expected none for %s, which "
                                                   "has no vision tower", (long long)spec->images.count, family);
    const struct plim_images images = plim_spec_images(spec);
    return images.count ? check_sizes(spec, &images, err) : PLIM_OK;
}
