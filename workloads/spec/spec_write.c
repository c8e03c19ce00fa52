/* Writes a spec as plimsoll YAML, with keys in the order of their tables: equal specs give equal text. */
#include "autotune/base/text_stream.h"
#include "family.h"
#include "key.h"
#include "lora_modules.h"
#include "spec_internal.h"
#include "spec_seq2seq.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- values ----------------------------------------------------------------------------------- */

/* Writes the shortest digits that read back as the same number: whole numbers below a million without an exponent;
 * YAML 1.1 needs a decimal point before one. */
static void write_number(double number, FILE *file)
{
    char text[40];
    int digits = number == floor(number) && fabs(number) < 1e6 ? 6 : 1;
    do snprintf(text, sizeof(text), "%.*g", digits, number);
    while (strtod(text, NULL) != number && digits++ < 17);
    char *exponent = strchr(text, 'e');
    if (exponent && !strchr(text, '.'))
        fprintf(file, "%.*s.0%s", (int)(exponent - text), text, exponent);
    else
        fputs(text, file);
}

static void write_text(const char *text, FILE *file)
{
    fputc('"', file);
    for (; *text; text++) {
        if (*text == '"' || *text == '\\') fputc('\\', file);
        fputc(*text, file);
    }
    fputc('"', file);
}

static void write_int_axis(const struct plim_int_axis *axis, FILE *file)
{
    fputs(axis->count == 1 ? "" : "[", file);
    for (size_t i = 0; i < axis->count; i++)
        fprintf(file, "%s%lld", i ? ", " : "", (long long)axis->values[i]);
    fputs(axis->count == 1 ? "" : "]", file);
}

static void write_enum_axis(const struct plim_value *value, const struct plim_enum_axis *axis,
                            FILE *file)
{
    fputs(axis->count == 1 ? "" : "[", file);
    for (size_t i = 0; i < axis->count; i++)
        fprintf(file, "%s%s", i ? ", " : "", value->names[axis->values[i]]);
    fputs(axis->count == 1 ? "" : "]", file);
}

static void write_schedule(const struct plim_spec *spec, FILE *file)
{
    fputc('{', file);
    for (size_t i = 0; i < spec->schedule_count; i++)
        fprintf(file, "%s%lld: %lld", i ? ", " : "", (long long)spec->schedule[i].epoch,
                (long long)spec->schedule[i].accumulation);
    fputc('}', file);
}

static void write_modules(const char *modules, FILE *file)
{
    char name[PLIM_MODULE_NAME];
    if (plim_modules_is_regex(modules)) {
        write_text(modules, file);
        return;
    }
    fputc('[', file);
    for (const char *at = modules; plim_modules_next(&at, name);) fprintf(file, "%s%s", name, *at ? ", " : "");
    fputc(']', file);
}

static void write_ranks(const struct plim_lora *lora, FILE *file)
{
    fputc('{', file);
    for (size_t i = 0; i < lora->rank_count; i++) {
        fputs(i ? ", " : "", file);
        write_text(lora->ranks[i].regex, file);
        fprintf(file, ": %lld", (long long)lora->ranks[i].r);
    }
    fputc('}', file);
}

/* Writes the value at `in` as YAML that plim_value_read() reads back exactly. */
static void write_value(const struct plim_value *value, const void *in, FILE *file)
{
    int index = 0;
    if (plim_value_is_null(value, in)) {
        fputs(value->null_word ? value->null_word : "null", file);
        return;
    }
    switch (value->type) {
    case PLIM_VALUE_INT: fprintf(file, "%lld", (long long)*(const int64_t *)in); break;
    case PLIM_VALUE_NUMBER:
    case PLIM_VALUE_SHARE: write_number(*(const double *)in, file); break;
    case PLIM_VALUE_BOOL: fputs(*(const bool *)in ? "true" : "false", file); break;
    case PLIM_VALUE_ENUM:
        memcpy(&index, in, sizeof(index));
        fputs(value->names[index], file);
        break;
    case PLIM_VALUE_TEXT: write_text(in, file); break;
    case PLIM_VALUE_INT_AXIS: write_int_axis(in, file); break;
    case PLIM_VALUE_ENUM_AXIS: write_enum_axis(value, in, file); break;
    case PLIM_VALUE_SCHEDULE: write_schedule(in, file); break;
    case PLIM_VALUE_MODULES: write_modules(in, file); break;
    case PLIM_VALUE_RANKS: write_ranks(in, file); break;
    case PLIM_VALUE_TYPE_COUNT: break;
    }
}

