/* From a name to a resolved spec: finds the file, recognises the kind of document, and locates errors of the whole
 * spec in it. */
#include "hf_config.h"
#include "hub.h"
#include "key.h"
#include "spec.h"
#include "spec_internal.h"
#include "zoo.h"

#include "autotune/base/text.h"
#include "autotune/base/utf8.h"

#include <string.h>
#include <sys/stat.h>

enum { PATH_BYTES = 4096 };

/* --- files ------------------------------------------------------------------------------------ */

static enum plim_status no_such_file(const char *source, struct plim_error *err)
{
    const char *slash = strchr(source, '/'); /* of the Hub's name "OWNER/MODEL" the model is compared */
    bool is_name = !slash || (slash > source && source[0] != '.' && !strchr(slash + 1, '/'));
    int near = is_name ? plim_nearest(slash ? slash + 1 : source, plim_zoo_names, plim_zoo_count) : -1;
    if (near >= 0)
        return plim_fail_at(err, PLIM_SPEC, source, 0, 0,
                            "no such file and no such model, did you mean %s? (plimsoll models "
                            "lists them)",
                            plim_zoo_names[near]);
    return plim_fail_at(err, PLIM_SPEC, source, 0, 0,
                        "no such file, expected a spec, a model's config.json (hf download "
                        "OWNER/MODEL config.json gets it), a directory with one, or a name that "
                        "plimsoll models lists");
}

/* Returns the zoo's model of this name, or of this name on the Hub, unless there is such a file or a cached model. */
static const char *zoo_name(const char *source)
{
    char path[PATH_BYTES];
    struct stat info;
    if (plim_zoo_find(source)) return source;
    const struct plim_zoo_model *model = plim_zoo_of_hub(source);
    return model && stat(source, &info) != 0 && !plim_hub_find(source, path, sizeof(path)) ? model->name : NULL;
}

/* Reads `source`: a file, or the config.json of a directory or of a model in the Hub's cache. */
static enum plim_status read_source(const char *source, struct plim_yaml *yaml,
                                    struct plim_error *err)
{
    char path[PATH_BYTES], cached[PATH_BYTES];
    struct stat info;
    if (stat(source, &info) != 0) {
        bool found = plim_hub_find(source, cached, sizeof(cached)) && stat(cached, &info) == 0;
        if (!found) return no_such_file(source, err);
        source = cached;
    }
    int length =
        snprintf(path, sizeof(path), S_ISDIR(info.st_mode) ? "%s/config.json" : "%s", source);
    if (length < 0 || (size_t)length >= sizeof(path))
        return plim_fail_at(err, PLIM_SPEC, source, 0, 0,
                            "this path is too long, expected less than %d bytes", PATH_BYTES);
    if (stat(path, &info) != 0)
        return plim_fail_at(
            err, PLIM_SPEC, source, 0, 0,
            "this directory has no config.json, expected a spec or a directory with one");
    enum plim_status st = plim_yaml_read_file(path, yaml, err);
    if (st != PLIM_IO) return st;
    if (err) err->status = PLIM_SPEC; /* the user's error, like a mistake in a spec */
    return PLIM_SPEC;
}

/* Resolves `path` relative to the file `from`. */
static enum plim_status relative_path(const char *from, const char *path, char out[PATH_BYTES],
                                      struct plim_error *err)
{
    const char *slash = strrchr(from, '/');
    int folder = path[0] == '/' || !slash ? 0 : (int)(slash - from) + 1;
    int length = snprintf(out, PATH_BYTES, "%.*s%s", folder, from, path);
    if (length < 0 || length >= PATH_BYTES)
        return plim_fail(err, PLIM_SPEC,
                         "model.hf is too long, expected a path of less than %d bytes", PATH_BYTES);
    return PLIM_OK;
}

/* --- the model section ------------------------------------------------------------------------ */

static enum plim_status read_model(const struct plim_yaml *yaml, struct plim_spec *spec,
                                   struct plim_error *err);

static enum plim_status read_hf(const struct plim_yaml *yaml, const struct plim_yaml_node *node,
                                const enum plim_family *family, struct plim_spec *spec,
                                struct plim_error *err)
{
    char path[PATH_BYTES];
    struct plim_yaml config = {0};
    const struct plim_place place = {.yaml = yaml, .prefix = "model.", .key = "hf", .err = err};
    if (node->kind != PLIM_YAML_SCALAR || plim_yaml_is_null(node) || !node->text[0])
        return plim_value_refuse(&place, node, "the path of a config.json");
    enum plim_status st = PLIM_OK;
    struct stat info;
    PLIM_TRY(relative_path(yaml->source, node->text, path, err));
    bool here = stat(path, &info) == 0 || !plim_hub_is_id(node->text); /* otherwise a name on the Hub */
    PLIM_TRY(read_source(here ? path : node->text, &config, err));
    PLIM_TRY(plim_hf_read(&config, family, spec, err));
out:
    plim_yaml_finish(&config);
    return st;
}

