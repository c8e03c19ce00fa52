/* config.json against transformers: data/spec/hf_defaults.tsv is what transformers itself
 * resolved. */
#include "support/spec_files.h"
#include "workloads/spec/spec_vision.h"
#include "workloads/spec/family.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_SIZE = 16384, FIELDS_MAX = 64 };

/* --- a case of the table ---------------------------------------------------------------------- */

/* Reads `value` of transformers into the member `key`. False: no such member. */
static bool put_expected(struct plim_model_config *want, const char *key, const char *value)
{
    for (int f = 0; f < PLIM_FIELD_COUNT; f++) {
        static const char *const members[] = {
#define MEMBER(suffix, member, ...) #member,
            PLIM_FIELD_MAP(MEMBER)
#undef MEMBER
        };
        if (strcmp(members[f], key) != 0) continue;
        const struct plim_field_info *info = plim_field_info((enum plim_field)f);
        const struct plim_yaml yaml = {0};
        const struct plim_yaml_node node = {.kind = PLIM_YAML_SCALAR, .text = value};
        const struct plim_place place = {.yaml = &yaml, .prefix = "", .key = key};
        void *out = (char *)want + info->offset;
        if (info->value.type == PLIM_VALUE_INT)
            return *(int64_t *)out = strtoll(value, NULL, 10), true;
        if (info->value.type == PLIM_VALUE_BOOL) return *(bool *)out = *value == '1', true;
        return plim_value_read(&info->value, &place, &node, out) == PLIM_OK;
    }
    for (int i = 0; strcmp(key, "family") == 0 && i < PLIM_FAMILY_COUNT; i++)
        if (strcmp(plim_family_names[i], value) == 0)
            return want->family = (enum plim_family)i, true;
    for (int i = 0; strcmp(key, "rope") == 0 && i < PLIM_ROPE_COUNT; i++)
        if (strcmp(plim_rope_names[i], value) == 0) return want->rope = (enum plim_rope)i, true;
    if (strcmp(key, "has_padding_idx") == 0) return want->has_padding_idx = *value == '1', true;
    if (strcmp(key, "layer_is_sliding") == 0) {
        for (size_t i = 0; value[i]; i++) want->layer_is_sliding[i] = value[i] == '1';
        return true;
    }
    if (strcmp(key, "layer_is_nope") == 0) {
        for (size_t i = 0; value[i]; i++) want->layer_is_nope[i] = value[i] == '1';
        return true;
    }
    if (strcmp(key, "layer_is_linear") == 0) {
        for (size_t i = 0; value[i]; i++) want->layer_is_linear[i] = value[i] == '1';
        return true;
    }
    return strcmp(key, "parameters") == 0;
}

static void compare_fields(const char *name, const struct plim_model_config *got,
                           const struct plim_model_config *want)
{
    for (int f = 0; f < PLIM_FIELD_COUNT; f++) {
        const struct plim_field_info *info = plim_field_info((enum plim_field)f);
        const char *a = (const char *)got + info->offset, *b = (const char *)want + info->offset;
        switch (info->value.type) {
        case PLIM_VALUE_INT:
            cr_expect(eq(i64, *(const int64_t *)a, *(const int64_t *)b), "%s: %s", name,
                      info->name);
            break;
        case PLIM_VALUE_NUMBER:
            cr_expect(eq(dbl, *(const double *)a, *(const double *)b), "%s: %s", name, info->name);
            break;
        case PLIM_VALUE_BOOL:
            cr_expect(eq(int, *(const bool *)a, *(const bool *)b), "%s: %s", name, info->name);
            break;
        default:
            cr_expect(eq(int, memcmp(a, b, sizeof(enum plim_activation)), 0), "%s: %s", name,
                      info->name);
        }
    }
    cr_expect(eq(int, got->family, want->family), "%s: family", name);
    cr_expect(eq(int, got->rope, want->rope), "%s: rope", name);
    cr_expect(eq(int, got->has_padding_idx, want->has_padding_idx), "%s: has_padding_idx", name);
    cr_expect(
        eq(int,
           memcmp(got->layer_is_sliding, want->layer_is_sliding, sizeof(got->layer_is_sliding)), 0),
        "%s: layer_is_sliding", name);
    cr_expect(eq(int, memcmp(got->layer_is_nope, want->layer_is_nope, sizeof(got->layer_is_nope)), 0),
              "%s: layer_is_nope", name);
    cr_expect(eq(int, memcmp(got->layer_is_linear, want->layer_is_linear, sizeof(got->layer_is_linear)), 0),
              "%s: layer_is_linear", name);
}

