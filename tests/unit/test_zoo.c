/* The zoo: dimensions as published, checked by their parameter counts. */
#include "autotune/base/embed.h"
#include "support/spec_files.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <string.h>

extern const struct plim_embedded_file plim_zoo_data[];
extern const size_t plim_zoo_data_count;

/* Published counts (model GPUs, golden/cases.jsonl), not computed by this project. */
static const struct published {
    const char *name;
    int64_t parameters, seq;
    enum plim_weights weights; /* dtype of the published config.json; gpt2: of its checkpoint */
} published[] = {
    {"gpt2-124m", 124439808, 1024, PLIM_WEIGHTS_FP32},
    {"gpt2-medium", 354823168, 1024, PLIM_WEIGHTS_FP32},
    {"gpt2-large", 774030080, 1024, PLIM_WEIGHTS_FP32},
    {"tinyllama-1.1b", 1100048384, 2048, PLIM_WEIGHTS_FP32},
    {"llama-3.2-1b", 1235814400, 2048, PLIM_WEIGHTS_BF16},
    {"llama-3-8b", 8030261248, 4096, PLIM_WEIGHTS_BF16},
    {"mistral-7b", 7241732096, 4096, PLIM_WEIGHTS_BF16},
    {"qwen2.5-0.5b", 494032768, 2048, PLIM_WEIGHTS_BF16},
    {"qwen3-0.6b", 596049920, 2048, PLIM_WEIGHTS_BF16},
    {"gemma-2b", 2506172416, 2048, PLIM_WEIGHTS_BF16},
    {"gemma-2-2b", 2614341888, 2048, PLIM_WEIGHTS_FP32},
    {"smollm3-3b", 3075098624, 2048, PLIM_WEIGHTS_BF16},
    {"qwen3.5-0.8b", 752393024, 2048, PLIM_WEIGHTS_BF16},
    {"ministral-3-8b", 8489553920, 4096, PLIM_WEIGHTS_BF16},
    {"afm-4.5b", 4619184640, 2048, PLIM_WEIGHTS_BF16},
    {"minitron-4b", 4190509056, 2048, PLIM_WEIGHTS_BF16},
    {"exaone-4.0-1.2b", 1279391488, 2048, PLIM_WEIGHTS_BF16},
    {"seed-oss-36b", 36151104512, 4096, PLIM_WEIGHTS_BF16},
    {"ernie-4.5-0.3b", 360748032, 2048, PLIM_WEIGHTS_BF16},
    {"hunyuan-7b", 7504568320, 2048, PLIM_WEIGHTS_BF16},
    {"starcoderbase-1b", 1137207296, 2048, PLIM_WEIGHTS_FP32},
    {"falcon-7b", 6921720704, 2048, PLIM_WEIGHTS_BF16},
    {"lfm2-1.2b", 1170340608, 2048, PLIM_WEIGHTS_BF16},
    {"phi-3-mini", 3821079552, 4096, PLIM_WEIGHTS_BF16},
    {"pythia-410m", 405334016, 2048, PLIM_WEIGHTS_FP16},
    {"opt-1.3b", 1315758080, 2048, PLIM_WEIGHTS_FP16},
    {"mixtral-8x7b", 46702792704, 4096, PLIM_WEIGHTS_BF16},
    {"qwen1.5-moe-a2.7b", 14315784192, 2048, PLIM_WEIGHTS_BF16},
    {"qwen3-30b-a3b", 30532122624, 2048, PLIM_WEIGHTS_BF16},
    {"qwen2-vl-2b", 2208985600, 2048, PLIM_WEIGHTS_BF16},
    {"qwen2-vl-7b", 8291375616, 2048, PLIM_WEIGHTS_BF16},
    {"qwen2.5-vl-3b", 3754622976, 2048, PLIM_WEIGHTS_BF16},
    {"qwen2.5-vl-7b", 8292166656, 2048, PLIM_WEIGHTS_BF16},
    {"qwen2.5-vl-32b", 33452718336, 2048, PLIM_WEIGHTS_BF16},
    {"qwen2.5-vl-72b", 73410777344, 2048, PLIM_WEIGHTS_BF16},
    {"qwen3-vl-2b", 2127532032, 2048, PLIM_WEIGHTS_BF16},
    {"qwen3-vl-4b", 4437815808, 2048, PLIM_WEIGHTS_BF16},
    {"qwen3-vl-8b", 8767123696, 2048, PLIM_WEIGHTS_BF16},
    {"gemma-3-1b", 999885952, 2048, PLIM_WEIGHTS_BF16},
    {"gemma-3-4b", 4300079472, 2048, PLIM_WEIGHTS_BF16},
    {"gemma-3-12b", 12187325040, 2048, PLIM_WEIGHTS_BF16},
    {"gemma-3-27b", 27432406640, 2048, PLIM_WEIGHTS_BF16},
    {"gpt-oss-20b", 20914757184, 2048, PLIM_WEIGHTS_BF16},
    {"qwen3.5-35b-a3b", 34660610688, 2048, PLIM_WEIGHTS_BF16},
    {"olmoe-1b-7b", 6919161856, 2048, PLIM_WEIGHTS_BF16},
    {"granite-3.0-1b-a400m", 1334628352, 2048, PLIM_WEIGHTS_BF16},
    {"qwen3-next-80b-a3b", 79674391296, 2048, PLIM_WEIGHTS_BF16},
    {"glm-4.5-air", 106852245504, 2048, PLIM_WEIGHTS_BF16},
    {"moonlight-16b-a3b", 15960108544, 2048, PLIM_WEIGHTS_BF16},
    {"glm-4.7-flash", 29943390976, 2048, PLIM_WEIGHTS_BF16},
    {"deepseek-v2-lite", 15706484224, 2048, PLIM_WEIGHTS_BF16},
    {"deepseek-v3", 671026404352, 2048, PLIM_WEIGHTS_BF16},
    {"bert-base", 109514298, 512, PLIM_WEIGHTS_FP32},
    {"bert-large", 335174458, 512, PLIM_WEIGHTS_FP32},
    {"roberta-base", 124697433, 512, PLIM_WEIGHTS_FP32},
    {"distilbert-base", 66985530, 512, PLIM_WEIGHTS_FP32},
    {"modernbert-base", 149655232, 1024, PLIM_WEIGHTS_FP32},
    {"vit-base", 86567656, 197, PLIM_WEIGHTS_FP32},
    {"vit-large", 304326632, 197, PLIM_WEIGHTS_FP32},
    {"t5-small", 60506624, 512, PLIM_WEIGHTS_FP32},
    {"t5-base", 222903552, 512, PLIM_WEIGHTS_FP32},
    {"t5-large", 737668096, 512, PLIM_WEIGHTS_FP32},
    {"t5-3b", 2851598336, 512, PLIM_WEIGHTS_FP32},
    {"flan-t5-small", 76961152, 512, PLIM_WEIGHTS_FP32},
    {"flan-t5-base", 247577856, 512, PLIM_WEIGHTS_FP32},
    {"flan-t5-large", 783150080, 512, PLIM_WEIGHTS_FP32},
    {"flan-t5-xl", 2849757184, 512, PLIM_WEIGHTS_FP32},
    {"flan-t5-xxl", 11135332352, 512, PLIM_WEIGHTS_FP32},
    {"mt5-small", 300176768, 512, PLIM_WEIGHTS_FP32},
    {"mt5-base", 582401280, 512, PLIM_WEIGHTS_FP32},
    {"tiny-gpt2", 136960, 64, PLIM_WEIGHTS_FP32},
};