static enum plim_status read_zoo(const struct plim_yaml *yaml, const struct plim_yaml_node *node,
                                 struct plim_spec *spec, struct plim_error *err)
{
    struct plim_yaml zoo = {0};
    const struct plim_place place = {.yaml = yaml, .prefix = "model.", .key = "zoo", .err = err};
    if (node->kind != PLIM_YAML_SCALAR || plim_yaml_is_null(node))
        return plim_value_refuse(&place, node, "a name of the zoo");
    struct plim_error inner = PLIM_ERROR_INIT;
    enum plim_status st = plim_zoo_read(node->text, &zoo, &inner);
    if (st == PLIM_NOMEM) return plim_fail(err, st, "%s", inner.text);
    if (st != PLIM_OK) return plim_yaml_fail(yaml, node, err, "%s", inner.text);
    st = read_model(&zoo, spec, err);
    plim_yaml_finish(&zoo);
    return st;
}

/* Reads the model's origin: exactly one of hf and zoo, or only a family. */
static enum plim_status read_origin(const struct plim_yaml *yaml,
                                    const struct plim_yaml_node *section, struct plim_spec *spec,
                                    struct plim_error *err)
{
    static const struct plim_value family_value = {
        .type = PLIM_VALUE_ENUM, .names = plim_family_names, .name_count = PLIM_FAMILY_COUNT};
    const struct plim_yaml_node *family_node = plim_yaml_get(section, "family");
    const struct plim_yaml_node *hf = plim_yaml_get(section, "hf"),
                                *zoo = plim_yaml_get(section, "zoo");
    const struct plim_place place = {.yaml = yaml, .prefix = "model.", .key = "family", .err = err};
    enum plim_family family = PLIM_FAMILY_GPT2;
    if (zoo && (hf || family_node))
        return plim_yaml_fail(yaml, zoo, err,
                              "model.zoo is given with model.%s, expected one of them",
                              hf ? "hf" : "family");
    if (!hf && !zoo && !family_node)
        return plim_yaml_fail(yaml, section, err,
                              "the model has no origin, expected family, hf or zoo");
    if (zoo) return read_zoo(yaml, zoo, spec, err);
    if (family_node) {
        enum plim_status st = plim_value_read(&family_value, &place, family_node, &family);
        if (st != PLIM_OK) return st;
    }
    if (hf) return read_hf(yaml, hf, family_node ? &family : NULL, spec, err);
    return plim_family_defaults(family, &spec->model_as_given, err);
}

static enum plim_status read_model(const struct plim_yaml *yaml, struct plim_spec *spec,
                                   struct plim_error *err)
{
    static const char *const origins[] = {"family", "hf", "zoo", NULL};
    const struct plim_place place = {.yaml = yaml, .prefix = "", .key = "model", .err = err};
    const struct plim_yaml_node *section = plim_yaml_get(yaml->root, "model");
    if (!section) { /* a misspelt section is an unknown key */
        enum plim_status unknown = plim_spec_section_read(yaml, yaml->root, "", spec, err);
        if (unknown != PLIM_OK) return unknown;
        return plim_yaml_fail(yaml, yaml->root, err,
                              "this spec has no model, expected a section model with family, "
                              "hf or zoo (or a config.json with a model_type)");
    }
    if (section->kind != PLIM_YAML_MAPPING)
        return plim_value_refuse(&place, section, "a mapping with family, hf or zoo");
    enum plim_status st = read_origin(yaml, section, spec, err);
    return st == PLIM_OK ? plim_model_section_read(yaml, section, origins, spec, err) : st;
}

/* --- names ------------------------------------------------------------------------------------ */

/* Replaces control characters and bytes that are not UTF-8 by underscores. */
static void clean_name(char *name)
{
    unsigned char *at = (unsigned char *)name;
    size_t left = strlen(name), length;
    for (uint32_t code; left; at += length, left -= length) {
        length = plim_utf8_decode(at, left, &code);
        bool is_text = length && code >= 0x20 && (code < 0x7f || code >= 0xa0);
        if (!length) length = 1;
        if (is_text) continue;
        *at = '_';
        memmove(at + 1, at + length, left - length + 1);
        left -= length - 1;
        length = 1;
    }
}

/* Makes a name of a path: its last part without the extension; of config.json, its folder's name, if there is one. */
static void name_from_path(const char *path, char *out, size_t size)
{
    const char *begin = path, *end = path + strlen(path);
    const char *slash = strrchr(path, '/');
    if (slash && strcmp(slash, "/config.json") == 0) {
        end = slash;
        while (end > path && end[-1] == '/') end--;
        for (const char *at = path; at < end; at++)
            if (*at == '/') begin = at + 1;
    } else if (strcmp(path, "config.json") == 0) {
        end = begin;
    } else {
        if (slash) begin = slash + 1;
        const char *dot = strrchr(begin, '.');
        if (dot && dot > begin) end = dot;
    }
    snprintf(out, size, "%.*s", (int)(end - begin < 63 ? end - begin : 63), begin);
    plim_utf8_trim(out);
    clean_name(out);
}

