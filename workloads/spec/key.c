#include "key.h"

#include "autotune/base/text.h"

#include <string.h>

enum { KEY_COUNT = PLIM_SPEC_KEYS };
static const struct plim_spec_key *const keys = plim_spec_keys;

size_t plim_spec_key_count(void)
{
    return KEY_COUNT;
}

const struct plim_spec_key *plim_spec_key_at(size_t index)
{
    return &keys[index];
}

const struct plim_spec_key *plim_spec_key_find(const char *path)
{
    for (size_t i = 0; i < KEY_COUNT; i++)
        if (strcmp(keys[i].path, path) == 0) return &keys[i];
    return NULL;
}

bool plim_spec_key_given(const struct plim_spec *spec, const char *path)
{
    const struct plim_spec_key *key = plim_spec_key_find(path);
    return key && spec->given[key - keys] &&
           !plim_value_is_null(&key->value, (const char *)spec + key->offset);
}

void plim_spec_key_unset(struct plim_spec *spec, const char *path)
{
    spec->given[plim_spec_key_find(path) - keys] = false;
}

enum plim_status plim_spec_key_defaults(struct plim_spec *spec, struct plim_error *err)
{
    enum plim_status st = PLIM_OK;
    for (size_t i = 0; i < KEY_COUNT && st == PLIM_OK; i++) {
        if (!keys[i].fallback) continue;
        struct plim_yaml yaml;
        PLIM_TRY(plim_yaml_read_string(keys[i].path, keys[i].fallback, strlen(keys[i].fallback),
                                       &yaml, err));
        const struct plim_place place = {
            .yaml = &yaml, .prefix = "", .key = keys[i].path, .err = err};
        st = plim_value_read(&keys[i].value, &place, yaml.root, (char *)spec + keys[i].offset);
        plim_yaml_finish(&yaml);
    }
out:
    return st;
}

/* Keys that are read in another way than by their value type */

/* `train.dropout` is a shorthand for all dropouts of the model. */
static enum plim_status read_dropout(const struct plim_place *place,
                                     const struct plim_yaml_node *node, struct plim_spec *spec)
{
    static const struct plim_value value = {
        .type = PLIM_VALUE_NUMBER, .nullable = true, .null_value = -1, .minimum = 0, .maximum = 1};
    double p = -1;
    enum plim_status st = plim_value_read(&value, place, node, &p);
    if (st == PLIM_OK && p >= 0) plim_spec_set_dropout(spec, p);
    return st;
}

static void clear_lora(struct plim_spec *spec)
{
    spec->lora = (struct plim_lora){0};
}

static void clear_quantization(struct plim_spec *spec)
{
    spec->quantization = (struct plim_quantization){.prepared = true};
}

static void clear_evaluation(struct plim_spec *spec)
{
    spec->evaluation = PLIM_NO_EVALUATION;
}

const struct plim_spec_shorthand plim_spec_shorthands[PLIM_SPEC_SHORTHANDS] = {
    [PLIM_SPEC_DROPOUT] = {"train.dropout", "a number from 0 to 1, or null", "null", "0",
                           "sets every dropout of the model (0 also turns layerdrop off); null: as the model says"},
    [PLIM_SPEC_LORA] = {"train.lora", "a mapping, or a text such as r=16,targets=q_proj+v_proj,dropout=0", "null",
                        "{r: 16}", "LoRA, as in peft"},
    [PLIM_SPEC_QUANTIZATION] = {"train.quantization", "a mapping, or a text such as nf4,double=true,compute=bf16",
                                "null", "nf4", "QLoRA: transformers' BitsAndBytesConfig"},
    [PLIM_SPEC_EVALUATION] = {"train.evaluation", "a mapping, or a text such as batch=8,keeps=logits,batches=40",
                              "null", "batch=8", "evaluations between steps"},
};

/* Sections that may also be written as one text, as on the command line */
static const struct text_section {
    const struct plim_spec_shorthand *described;
    const char *prefix;
    const char *first;              /* the key of a first part without a name; NULL: a name is required */
    const char *none;               /* a word that means null; NULL: none */
    const char *needed, *needed_is; /* a key that a mapping must have, and its description; NULL: none */
    void (*clear)(struct plim_spec *spec); /* called for null */
} text_sections[] = {
    {&plim_spec_shorthands[PLIM_SPEC_LORA], "train.lora.", NULL, NULL, "r", "the adapters' rank", clear_lora},
    {&plim_spec_shorthands[PLIM_SPEC_QUANTIZATION], "train.quantization.", "type", NULL, "type", "nf4, fp4 or int8",
     clear_quantization},
    {&plim_spec_shorthands[PLIM_SPEC_EVALUATION], "train.evaluation.", "batch", "none", NULL, NULL,
     clear_evaluation},
};