static void check_case(const char *name, const char *json, char *expected)
{
    struct plim_spec spec;
    struct plim_model_config want = {.partial_rotary_factor = 1, .pad_token_id = PLIM_NO_TOKEN};
    int64_t parameters = 0;
    if (strcmp(expected, "refused") == 0) {
        struct plim_error err = PLIM_ERROR_INIT;
        enum plim_status st = plim_spec_load(spec_file("config.json", json), &spec, &err);
        cr_expect(eq(int, st, PLIM_SPEC), "%s: transformers refuses %s", name, json);
        cr_expect(ne(int, err.line, 0), "%s: no place: %s", name, err.text);
        return;
    }
    spec_load_text("config.json", json, &spec);
    for (char *rest = NULL, *part = strtok_r(expected, " ", &rest); part;
         part = strtok_r(NULL, " ", &rest)) {
        char *value = strchr(part, '=');
        *value++ = '\0';
        cr_expect(put_expected(&want, part, value), "%s: cannot compare %s", name, part);
        if (strcmp(part, "parameters") == 0) parameters = strtoll(value, NULL, 10);
    }
    enum plim_family f = spec.model.family;
    bool has_classes = plim_family_is_decoder(f) && plim_family_find(f, "num_labels", true);
    if (has_classes) want.labels = 2; /* which a causal language model does not use */
    compare_fields(name, &spec.model, &want);
    cr_expect(eq(i64, spec_parameters(&spec.model), parameters), "%s: parameters", name);
}

static void check_family(const char *family, int at_least)
{
    static char line[LINE_SIZE];
    char type[64];
    int count = 0;
    FILE *file = fopen(PLIM_TEST_DATA "/spec/hf_defaults.tsv", "r");
    cr_assert(file != NULL, "cannot open %s", PLIM_TEST_DATA "/spec/hf_defaults.tsv");
    snprintf(type, sizeof(type), "\"model_type\": \"%s\"", family);
    while (fgets(line, sizeof(line), file)) {
        line[strcspn(line, "\n")] = '\0';
        char *json = strchr(line, '\t'), *expected = json ? strchr(json + 1, '\t') : NULL;
        if (line[0] == '#' || !expected) continue;
        *json++ = '\0';
        *expected++ = '\0';
        if (!strstr(json, type)) continue;
        check_case(line, json, expected);
        count++;
    }
    fclose(file);
    spec_files_remove();
    cr_expect(ge(int, count, at_least));
}