/* --- the model -------------------------------------------------------------------------------- */

static void write_rope(const struct plim_model_config *model, FILE *file)
{
    const struct plim_family_info *info = plim_family_info(model->family);
    const int64_t *sections = model->mrope_section;
    bool is_split = memcmp(sections, info->mrope_section, sizeof(model->mrope_section)) != 0;
    bool says_scaling = model->scales_queries && model->family == PLIM_FAMILY_MISTRAL3;
    if (model->rope == PLIM_ROPE_DEFAULT && !info->rope && !is_split && !says_scaling) return;
    bool nested = info->rotary_by_layers;
    fprintf(file, "  rope_parameters: {%srope_type: %s", nested ? "full_attention: {" : "",
            plim_rope_names[model->rope]);
    if (model->rope_original_positions &&
        model->family != PLIM_FAMILY_PHI3) /* phi3 has a key for it */
        fprintf(file, ", original_max_position_embeddings: %lld",
                (long long)model->rope_original_positions);
    if (info->rope == PLIM_ROPE_PROPORTIONAL)
        fprintf(file, ", partial_rotary_factor: %.17g", model->partial_rotary_factor);
    if (says_scaling) fputs(", llama_4_scaling_beta: 0.1", file); /* its value changes no memory */
    if (is_split)
        fprintf(file, ", mrope_section: [%lld, %lld, %lld]", (long long)sections[0], (long long)sections[1],
                (long long)sections[2]);
    fputs(nested ? "}}\n" : "}\n", file);
}

/* Writes layer types if the family has no rule of its own, or if they differ from it. */
static void write_layer_types(const struct plim_model_config *model, FILE *file)
{
    const struct plim_family_info *info = plim_family_info(model->family);
    bool usual[PLIM_MAX_LAYERS], linear = plim_family_mixes(info);
    const bool *is_other = linear ? model->layer_is_linear : model->layer_is_sliding;
    (linear ? plim_model_linear_layers : plim_model_sliding_layers)(model, usual);
    if (!info->needs_layer_types && memcmp(usual, is_other, sizeof(usual)) == 0) return;
    fputs("  layer_types:\n", file);
    for (int64_t i = 0; i < model->layers; i++)
        fprintf(file, "    - %s\n", is_other[i] ? plim_family_other_layers(model->family) : "full_attention");
}

static void write_pattern(const struct plim_model_config *model, FILE *file)
{
    if (*model->layer_pattern) fprintf(file, "  hybrid_override_pattern: \"%s\"\n", model->layer_pattern);
}

static void write_nope_layers(const struct plim_model_config *model, FILE *file)
{
    bool usual[PLIM_MAX_LAYERS];
    plim_model_nope_layers(model, usual);
    if (memcmp(usual, model->layer_is_nope, sizeof(usual)) == 0) return;
    fputs("  no_rope_layers: [", file);
    for (int64_t i = 0; i < model->layers; i++)
        fprintf(file, "%s%d", i ? ", " : "", !model->layer_is_nope[i]);
    fputs("]\n", file);
}

static void write_blocks(const char *key, int64_t count, const int64_t *blocks, FILE *file)
{
    fprintf(file, "  %s: [", key);
    for (int64_t i = 0; i < count; i++) fprintf(file, "%s%lld", i ? ", " : "", (long long)blocks[i]);
    fputs("]\n", file);
}

