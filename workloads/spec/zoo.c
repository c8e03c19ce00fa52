#include "zoo.h"

#include "autotune/base/embed.h"
#include "autotune/base/text.h"
#include "spec.h"

#include <stdio.h>
#include <string.h>

/* Written by scripts/embed.py from workloads/zoo; see meson.build. */
extern const struct plim_embedded_file plim_zoo_data[];
extern const size_t plim_zoo_data_count;

/* The files without ".yaml"; tests/unit/test_zoo.c compares the two lists. */
static const char *const names[] = {
    "gpt2-124m",  "gpt2-medium", "gpt2-large",   "tinyllama-1.1b", "llama-3.2-1b",
    "llama-3-8b", "mistral-7b",  "qwen2.5-0.5b", "qwen3-0.6b",     "gemma-2-2b",
    "phi-3-mini", "pythia-410m", "opt-1.3b",     "mixtral-8x7b",   "qwen1.5-moe-a2.7b",
    "qwen3-30b-a3b", "bert-base", "bert-large",  "roberta-base",   "distilbert-base",
    "modernbert-base", "vit-base", "vit-large",  "tiny-gpt2",
};

enum { NAME_COUNT = sizeof(names) / sizeof(names[0]) };

size_t plim_zoo_count(void)
{
    return NAME_COUNT;
}

const char *plim_zoo_name(size_t index)
{
    return index < NAME_COUNT ? names[index] : NULL;
}

bool plim_zoo_has(const char *name)
{
    for (size_t i = 0; i < NAME_COUNT; i++)
        if (strcmp(names[i], name) == 0) return true;
    return false;
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
    int near = plim_nearest(name, names, NAME_COUNT);
    return plim_fail(err, PLIM_SPEC, "the zoo has no '%.60s', expected %s%s", name,
                     near < 0 ? "one of its names, such as " : "the nearest name ",
                     names[near < 0 ? 0 : near]);
}