static const struct text_section *text_section_find(const char *path)
{
    size_t i = 0;
    while (strcmp(text_sections[i].described->path, path) != 0) i++;
    return &text_sections[i];
}

/* Reads one "name=value" of a text; the first may be a value without a name. */
static enum plim_status read_part(const struct plim_place *place, const struct plim_yaml_node *node,
                                  const struct text_section *section, char *part, bool is_first,
                                  struct plim_spec *spec)
{
    char *equals = strchr(part, '='), path[64];
    const char *name = is_first && !equals ? section->first : part;
    if (!name || (equals && !equals[1]) || (!equals && !is_first))
        return plim_value_refuse(place, node, section->described->expected);
    if (equals) *equals = '\0';
    snprintf(path, sizeof(path), "%s%.40s", section->prefix, name);
    const struct plim_spec_key *key = plim_spec_key_find(path);
    if (!key) return plim_value_refuse(place, node, section->described->expected);
    struct plim_yaml_node value = *node;
    value.text = equals ? equals + 1 : part;
    value.quoted = false;
    const struct plim_place inner = {
        .yaml = place->yaml, .prefix = "", .key = path, .err = place->err};
    return plim_spec_path_read(&inner, &value, spec);
}

/* True if the name of the part at `at` occurs before it, too */
static bool is_repeated(const char *text, const char *at)
{
    size_t length = strcspn(at, ",=");
    if (at[length] != '=') return false;
    for (const char *part = text; part < at; part += strcspn(part, ",") + 1)
        if (!strncmp(part, at, length + 1)) return true;
    return false;
}

/* Reads a text such as "r=16,targets=q_proj+v_proj,dropout=0" or "nf4,double=true". */
static enum plim_status read_text(const struct plim_place *place, const struct plim_yaml_node *node,
                                  const struct text_section *section, struct plim_spec *spec)
{
    char part[512];
    for (const char *at = node->text;;) {
        size_t length = strcspn(at, ",");
        if (length >= sizeof(part)) return plim_value_refuse(place, node, section->described->expected);
        if (is_repeated(node->text, at)) return plim_value_refuse(place, node, "each of its keys once");
        memcpy(part, at, length);
        part[length] = '\0';
        enum plim_status st = read_part(place, node, section, part, at == node->text, spec);
        if (st != PLIM_OK || !at[length]) return st;
        at += length + 1;
    }
}

/* Reads the section of place->key, as a mapping or as a text. */
static enum plim_status read_described(const struct plim_place *place, const struct plim_yaml_node *node,
                                       struct plim_spec *spec)
{
    const struct text_section *section = text_section_find(place->key);
    bool is_scalar = node->kind == PLIM_YAML_SCALAR;
    bool is_none = is_scalar && section->none && !node->quoted && !strcmp(node->text, section->none);
    if (plim_yaml_is_null(node) || is_none) {
        section->clear(spec);
        return PLIM_OK;
    }
    if (is_scalar) return read_text(place, node, section, spec);
    if (node->kind == PLIM_YAML_MAPPING && section->needed && !plim_yaml_get(node, section->needed))
        return plim_yaml_fail(place->yaml, node, place->err, "%s has no %s, expected %s", section->described->path,
                              section->needed, section->needed_is);
    return plim_spec_section_read(place->yaml, node, section->prefix, spec, place->err);
}

static enum plim_status read_section(const struct plim_place *place,
                                     const struct plim_yaml_node *node, struct plim_spec *spec)
{
    char prefix[64];
    snprintf(prefix, sizeof(prefix), "%s.", place->key);
    return plim_spec_section_read(place->yaml, node, prefix, spec, place->err);
}

static const struct special {
    const char *path;
    enum plim_status (*read)(const struct plim_place *, const struct plim_yaml_node *,
                             struct plim_spec *);
} specials[] = {
    {"data", read_section},
    {"train", read_section},
    {"train.dropout", read_dropout},
    {"train.lora", read_described},
    {"train.quantization", read_described},
    {"train.evaluation", read_described},
    {"train.ddp", read_section},
    {"train.liger_kernels", read_section},
    {"train.zero", read_section},
    {"train.grpo", read_section},
};

enum { SPECIAL_COUNT = sizeof(specials) / sizeof(specials[0]), PATH_SIZE = 128 };

/* True if `path` is directly in the section `prefix` */
static bool is_in_section(const char *path, const char *prefix)
{
    size_t length = strlen(prefix);
    return strncmp(path, prefix, length) == 0 && !strchr(path + length, '.');
}