static void name_spec(const struct plim_yaml *yaml, const char *source, struct plim_spec *spec)
{
    size_t length = strlen(source), size = sizeof(spec->source);
    snprintf(spec->source, size, "%s", length < size ? source : source + length - (size - 1));
    if (!spec->name[0]) name_from_path(yaml->source, spec->name, sizeof(spec->name));
    if (!spec->name[0] || strcmp(spec->name, ".") == 0 || strcmp(spec->name, "..") == 0)
        snprintf(spec->name, sizeof(spec->name), "%s", plim_family_names[spec->model.family]);
}

/* --- documents -------------------------------------------------------------------------------- */

static bool is_hf_document(const struct plim_yaml *yaml)
{
    size_t length = strlen(yaml->source);
    bool json = length >= 5 && strcmp(yaml->source + length - 5, ".json") == 0;
    return plim_yaml_get(yaml->root, "model_type") || (json && !plim_yaml_get(yaml->root, "model"));
}

/* Returns the node of the key `path` ("train.effective_batch"), or the nearest enclosing one. A key of a model may
 * have another of its names there. */
static const struct plim_yaml_node *find_culprit(const struct plim_yaml_node *root,
                                                 const char *path, enum plim_family family)
{
    const struct plim_yaml_node *at = root;
    while (at->kind == PLIM_YAML_MAPPING) {
        char name[64];
        size_t length = strcspn(path, ".");
        snprintf(name, sizeof(name), "%.*s", (int)(length < 63 ? length : 63), path);
        const struct plim_yaml_node *next = plim_yaml_get(at, name);
        for (size_t i = 0; i < at->count && !next && !path[length]; i++) {
            const struct plim_family_key *key = plim_family_find(family, at->keys[i]->text, true);
            if (key && strcmp(key->name, name) == 0) next = at->items[i];
        }
        if (!next) return at;
        at = next;
        if (!path[length]) return at;
        path += length + 1;
    }
    return at;
}

static enum plim_status resolve_document(const struct plim_yaml *yaml, bool hf,
                                         struct plim_spec *spec, struct plim_error *err)
{
    struct plim_error inner = PLIM_ERROR_INIT;
    char culprit[96] = "";
    enum plim_status st = plim_spec_resolve_at(spec, culprit, sizeof(culprit), &inner);
    if (st == PLIM_OK) return PLIM_OK;
    if (st == PLIM_NOMEM) return plim_fail(err, st, "%s", inner.text);
    const char *path = hf && strncmp(culprit, "model.", 6) == 0 ? culprit + 6 : culprit;
    return plim_yaml_fail(yaml, find_culprit(yaml->root, path, spec->model.family), err, "%s",
                          inner.text);
}

static enum plim_status load_document(const struct plim_yaml *yaml, const char *source,
                                      struct plim_spec *spec, struct plim_error *err)
{
    enum plim_status st = PLIM_OK;
    if (!yaml->root || yaml->root->kind != PLIM_YAML_MAPPING)
        return plim_fail_at(
            err, PLIM_SPEC, yaml->source, 1, 1, "%s, expected a plimsoll spec or a config.json",
            yaml->root ? "the document is no mapping of keys to values" : "the document is empty");
    bool hf = is_hf_document(yaml);
    PLIM_TRY(plim_spec_key_defaults(spec, err));
    if (hf) {
        PLIM_TRY(plim_hf_read(yaml, NULL, spec, err));
    } else {
        PLIM_TRY(read_model(yaml, spec, err));
        PLIM_TRY(plim_spec_section_read(yaml, yaml->root, "", spec, err));
    }
    PLIM_TRY(resolve_document(yaml, hf, spec, err));
    name_spec(yaml, source, spec);
out:
    return st;
}

enum plim_status plim_spec_load_text(const char *name, const char *text, struct plim_spec *spec,
                                     struct plim_error *err)
{
    struct plim_yaml yaml = {0};
    enum plim_status st = PLIM_OK;
    *spec = (struct plim_spec){0};
    PLIM_TRY(plim_yaml_read_string(name, text, strlen(text), &yaml, err));
    PLIM_TRY(load_document(&yaml, name, spec, err));
out:
    plim_yaml_finish(&yaml);
    if (st != PLIM_OK) *spec = (struct plim_spec){0};
    return st;
}

enum plim_status plim_spec_load(const char *source, struct plim_spec *spec, struct plim_error *err)
{
    struct plim_yaml yaml = {0};
    enum plim_status st = PLIM_OK;
    *spec = (struct plim_spec){0};
    const char *zoo = zoo_name(source);
    PLIM_TRY(zoo ? plim_zoo_read(zoo, &yaml, err) : read_source(source, &yaml, err));
    PLIM_TRY(load_document(&yaml, source, spec, err));
    if (zoo) plim_spec_key_unset(spec, "data.seq"); /* set by the zoo, not by the user */
out:
    plim_yaml_finish(&yaml);
    if (st != PLIM_OK) *spec = (struct plim_spec){0};
    return st;
}

bool plim_spec_source_hides(const char *source)
{
    struct stat info;
    return plim_zoo_find(source) && stat(source, &info) == 0;
}
