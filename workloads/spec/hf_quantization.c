/* Reads quantization_config of a config.json: the types in which the published weights are stored. */
#include "hf_config.h"
#include "spec_internal.h"

static bool is_true(const struct plim_yaml *yaml, const struct plim_yaml_node *map,
                    const char *name)
{
    const struct plim_yaml_node *node = plim_yaml_get(map, name);
    bool value = false;
    return node && plim_yaml_bool(yaml, node, &value, NULL) == PLIM_OK && value;
}

/* Only the head, which is never quantised, may be listed. */
static enum plim_status check_skipped(const struct plim_place *place,
                                      const struct plim_yaml_node *list)
{
    for (size_t i = 0; list && list->kind == PLIM_YAML_SEQUENCE && i < list->count; i++)
        if (!plim_yaml_is_text(list->items[i], "lm_head") && !plim_yaml_is_text(list->items[i], "embed_out"))
            return plim_yaml_fail(place->yaml, list->items[i], place->err,
                                  "quantization_config.llm_int8_skip_modules: modules that are not quantised are not "
                                  "supported, expected lm_head alone (plimsoll exec runs any training program)");
    return PLIM_OK;
}

/* Reads a BitsAndBytesConfig, with its defaults for missing keys. */
static enum plim_status read_bitsandbytes(const struct plim_place *place,
                                          const struct plim_yaml_node *map, struct plim_spec *spec)
{
    static const struct plim_value types = {.type = PLIM_VALUE_ENUM,
                                            .names = plim_quantization_names,
                                            .name_count = PLIM_QUANTIZATION_COUNT};
    static const struct plim_value dtypes = {
        .type = PLIM_VALUE_ENUM, .names = plim_dtype_names, .name_count = PLIM_WEIGHTS_COUNT};
    static const char *const storage_names[PLIM_STORAGE_COUNT] = {"uint8", "bfloat16", "float16", "float32"};
    static const struct plim_value storages = {
        .type = PLIM_VALUE_ENUM, .names = storage_names, .name_count = PLIM_STORAGE_COUNT};
    const struct plim_yaml_node *type = plim_yaml_get(map, "bnb_4bit_quant_type"),
                                *compute = plim_yaml_get(map, "bnb_4bit_compute_dtype"),
                                *storage = plim_yaml_get(map, "bnb_4bit_quant_storage");
    struct plim_quantization q = {
        .type = PLIM_QUANTIZATION_FP4,
        .prepared = spec->quantization.prepared,
        .compute = PLIM_WEIGHTS_FP32,
        .nested = is_true(place->yaml, map, "bnb_4bit_use_double_quant")};
    if (is_true(place->yaml, map, "load_in_8bit")) {
        spec->quantization = (struct plim_quantization){.type = PLIM_QUANTIZATION_INT8,
                                                        .prepared = spec->quantization.prepared};
        return check_skipped(place, plim_yaml_get(map, "llm_int8_skip_modules"));
    }
    enum plim_status st = check_skipped(place, plim_yaml_get(map, "llm_int8_skip_modules"));
    if (st == PLIM_OK && type) st = plim_value_read(&types, place, type, &q.type);
    if (st == PLIM_OK && compute) st = plim_value_read(&dtypes, place, compute, &q.compute);
    if (st == PLIM_OK && storage) st = plim_value_read(&storages, place, storage, &q.storage);
    if (st == PLIM_OK) spec->quantization = q;
    return st;
}

/* gpt_oss is published in mxfp4. For training it is dequantised to bf16 when it is loaded
 * (Mxfp4Config(dequantize=True)); transformers refuses to train it otherwise (Mxfp4HfQuantizer.is_trainable). */
static bool is_mxfp4(const struct plim_yaml_node *node, const struct plim_spec *spec)
{
    return node->kind == PLIM_YAML_MAPPING && spec->model_as_given.family == PLIM_FAMILY_GPT_OSS &&
           plim_yaml_is_text(plim_yaml_get(node, "quant_method"), "mxfp4");
}

enum plim_status plim_hf_read_quantization(const struct plim_place *place, const struct plim_yaml_node *node,
                                           struct plim_spec *spec)
{
    bool empty = node->kind != PLIM_YAML_SCALAR && node->count == 0;
    if (plim_yaml_is_null(node) || empty) return PLIM_OK;
    bool bitsandbytes = node->kind == PLIM_YAML_MAPPING &&
                        plim_yaml_is_text(plim_yaml_get(node, "quant_method"), "bitsandbytes");
    bool loads = bitsandbytes && (is_true(place->yaml, node, "load_in_4bit") ||
                                  is_true(place->yaml, node, "load_in_8bit"));
    if (loads)
        return read_bitsandbytes(place, node, spec);
    if (is_mxfp4(node, spec)) {
        spec->model_as_given.dtype = PLIM_WEIGHTS_BF16;
        return PLIM_OK;
    }
    return plim_yaml_fail(place->yaml, node, place->err,
                          "quantization_config: its weights are stored in other types than they "
                          "are trained in, expected bitsandbytes in 4 or 8 bits, or a config.json "
                          "without it (plimsoll exec runs any training program)");
}