static const char *last_part(const char *path)
{
    const char *dot = strrchr(path, '.');
    return dot ? dot + 1 : path;
}

/* Lists all paths, those of the section first; `in_section` gets their number. */
static size_t list_paths(const char *prefix, const char **paths, size_t *in_section)
{
    size_t count = 0;
    for (int inside = 1; inside >= 0; inside--) {
        for (size_t i = 0; i < KEY_COUNT; i++)
            if (is_in_section(keys[i].path, prefix) == inside) paths[count++] = keys[i].path;
        for (size_t i = 0; i < SPECIAL_COUNT; i++)
            if (is_in_section(specials[i].path, prefix) == inside)
                paths[count++] = specials[i].path;
        if (inside != 0 && !prefix[0]) paths[count++] = "model";
        if (inside != 0) *in_section = count;
    }
    return count;
}

/* Names the nearest key of the section, or else of another section. */
static enum plim_status unknown_key(const struct plim_place *place,
                                    const struct plim_yaml_node *node)
{
    const char *paths[KEY_COUNT + SPECIAL_COUNT + 1], *bare[KEY_COUNT + SPECIAL_COUNT + 1];
    char prefix[PATH_SIZE], known[400] = "";
    size_t in_section = 0;
    snprintf(prefix, sizeof(prefix), "%s", place->key);
    prefix[last_part(prefix) - prefix] = '\0';
    size_t count = list_paths(prefix, paths, &in_section);
    for (size_t i = 0; i < count; i++) bare[i] = last_part(paths[i]);

    int near = plim_nearest(last_part(place->key), bare, in_section);
    if (near < 0) near = plim_nearest(last_part(place->key), bare, count);
    if (near >= 0)
        return plim_yaml_fail(place->yaml, node, place->err,
                              "unknown key %.80s, expected the nearest known key %s", place->key,
                              paths[near]);
    if (in_section == 0) in_section = count;
    for (size_t i = 0, used = 0; i < in_section && used < sizeof(known); i++)
        used +=
            (size_t)snprintf(known + used, sizeof(known) - used, "%s%s", i ? ", " : "", bare[i]);
    return plim_yaml_fail(place->yaml, node, place->err, "unknown key %.80s, expected one of %s",
                          place->key, known);
}

enum plim_status plim_spec_path_read(const struct plim_place *place,
                                     const struct plim_yaml_node *node, struct plim_spec *spec)
{
    const struct plim_spec_key *key = plim_spec_key_find(place->key);
    if (key) {
        enum plim_status st =
            plim_value_read(&key->value, place, node, (char *)spec + key->offset);
        if (st == PLIM_OK) spec->given[key - keys] = true;
        return st;
    }
    for (size_t i = 0; i < SPECIAL_COUNT; i++)
        if (strcmp(specials[i].path, place->key) == 0) return specials[i].read(place, node, spec);
    return unknown_key(place, node);
}

static bool is_known(const char *path)
{
    for (size_t i = 0; i < SPECIAL_COUNT; i++)
        if (strcmp(specials[i].path, path) == 0) return true;
    return plim_spec_key_find(path) != NULL;
}

enum plim_status plim_spec_section_read(const struct plim_yaml *yaml,
                                        const struct plim_yaml_node *map, const char *prefix,
                                        struct plim_spec *spec, struct plim_error *err)
{
    enum plim_status st = PLIM_OK;
    if (plim_yaml_is_null(map)) return PLIM_OK; /* "train:" without keys */
    if (map->kind != PLIM_YAML_MAPPING) {
        char name[PATH_SIZE];
        snprintf(name, sizeof(name), "%.*s", (int)strlen(prefix) - 1, prefix);
        const struct plim_place place = {.yaml = yaml, .prefix = "", .key = name, .err = err};
        return plim_value_refuse(&place, map, "a mapping");
    }
    for (size_t i = 0; i < map->count && st == PLIM_OK; i++) {
        char path[PATH_SIZE];
        snprintf(path, sizeof(path), "%s%.80s", prefix, map->keys[i]->text);
        if (!prefix[0] && strcmp(path, "model") == 0) continue;
        const struct plim_place place = {.yaml = yaml, .prefix = "", .key = path, .err = err};
        if (strchr(map->keys[i]->text, '.'))
            st = plim_yaml_fail(yaml, map->keys[i], err,
                                "the key %.80s has a dot, expected sections below each other",
                                path);
        else if (!is_known(path))
            st = unknown_key(&place, map->keys[i]);
        else
            st = plim_spec_path_read(&place, map->items[i], spec);
    }
    return st;
}