static void write_model(const struct plim_model_config *model, FILE *file)
{
    const struct plim_family_info *info = plim_family_info(model->family);
    fprintf(file, "model:\n  family: %s\n", plim_family_names[model->family]);
    for (size_t i = 0; i < info->key_count; i++) {
        const struct plim_family_key *key = &info->keys[i];
        if (i > 0 && strcmp(key->name, info->keys[i - 1].name) == 0)
            continue; /* one key, two fields */
        const void *in = (const char *)model + plim_field_info(key->field)->offset;
        if (key->field == PLIM_FIELD_LAYERS && model->encoder_layers) in = &model->encoder_layers;
        const struct plim_value value = plim_family_key_value(key);
        if (key->field == PLIM_FIELD_ROPE_ORIGINAL_POSITIONS && model->rope_original_positions == 0)
            continue;
        bool is_of_task = key->field == PLIM_FIELD_TASK || key->field == PLIM_FIELD_LABELS;
        if (is_of_task && model->task == PLIM_TASK_CAUSAL_LM) continue;
        fprintf(file, "  %s: ", key->name);
        write_value(&value, in, file);
        fputc('\n', file);
    }
    if (model->dtype) fprintf(file, "  dtype: %s\n", plim_dtype_names[model->dtype]);
    write_rope(model, file);
    write_layer_types(model, file);
    write_pattern(model, file);
    write_nope_layers(model, file);
    const struct plim_vision *vision = &model->vision;
    if (info->deep[0]) write_blocks("vision_deepstack_visual_indexes", vision->deep_count, vision->deep, file);
    if (info->full[0]) write_blocks("vision_fullatt_block_indexes", vision->full_count, vision->full, file);
}

/* --- the rest --------------------------------------------------------------------------------- */

/* Writes the line of one key, after the lines of its sections that differ from those of `before`. */
static void write_key(const struct plim_spec_key *key, const struct plim_spec *spec,
                      const char **before, FILE *file)
{
    size_t depth = 0, at = 0;
    for (const char *dot; (dot = strchr(key->path + at, '.')) != NULL; depth++) {
        size_t end = (size_t)(dot - key->path) + 1;
        if (!*before || strncmp(*before, key->path, end) != 0)
            fprintf(file, "%*s%.*s:\n", (int)(2 * depth), "", (int)(end - at - 1), key->path + at);
        at = end;
    }
    fprintf(file, "%*s%s: ", (int)(2 * depth), "", key->path + at);
    write_value(&key->value, (const char *)spec + key->offset, file);
    fputc('\n', file);
    *before = key->path;
}

static bool is_below(const struct plim_spec_key *key, const char *section)
{
    return strncmp(key->path, section, strlen(section)) == 0;
}

