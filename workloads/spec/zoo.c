#include "zoo.h"

#include "autotune/base/embed.h"
#include "autotune/base/text.h"
#include "spec.h"

#include <stdio.h>
#include <string.h>

/* Written by scripts/embed.py from workloads/zoo; see meson.build. */
extern const struct plim_embedded_file plim_zoo_data[];
extern const size_t plim_zoo_data_count;

/* The files without ".yaml" (tests/unit/test_zoo.c compares the two lists), and what the Hub has with the same
 * config.json, but for keys of generation. */
static const struct {
    const char *name, *hub[4];
} models[] = {
    {"gpt2-124m", {"openai-community/gpt2", "gpt2"}},
    {"gpt2-medium", {"openai-community/gpt2-medium", "gpt2-medium"}},
    {"gpt2-large", {"openai-community/gpt2-large", "gpt2-large"}},
    {"tinyllama-1.1b", {"TinyLlama/TinyLlama-1.1B-intermediate-step-1431k-3T"}},
    {"llama-3.2-1b", {"meta-llama/Llama-3.2-1B", "meta-llama/Llama-3.2-1B-Instruct", "NousResearch/Llama-3.2-1B"}},
    {"llama-3-8b",
     {"meta-llama/Meta-Llama-3-8B", "meta-llama/Meta-Llama-3-8B-Instruct", "NousResearch/Meta-Llama-3-8B"}},
    {"mistral-7b", {"mistral-community/Mistral-7B-v0.2", "mistralai/Mistral-7B-Instruct-v0.2"}},
    {"qwen2.5-0.5b", {"Qwen/Qwen2.5-0.5B", "Qwen/Qwen2.5-0.5B-Instruct"}},
    {"qwen3-0.6b", {"Qwen/Qwen3-0.6B"}},
    {"gemma-2b", {"google/gemma-2b"}},
    {"gemma-2-2b", {"google/gemma-2-2b"}},
    {"smollm3-3b", {"HuggingFaceTB/SmolLM3-3B"}},
    {"qwen3.5-0.8b", {NULL}}, /* published with a vision model, which not all trainers leave out */
    {"ministral-3-8b", {NULL}}, /* likewise */
    {"afm-4.5b", {"arcee-ai/AFM-4.5B"}},
    {"minitron-4b", {"nvidia/Minitron-4B-Base"}},
    {"exaone-4.0-1.2b", {"LGAI-EXAONE/EXAONE-4.0-1.2B"}},
    {"seed-oss-36b", {"ByteDance-Seed/Seed-OSS-36B-Base", "ByteDance-Seed/Seed-OSS-36B-Instruct"}},
    {"ernie-4.5-0.3b", {"baidu/ERNIE-4.5-0.3B-PT", "baidu/ERNIE-4.5-0.3B-Base-PT"}},
    {"hunyuan-7b", {"tencent/Hunyuan-7B-Instruct"}},
    {"starcoderbase-1b", {"bigcode/starcoderbase-1b"}},
    {"falcon-7b", {"tiiuae/falcon-7b", "tiiuae/falcon-7b-instruct"}},
    {"lfm2-1.2b", {"LiquidAI/LFM2-1.2B"}},
    {"phi-3-mini", {"microsoft/Phi-3-mini-4k-instruct"}},
    {"pythia-410m", {"EleutherAI/pythia-410m"}},
    {"opt-1.3b", {"facebook/opt-1.3b"}},
    {"mixtral-8x7b", {"mistralai/Mixtral-8x7B-v0.1", "mistralai/Mixtral-8x7B-Instruct-v0.1"}},
    {"qwen1.5-moe-a2.7b", {"Qwen/Qwen1.5-MoE-A2.7B"}},
    {"qwen3-30b-a3b", {"Qwen/Qwen3-30B-A3B"}},
    {"qwen2-vl-2b", {"Qwen/Qwen2-VL-2B-Instruct", "Qwen/Qwen2-VL-2B"}},
    {"qwen2-vl-7b", {"Qwen/Qwen2-VL-7B-Instruct", "Qwen/Qwen2-VL-7B"}},
    {"qwen2.5-vl-3b", {"Qwen/Qwen2.5-VL-3B-Instruct"}},
    {"qwen2.5-vl-7b", {"Qwen/Qwen2.5-VL-7B-Instruct"}},
    {"qwen2.5-vl-32b", {"Qwen/Qwen2.5-VL-32B-Instruct"}},
    {"qwen2.5-vl-72b", {"Qwen/Qwen2.5-VL-72B-Instruct"}},
    {"qwen3-vl-2b", {"Qwen/Qwen3-VL-2B-Instruct", "Qwen/Qwen3-VL-2B-Thinking"}},
    {"qwen3-vl-4b", {"Qwen/Qwen3-VL-4B-Instruct", "Qwen/Qwen3-VL-4B-Thinking"}},
    {"qwen3-vl-8b", {"Qwen/Qwen3-VL-8B-Instruct", "Qwen/Qwen3-VL-8B-Thinking"}},
    {"gemma-3-1b", {"google/gemma-3-1b-pt", "google/gemma-3-1b-it"}},
    {"gemma-3-4b", {"google/gemma-3-4b-pt", "google/gemma-3-4b-it"}},
    {"gemma-3-12b", {"google/gemma-3-12b-pt", "google/gemma-3-12b-it"}},
    {"gemma-3-27b", {"google/gemma-3-27b-pt", "google/gemma-3-27b-it"}},
    {"gpt-oss-20b", {"openai/gpt-oss-20b"}},
    {"qwen3.5-35b-a3b", {NULL}}, /* likewise */
    {"olmoe-1b-7b", {"allenai/OLMoE-1B-7B-0924"}},
    {"granite-3.0-1b-a400m", {"ibm-granite/granite-3.0-1b-a400m-base", "ibm-granite/granite-3.0-1b-a400m-instruct"}},
    {"qwen3-next-80b-a3b", {"Qwen/Qwen3-Next-80B-A3B-Instruct", "Qwen/Qwen3-Next-80B-A3B-Thinking"}},
    {"glm-4.5-air", {"zai-org/GLM-4.5-Air", "zai-org/GLM-4.5-Air-Base"}},
    {"moonlight-16b-a3b", {"moonshotai/Moonlight-16B-A3B", "moonshotai/Moonlight-16B-A3B-Instruct"}},
    {"glm-4.7-flash", {"zai-org/GLM-4.7-Flash"}},
    {"deepseek-v2-lite",
     {"deepseek-ai/DeepSeek-V2-Lite", "deepseek-ai/DeepSeek-V2-Lite-Chat", "deepseek-ai/DeepSeek-Coder-V2-Lite-Base",
      "deepseek-ai/DeepSeek-Coder-V2-Lite-Instruct"}},
    {"deepseek-v3", {"deepseek-ai/DeepSeek-V3", "deepseek-ai/DeepSeek-R1"}},
    {"bert-base", {"google-bert/bert-base-uncased", "bert-base-uncased"}},
    {"bert-large", {"google-bert/bert-large-uncased", "bert-large-uncased"}},
    {"roberta-base", {"FacebookAI/roberta-base"}},
    {"distilbert-base", {"distilbert/distilbert-base-uncased", "distilbert-base-uncased"}},
    {"modernbert-base", {"answerdotai/ModernBERT-base"}},
    {"vit-base", {"google/vit-base-patch16-224"}},
    {"vit-large", {"google/vit-large-patch16-224"}},
    {"t5-small", {"google-t5/t5-small", "t5-small"}},
    {"t5-base", {"google-t5/t5-base", "t5-base"}},
    {"t5-large", {"google-t5/t5-large", "t5-large"}},
    {"t5-3b", {"google-t5/t5-3b", "t5-3b"}},
    {"flan-t5-small", {"google/flan-t5-small"}},
    {"flan-t5-base", {"google/flan-t5-base"}},
    {"flan-t5-large", {"google/flan-t5-large"}},
    {"flan-t5-xl", {"google/flan-t5-xl"}},
    {"flan-t5-xxl", {"google/flan-t5-xxl"}},
    {"mt5-small", {"google/mt5-small"}},
    {"mt5-base", {"google/mt5-base"}},
    {"tiny-gpt2", {NULL}},
};