#define FAMILY_TEST(family, at_least)                                                              \
    Test(hf_config, family##_is_what_transformers_resolves) { check_family(#family, at_least); }

FAMILY_TEST(gpt2, 60)
FAMILY_TEST(llama, 80)
FAMILY_TEST(mistral, 80)
FAMILY_TEST(qwen2, 100)
FAMILY_TEST(qwen3, 100)
FAMILY_TEST(phi3, 80)
FAMILY_TEST(phi, 80)
FAMILY_TEST(gemma2, 80)
FAMILY_TEST(gemma3_text, 80)
FAMILY_TEST(gpt_neox, 80)
FAMILY_TEST(opt, 60)
FAMILY_TEST(bloom, 60)
FAMILY_TEST(olmo2, 80)
FAMILY_TEST(gemma, 80)
FAMILY_TEST(starcoder2, 80)
FAMILY_TEST(smollm3, 100)
FAMILY_TEST(granite, 80)
FAMILY_TEST(olmo, 80)
FAMILY_TEST(olmo3, 80)
FAMILY_TEST(stablelm, 80)
FAMILY_TEST(cohere, 80)
FAMILY_TEST(cohere2, 80)
FAMILY_TEST(glm, 80)
FAMILY_TEST(glm4, 80)
FAMILY_TEST(qwen3_5_text, 80)
FAMILY_TEST(qwen3_5_moe_text, 80)
FAMILY_TEST(qwen3_next, 80)
FAMILY_TEST(olmoe, 80)
FAMILY_TEST(t5, 30)
FAMILY_TEST(mt5, 30)
FAMILY_TEST(whisper, 25)
FAMILY_TEST(bart, 25)
FAMILY_TEST(mbart, 25)

/* --- what is around the model ----------------------------------------------------------------- */

TestSuite(hf_document, .fini = spec_files_remove);

Test(hf_document, is_found_in_a_directory_and_named_after_it)
{
    struct plim_spec spec;
    struct plim_error err = PLIM_ERROR_INIT;
    spec_file("config.json", "{\"model_type\": \"gpt2\"}");
    cr_assert(eq(int, plim_spec_load(spec_files_dir(), &spec, &err), PLIM_OK), "%s", err.text);
    cr_expect(eq(str, spec.name, (char *)strrchr(spec_files_dir(), '/') + 1));
    cr_expect(eq(str, spec.source, (char *)spec_files_dir()));
}

Test(hf_document, is_named_after_its_file)
{
    struct plim_spec spec;
    spec_load_text("tiny.model.json", "{\"model_type\": \"gpt2\"}", &spec);
    cr_expect(eq(str, spec.name, "tiny.model"));
}

Test(hf_document, has_the_defaults_of_a_spec)
{
    struct plim_spec spec;
    spec_load_text("config.json", "{\"model_type\": \"gpt2\"}", &spec);
    cr_expect(eq(int, spec.precision.values[0], PLIM_PRECISION_FP32));
    cr_expect(eq(sz, spec.checkpointing.count, 2));
    cr_expect(eq(i64, spec.world, 1));
    cr_expect(eq(sz, spec.seq.count, 0));
    cr_expect(ne(u64, spec.hash, 0));
}

/* As from_pretrained: dtype before torch_dtype, null for none. */
Test(hf_document, gives_the_weights_their_type)
{
    static const struct {
        const char *keys;
        enum plim_weights weights;
        enum plim_precision precision;
    } cases[] = {
        {"", PLIM_WEIGHTS_FP32, PLIM_PRECISION_FP32},
        {", \"dtype\": null", PLIM_WEIGHTS_FP32, PLIM_PRECISION_FP32},
        {", \"dtype\": \"float32\"", PLIM_WEIGHTS_FP32, PLIM_PRECISION_FP32},
        {", \"torch_dtype\": \"bfloat16\"", PLIM_WEIGHTS_BF16, PLIM_PRECISION_BF16},
        {", \"dtype\": \"float16\", \"torch_dtype\": \"bfloat16\"", PLIM_WEIGHTS_FP16,
         PLIM_PRECISION_FP16},
        {", \"dtype\": null, \"torch_dtype\": \"bfloat16\"", PLIM_WEIGHTS_BF16,
         PLIM_PRECISION_BF16},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct plim_spec spec;
        char text[200];
        snprintf(text, sizeof(text), "{\"model_type\": \"llama\"%s}", cases[i].keys);
        spec_load_text("config.json", text, &spec);
        cr_assert(eq(sz, spec.weights.count, 1));
        cr_expect(eq(int, spec.weights.values[0], (int)cases[i].weights), "%s", text);
        cr_expect(eq(int, spec.precision.values[0], (int)cases[i].precision), "%s", text);
    }
}

/* GptOssConfig's rope is yarn where config.json has none; published weights are in mxfp4, and trained in bf16. */
Test(hf_document, gpt_oss_has_defaults_of_its_own)
{
    static const struct {
        const char *keys;
        enum plim_rope rope;
        int64_t positions;
        enum plim_weights weights;
    } cases[] = {
        {"", PLIM_ROPE_YARN, 4096, PLIM_WEIGHTS_FP32},
        {", \"rope_parameters\": null", PLIM_ROPE_YARN, 4096, PLIM_WEIGHTS_FP32},
        {", \"rope_parameters\": {\"rope_type\": \"default\"}", PLIM_ROPE_DEFAULT, 0, PLIM_WEIGHTS_FP32},
        {", \"rope_scaling\": {\"rope_type\": \"yarn\", \"factor\": 8.0}", PLIM_ROPE_YARN, 131072, PLIM_WEIGHTS_FP32},
        {", \"quantization_config\": {\"quant_method\": \"mxfp4\"}", PLIM_ROPE_YARN, 4096, PLIM_WEIGHTS_BF16},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct plim_spec spec;
        char text[200];
        snprintf(text, sizeof(text), "{\"model_type\": \"gpt_oss\"%s}", cases[i].keys);
        spec_load_text("config.json", text, &spec);
        cr_expect(eq(int, (int)spec.model.rope, (int)cases[i].rope), "%s", text);
        cr_expect(eq(i64, spec.model.rope_original_positions, cases[i].positions), "%s", text);
        cr_expect(eq(int, spec.weights.values[0], (int)cases[i].weights), "%s", text);
        cr_expect(eq(int, spec.attention.values[0], PLIM_ATTENTION_EAGER));
    }
}

static const char qwen3_5_document[] =
    "{\"model_type\": \"qwen3_5\", \"architectures\": [\"Qwen3_5ForConditionalGeneration\"], \"vision_config\": "
    "{\"depth\": 2, \"out_hidden_size\": 4096}, \"text_config\": {\"model_type\": \"qwen3_5_text\", "
    "\"num_hidden_layers\": 8, \"tie_word_embeddings\": true, \"rope_parameters\": {\"rope_type\": \"default\", "
    "\"partial_rotary_factor\": 0.5, \"mrope_section\": [12, 10, 10]}}}";
static const char qwen3_5_moe_document[] =
    "{\"model_type\": \"qwen3_5_moe\", \"vision_config\": {\"depth\": 2, \"out_hidden_size\": 2048}, "
    "\"text_config\": {\"model_type\": \"qwen3_5_moe_text\", \"num_experts\": 24, \"mlp_only_layers\": []}}";

/* As the class that `architectures` names builds it */
Test(hf_document, a_multimodal_model_is_whole)
{
    struct plim_spec spec;
    spec_load_text("config.json", qwen3_5_document, &spec);
    cr_expect(eq(int, (int)spec.model.family, PLIM_FAMILY_QWEN3_5));
    cr_expect(eq(i64, spec.model.layers, 8));
    cr_expect(eq(i64, spec.model.vision.layers, 2));
    cr_expect(eq(i64, spec.model.vision.deep_count, 0));
    cr_expect(eq(i64, spec.model.mrope_section[0], 12));
    cr_expect(not(spec.model.tie_word_embeddings)); /* set by the key of the full model */
    cr_expect(eq(i64, plim_spec_images(&spec).count, 0));
    spec_load_text("config.json", qwen3_5_moe_document, &spec);
    cr_expect(eq(int, (int)spec.model.family, PLIM_FAMILY_QWEN3_5_MOE));
    cr_expect(eq(i64, spec.model.experts, 24));
    cr_expect(eq(i64, spec.model.shared_expert_size, 512));
    cr_expect(eq(i64, spec.model.vision.layers, 2));
}

static void expect_qwen3_5_text(const struct plim_spec *spec, const char *how)
{
    cr_expect(eq(int, (int)spec->model.family, PLIM_FAMILY_QWEN3_5_TEXT), "%s", how);
    cr_expect(eq(i64, spec->model.layers, 8), "%s", how);
    cr_expect(eq(dbl, spec->model.partial_rotary_factor, 0.5), "%s", how);
    cr_expect(eq(i64, spec->model.vision.layers, 0), "%s", how);
    cr_expect(eq(i64, spec->model.mrope_section[0], 12), "%s", how);
    cr_expect(spec->model.tie_word_embeddings, "%s", how); /* as text_config says */
}

/* If AutoModelForCausalLM creates it, or its family is given */
Test(hf_document, a_multimodal_model_stands_for_its_text_alone)
{
    struct plim_spec by_class, by_family;
    struct plim_error err = PLIM_ERROR_INIT;
    spec_load_text("config.json", qwen3_5_document, &by_class);
    cr_assert(eq(int, plim_spec_set(&by_class, "train.auto_class", "causal-lm", &err), PLIM_OK), "%s", err.text);
    cr_assert(eq(int, plim_spec_resolve(&by_class, &err), PLIM_OK), "%s", err.text);
    expect_qwen3_5_text(&by_class, "auto_class");
    spec_file("config.json", qwen3_5_document);
    spec_load_text("s.yaml", "model: {hf: config.json, family: qwen3_5_text}\n", &by_family);
    expect_qwen3_5_text(&by_family, "family");
    cr_expect(eq(u64, by_class.hash, by_family.hash));
    spec_file("moe.json", qwen3_5_moe_document);
    spec_load_text("s.yaml", "model: {hf: moe.json, family: qwen3_5_moe_text}\n", &by_family);
    cr_expect(eq(int, (int)by_family.model.family, PLIM_FAMILY_QWEN3_5_MOE_TEXT));
    cr_expect(eq(i64, by_family.model.experts, 24));
}

/* Of keys that would be refused of a family whose class reads them. */
Test(hf_document, keys_that_a_class_never_reads_change_nothing)
{
    static const char *const texts[] = {
        "{\"model_type\": \"modernbert\", \"is_decoder\": true, \"chunk_size_feed_forward\": 2}",
        "{\"model_type\": \"distilbert\", \"is_decoder\": true}",
        "{\"model_type\": \"mixtral\", \"mlp_only_layers\": [1]}",
        "{\"model_type\": \"qwen3_moe\", \"router_jitter_noise\": 0.1}",
        "{\"model_type\": \"llama\", \"experts_implementation\": \"eager\", \"problem_type\": \"regression\"}",
        "{\"model_type\": \"bert\", \"problem_type\": \"regression\", \"id2label\": {\"0\": \"x\"}}",
    };
    struct plim_spec spec;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) spec_load_text("config.json", texts[i], &spec);
}