/* True for a key that has no meaning for this spec */
static bool is_unused(const struct plim_spec_key *key, const struct plim_spec *spec)
{
    if (key->offset == offsetof(struct plim_spec, padding))
        return spec->padding == PLIM_PADDING_NO && spec->model.task == PLIM_TASK_CAUSAL_LM;
    if (key->offset == offsetof(struct plim_spec, target_seq)) return !plim_spec_target(spec);
    if (key->offset == offsetof(struct plim_spec, documents)) return spec->packing != PLIM_PACKING_ONE_ROW;
    if (key->offset == offsetof(struct plim_spec, label_smoothing)) return spec->label_smoothing == 0;
    if (key->offset == offsetof(struct plim_spec, cut_cross_entropy)) return !spec->cut_cross_entropy;
    if (key->offset == offsetof(struct plim_spec, efficient_loading)) return !spec->efficient_loading;
    if (key->offset == offsetof(struct plim_spec, prompt)) return spec->prompt == 0;
    if (key->offset == offsetof(struct plim_spec, freeze_encoder)) return !spec->freeze_encoder;
    bool freezes = spec->freeze_vision && spec->model.vision.layers;
    if (key->offset == offsetof(struct plim_spec, freeze_vision)) return !freezes;
    if (is_below(key, "data.image")) return !plim_vision_exists(&spec->model.vision);
    if (key->offset == offsetof(struct plim_spec, precomputed_reference)) return !spec->precomputed_reference;
    if (key->offset == offsetof(struct plim_spec, preference_loss))
        return spec->loop != PLIM_LOOP_LLAMAFACTORY_DPO && spec->preference_loss == PLIM_PREFERENCE_SIGMOID;
    if (key->offset == offsetof(struct plim_spec, center_rewards)) return spec->center_rewards == 0;
    if (key->offset == offsetof(struct plim_spec, rpo_alpha)) return spec->rpo_alpha == 0;
    if (key->offset == offsetof(struct plim_spec, evaluation.at_start)) return !spec->evaluation.at_start;
    if (key->offset == offsetof(struct plim_spec, evaluation.batch_metrics)) return !spec->evaluation.batch_metrics;
    if (key->offset == offsetof(struct plim_spec, rank) && plim_enum_axis_has(&spec->sharding, PLIM_SHARDING_FSDP))
        return false;
    if (is_below(key, "train.liger_kernels."))
        return memcmp(&spec->liger_kernels, &(struct plim_liger_kernels){0}, sizeof(spec->liger_kernels)) == 0;
    if (key->offset == offsetof(struct plim_spec, linear_attention.rule) ||
        key->offset == offsetof(struct plim_spec, linear_attention.causal_conv1d))
        return !plim_family_info(spec->model.family)->linear;
    if (key->offset == offsetof(struct plim_spec, lora.ties)) return !spec->lora.ties;
    if (key->offset == offsetof(struct plim_spec, lora.qkv_kernel)) return !spec->lora.qkv_kernel;
    if (key->offset == offsetof(struct plim_spec, lora.o_kernel)) return !spec->lora.o_kernel;
    if (key->offset == offsetof(struct plim_spec, lora.mlp_kernel)) return !spec->lora.mlp_kernel;
    if (key->offset == offsetof(struct plim_spec, fsdp_plan)) return spec->fsdp_plan == PLIM_FSDP_PLAN_ACCELERATE;
    if (key->offset == offsetof(struct plim_spec, fsdp_wrap)) return spec->fsdp_wrap == PLIM_FSDP_WRAP_ALL;
    if (key->offset == offsetof(struct plim_spec, upcast)) return spec->upcast == PLIM_UPCAST_NONE;
    return (is_below(key, "train.lora.") && !spec->lora.r) ||
           (is_below(key, "train.quantization.") && !spec->quantization.type) ||
           (is_below(key, "train.evaluation.") && !spec->evaluation.batch) ||
           (is_below(key, "train.grpo.") && spec->loop != PLIM_LOOP_TRL_GRPO) ||
           (is_below(key, "train.zero.") && !plim_enum_axis_has_zero(&spec->sharding));
}

/* Writes keys of the top level (`sections` false) or in sections, without those that are null; a key with a word for
 * null ("auto") is written, as its default may be another value. */
static void write_keys(const struct plim_spec *spec, bool sections, FILE *file)
{
    const char *before = NULL;
    for (size_t i = 0; i < plim_spec_key_count(); i++) {
        const struct plim_spec_key *key = plim_spec_key_at(i);
        if (key->not_written || (strchr(key->path, '.') != NULL) != sections) continue;
        bool is_null = plim_value_is_null(&key->value, (const char *)spec + key->offset);
        if (is_null && !key->value.null_word) continue;
        if (is_unused(key, spec)) continue;
        write_key(key, spec, &before, file);
    }
}

static void write_content(const struct plim_spec *spec, FILE *file)
{
    write_model(&spec->model, file);
    write_keys(spec, true, file);
}

enum plim_status plim_spec_content(const struct plim_spec *spec, char **text,
                                   struct plim_error *err)
{
    struct plim_text_stream stream;
    FILE *file = plim_text_stream_open(&stream);
    if (file) write_content(spec, file);
    if (plim_text_stream_close(&stream, text) != PLIM_OK)
        return plim_fail(err, PLIM_NOMEM, "no memory to write the spec");
    return PLIM_OK;
}

enum plim_status plim_spec_write(const struct plim_spec *spec, char **text, struct plim_error *err)
{
    struct plim_text_stream stream;
    FILE *file = plim_text_stream_open(&stream);
    if (file) {
        write_keys(spec, false, file);
        write_content(spec, file);
    }
    if (plim_text_stream_close(&stream, text) != PLIM_OK)
        return plim_fail(err, PLIM_NOMEM, "no memory to write the spec");
    return PLIM_OK;
}