enum { MODEL_COUNT = sizeof(models) / sizeof(models[0]) };

size_t plim_zoo_count(void)
{
    return MODEL_COUNT;
}

const char *plim_zoo_name(size_t index)
{
    return index < MODEL_COUNT ? models[index].name : NULL;
}

bool plim_zoo_has(const char *name)
{
    for (size_t i = 0; i < MODEL_COUNT; i++)
        if (strcmp(models[i].name, name) == 0) return true;
    return false;
}

const char *plim_zoo_of_hub(const char *id)
{
    for (size_t i = 0; i < MODEL_COUNT; i++)
        for (size_t k = 0; k < 4 && models[i].hub[k]; k++)
            if (strcmp(models[i].hub[k], id) == 0) return models[i].name;
    return NULL;
}

static const struct plim_embedded_file *find(const char *name)
{
    size_t length = strlen(name);
    for (size_t i = 0; i < plim_zoo_data_count; i++) {
        const char *file = plim_zoo_data[i].name;
        if (strncmp(file, name, length) == 0 && strcmp(file + length, ".yaml") == 0)
            return &plim_zoo_data[i];
    }
    return NULL;
}

enum plim_status plim_zoo_read(const char *name, struct plim_yaml *yaml, struct plim_error *err)
{
    const struct plim_embedded_file *file = plim_zoo_has(name) ? find(name) : NULL;
    if (file) {
        char source[80];
        snprintf(source, sizeof(source), "zoo:%s", file->name);
        return plim_yaml_read_string(source, file->text, file->size, yaml, err);
    }
    const char *names[MODEL_COUNT];
    for (size_t i = 0; i < MODEL_COUNT; i++) names[i] = models[i].name;
    int near = plim_nearest(name, names, MODEL_COUNT);
    return plim_fail(err, PLIM_SPEC, "the zoo has no '%.60s', expected %s%s", name,
                     near < 0 ? "one of its names, such as " : "the nearest name ",
                     names[near < 0 ? 0 : near]);
}