/* As from_pretrained, which what the user says goes before. */
Test(hf_document, says_how_the_model_attends)
{
    static const struct {
        const char *keys;
        enum plim_attention attention;
    } cases[] = {
        {"", PLIM_ATTENTION_SDPA},
        {", \"attn_implementation\": null", PLIM_ATTENTION_SDPA},
        {", \"attn_implementation\": \"eager\"", PLIM_ATTENTION_EAGER},
        {", \"_attn_implementation\": \"eager\", \"attn_implementation\": \"sdpa\"", PLIM_ATTENTION_EAGER},
        {", \"dtype\": \"bfloat16\", \"attn_implementation\": \"flash_attention_2\"", PLIM_ATTENTION_FLASH2},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct plim_spec spec;
        char text[200];
        snprintf(text, sizeof(text), "{\"model_type\": \"llama\"%s}", cases[i].keys);
        spec_load_text("config.json", text, &spec);
        cr_assert(eq(sz, spec.attention.count, 1));
        cr_expect(eq(int, spec.attention.values[0], (int)cases[i].attention), "%s", text);
    }
}

/* The defaults are those of BitsAndBytesConfig; adapters come from the command line. */
Test(hf_document, a_base_in_4_bits_is_quantisation)
{
    struct plim_spec spec;
    struct plim_error err = PLIM_ERROR_INIT;
    spec_load_text("a.json",
                   "{\"model_type\": \"llama\", \"quantization_config\": {\"quant_method\": "
                   "\"bitsandbytes\", \"load_in_4bit\": true, \"bnb_4bit_quant_type\": \"nf4\", "
                   "\"bnb_4bit_use_double_quant\": true, \"bnb_4bit_compute_dtype\": "
                   "\"bfloat16\", \"bnb_4bit_quant_storage\": \"float16\", \"llm_int8_skip_modules\": [\"lm_head\"]}}",
                   &spec);
    cr_expect(eq(int, (int)spec.quantization.type, PLIM_QUANTIZATION_NF4));
    cr_expect(eq(int, (int)spec.quantization.storage, PLIM_STORAGE_FP16));
    cr_expect(eq(int, (int)spec.quantization.compute, PLIM_WEIGHTS_BF16));
    cr_expect(spec.quantization.nested && spec.quantization.prepared);
    cr_expect(eq(int, plim_spec_resolve(&spec, &err), PLIM_SPEC));
    cr_expect(eq(str, err.text,
                 "train.quantization is nf4 and all parameters are to be trained, expected "
                 "train.lora: weights in nf4 cannot be trained"));
    cr_assert(eq(int, plim_spec_set(&spec, "train.lora", "r=8", &err), PLIM_OK));
    cr_expect(eq(int, plim_spec_resolve(&spec, &err), PLIM_OK));
    spec_load_text("b.json",
                   "{\"model_type\": \"llama\", \"quantization_config\": {\"quant_method\": "
                   "\"bitsandbytes\", \"load_in_4bit\": true}}",
                   &spec);
    cr_expect(eq(int, (int)spec.quantization.type, PLIM_QUANTIZATION_FP4));
    cr_expect(eq(int, (int)spec.quantization.compute, PLIM_WEIGHTS_FP32));
    cr_expect(eq(int, (int)spec.quantization.storage, PLIM_STORAGE_UINT8));
    cr_expect(not(spec.quantization.nested));
}

Test(hf_document, ignores_what_does_not_concern_it)
{
    struct plim_spec plain, full;
    spec_load_text("a.json", "{\"model_type\": \"llama\"}", &plain);
    spec_load_text(
        "b.json",
        "{\"model_type\": \"llama\", \"use_cache\": true, "
        "\"architectures\": [\"LlamaForCausalLM\"], \"rms_norm_eps\": 1e-05, \"auto_map\": {}, "
        "\"quantization_config\": null, \"eos_token_id\": [1, 2], \"n_embd\": 12}",
        &full);
    cr_expect(spec_equal(&plain, &full));
}