enum { PUBLISHED_COUNT = sizeof(published) / sizeof(published[0]) };

static void load(const char *name, struct plim_spec *spec)
{
    struct plim_error err = PLIM_ERROR_INIT;
    char message[1024];
    enum plim_status st = plim_spec_load(name, spec, &err);
    plim_error_format(&err, message, sizeof(message));
    cr_assert(st == PLIM_OK, "%s", message);
}

Test(zoo, has_the_published_models)
{
    cr_assert(eq(sz, plim_zoo_count(), PUBLISHED_COUNT));
    for (size_t i = 0; i < PUBLISHED_COUNT; i++)
        cr_expect(eq(str, (char *)plim_zoo_name(i), (char *)published[i].name));
    cr_expect(eq(ptr, (void *)plim_zoo_name(PUBLISHED_COUNT), NULL));
}

Test(zoo, has_a_name_for_every_file)
{
    cr_expect(eq(sz, plim_zoo_data_count, plim_zoo_count()));
    for (size_t i = 0; i < plim_zoo_data_count; i++) {
        const char *file = plim_zoo_data[i].name;
        bool found = false;
        for (size_t n = 0; n < plim_zoo_count(); n++) {
            size_t length = strlen(plim_zoo_name(n));
            found = found || (strncmp(file, plim_zoo_name(n), length) == 0 &&
                              strcmp(file + length, ".yaml") == 0);
        }
        cr_expect(found, "%s", file);
    }
}

Test(zoo, files_begin_with_what_they_are)
{
    for (size_t i = 0; i < plim_zoo_data_count; i++) {
        const char *text = plim_zoo_data[i].text;
        cr_expect(eq(int, strncmp(text, "# ", 2), 0), "%s", plim_zoo_data[i].name);
    }
}

Test(zoo, parameters_are_the_published_ones)
{
    for (size_t i = 0; i < PUBLISHED_COUNT; i++) {
        struct plim_spec spec;
        load(published[i].name, &spec);
        cr_expect(eq(i64, spec_parameters(&spec.model), published[i].parameters), "%s",
                  published[i].name);
    }
}

Test(zoo, specs_are_named_and_ready_to_plan)
{
    for (size_t i = 0; i < PUBLISHED_COUNT; i++) {
        struct plim_spec spec;
        load(published[i].name, &spec);
        cr_expect(eq(str, spec.name, (char *)published[i].name));
        cr_expect(eq(str, spec.source, (char *)published[i].name));
        cr_assert(eq(sz, spec.seq.count, 1));
        cr_expect(eq(i64, spec.seq.values[0], published[i].seq), "%s", published[i].name);
        cr_expect(eq(int, spec.weights.values[0], (int)published[i].weights), "%s",
                  published[i].name);
        cr_expect(eq(int, spec.optimizer.values[0], PLIM_OPTIMIZER_ADAMW_FUSED));
        cr_expect(eq(sz, spec.checkpointing.count, 2));
    }
}

Test(zoo, models_say_what_their_config_json_says)
{
    struct plim_spec spec;
    load("phi-3-mini", &spec);
    cr_expect(eq(i64, spec.model.sliding_window, 2047));
    cr_expect(spec.model.layer_is_sliding[0]);
    load("llama-3.2-1b", &spec);
    cr_expect(eq(int, spec.model.rope, PLIM_ROPE_LLAMA3));
    load("gemma-2-2b", &spec);
    cr_expect(spec.model.layer_is_sliding[0]);
    cr_expect(not(spec.model.layer_is_sliding[1]));
    load("opt-1.3b", &spec);
    cr_expect(eq(dbl, spec.model.dropout_residual, 0.1));
}
