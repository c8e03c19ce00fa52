#include "earlier.h"
#include "common.h"
#include "workloads/spec/key.h"
#include <unistd.h>

static const char *text_of(const struct plim_yaml_node *mapping, const char *key)
{
    const struct plim_yaml_node *node = mapping ? plim_yaml_get(mapping, key) : NULL;
    return node && node->kind == PLIM_YAML_SCALAR && !plim_yaml_is_null(node) ? node->text : NULL;
}

static const struct plim_yaml_node *part_of(const struct plim_yaml_node *mapping, const char *key,
                                            enum plim_yaml_kind kind)
{
    const struct plim_yaml_node *node = mapping ? plim_yaml_get(mapping, key) : NULL;
    return node && node->kind == kind ? node : NULL;
}

static bool is_mapping(const struct plim_yaml_node *node)
{
    return node && node->kind == PLIM_YAML_MAPPING;
}

/* --- the result ------------------------------------------------------------------------------- */

static enum plim_status refuse_plan(const char *path, const struct plim_yaml_node *results,
                                    struct plim_error *err)
{
    char names[256] = "";
    for (size_t i = 0; i < results->count && strlen(names) < 160; i++) {
        const struct plim_yaml_node *result = results->items[i];
        const char *name = is_mapping(result)
                               ? text_of(part_of(result, "device", PLIM_YAML_MAPPING), "name")
                               : NULL;
        size_t used = strlen(names);
        snprintf(names + used, sizeof(names) - used, "%s%.60s", used ? ", " : "",
                 name ? name : "?");
    }
    return plim_fail(err, PLIM_INVALID,
                     "%s: this is a plan for %zu devices (%s), expected a report on one device",
                     path, results->count, names);
}

/* Finds the only result of a report, and the key of its setting. */
static enum plim_status find_result(const char *path, const struct plim_yaml_node *root,
                                    const struct plim_yaml_node **result, const char **key,
                                    struct plim_error *err)
{
    const char *schema = text_of(root, "schema");
    const struct plim_yaml_node *results = part_of(root, "results", PLIM_YAML_SEQUENCE);
    *result = root;
    *key = "choice";
    if (!strcmp(schema, "plimsoll.plan/1") && results) {
        if (results->count != 1) return refuse_plan(path, results, err);
        *result = results->items[0];
        schema = is_mapping(*result) ? text_of(*result, "schema") : NULL;
    }
    if (schema && !strcmp(schema, "plimsoll.result/1")) return PLIM_OK;
    *key = "setting";
    if (schema && !strcmp(schema, "plimsoll.explain/1")) return PLIM_OK;
    return plim_fail(err, PLIM_INVALID,
                     "%s: its schema is %.64s, expected plimsoll.result/1 or plimsoll.explain/1%s",
                     path, schema ? schema : "not given",
                     schema ? " (did another version of plimsoll write it?)" : "");
}

/* --- options, choice and limits --------------------------------------------------------------- */

/* True if a key is set by the settings from index `first` on. */
static bool is_set(const struct plim_request *request, size_t first, const char *key)
{
    for (size_t i = first; i < request->setting_count; i++)
        if (!strcmp(request->settings[i].key, key)) return true;
    return false;
}

/* Adds the options of the command line with which the report was made. */
static enum plim_status add_options(struct plim_request *request, size_t *at, const char *path,
                                    const struct plim_yaml_node *spec, struct plim_error *err)
{
    const struct plim_yaml_node *options = part_of(spec, "options", PLIM_YAML_SEQUENCE);
    enum plim_status st = PLIM_OK;
    for (size_t i = 0; options && i < options->count && !st; i++) {
        const struct plim_yaml_node *option = options->items[i];
        const char *key = is_mapping(option) ? text_of(option, "key") : NULL;
        const char *value = is_mapping(option) ? text_of(option, "value") : NULL;
        if (key && value) st = plim_common_insert(request, at, path, key, value, err);
    }
    return st;
}

/* Drops settings of the report that would contradict the command line: its accumulation if another effective batch is
 * given, and vice versa; its type of weights if another precision is given. */
static void drop_contradicted(struct plim_request *request, size_t *at)
{
    static const char *const pairs[][2] = {
        {"train.effective_batch", "train.accumulation"},
        {"train.accumulation", "train.effective_batch"},
        {"train.accumulation_schedule", "train.accumulation"},
        {"train.precision", "train.weights"}};
    for (size_t p = 0; p < sizeof(pairs) / sizeof(pairs[0]); p++) {
        if (!is_set(request, *at, pairs[p][0])) continue;
        for (size_t i = *at; i-- > 0;) {
            struct plim_request_setting *place = &request->settings[i];
            if (strcmp(place->key, pairs[p][1]) != 0) continue;
            memmove(place, place + 1, (--request->setting_count - i) * sizeof(*place));
            --*at;
        }
    }
}

/* True for keys that are in a choice, under the last part of their path: those that a search varies, and the number of
 * GPUs. */
static bool is_chosen(const struct plim_spec_key *key)
{
    enum plim_value_type type = key->value.type;
    return type == PLIM_VALUE_INT_AXIS || type == PLIM_VALUE_ENUM_AXIS ||
           type == PLIM_VALUE_ENUM || !strcmp(key->path, "train.world");
}

static enum plim_status add_choice(struct plim_request *request, size_t *at, const char *path,
                                   const struct plim_yaml_node *choice, struct plim_error *err)
{
    enum plim_status st = PLIM_OK;
    bool retyped = is_set(request, *at, "train.precision"); /* then it determines the weights */
    for (size_t i = 0; i < plim_spec_key_count() && !st; i++) {
        const struct plim_spec_key *key = plim_spec_key_at(i);
        if (retyped && !strcmp(key->path, "train.weights")) continue;
        const char *dot = strrchr(key->path, '.');
        const char *value = dot && is_chosen(key) ? text_of(choice, dot + 1) : NULL;
        if (value) st = plim_common_insert(request, at, path, key->path, value, err);
    }
    /* The accumulation is not set if the effective batch or a schedule determines it. */
    const char *accumulation = text_of(choice, "accumulation");
    bool follows = text_of(choice, "effective_batch_target") ||
                   plim_yaml_get(choice, "accumulation_schedule") ||
                   is_set(request, 0, "train.effective_batch") ||
                   is_set(request, 0, "train.accumulation_schedule");
    if (!st && accumulation && !follows)
        st = plim_common_insert(request, at, path, "train.accumulation", accumulation, err);
    return st;
}

static bool bytes_of(const struct plim_yaml *yaml, const struct plim_yaml_node *limit,
                     const char *key, int64_t *bytes)
{
    const struct plim_yaml_node *node = limit ? plim_yaml_get(limit, key) : NULL;
    return node && !plim_yaml_int(yaml, node, bytes, NULL) && *bytes >= 0;
}

static void add_limits(struct plim_request *request, const struct plim_yaml *yaml,
                       const struct plim_yaml_node *limit)
{
    static const struct plim_allowance standard = PLIM_ALLOWANCE_DEFAULT;
    struct plim_allowance *allowance = &request->allowance;
    const char *source = text_of(limit, "overhead_source");
    int64_t bytes, vllm_bytes = 0;
    bool by_default = allowance->margin_bytes == standard.margin_bytes &&
                      allowance->margin_share == standard.margin_share;
    if (by_default && bytes_of(yaml, limit, "margin_bytes", &bytes))
        allowance->margin_bytes = bytes;
    if (!allowance->overhead_given && source && !strcmp(source, "given") &&
        bytes_of(yaml, limit, "overhead_bytes", &bytes)) {
        bytes_of(yaml, limit, "vllm_bytes", &vllm_bytes); /* the spec adds it again */
        allowance->overhead_given = true;
        allowance->overhead_bytes = bytes - vllm_bytes;
    }
    if (!allowance->alloc_conf) allowance->alloc_conf = text_of(limit, "alloc_conf");
}

/* --- the spec --------------------------------------------------------------------------------- */

/* Finds the spec: its path is relative to the current folder, otherwise to the folder of the report. */
static void find_source(const char *path, const char *source, char *out, size_t size)
{
    const char *slash = strrchr(path, '/');
    snprintf(out, size, "%s", source);
    if (!slash || source[0] == '/' || !access(source, F_OK)) return;
    snprintf(out, size, "%.*s/%s", (int)(slash - path), path, source);
    if (access(out, F_OK)) snprintf(out, size, "%s", source); /* a name in the zoo */
}

/* Compares the hash of the spec, with the options but without the choice, with the report's, and warns if they
 * differ. */
static enum plim_status compare_hash(struct plim_request *request, size_t options,
                                     const char *path, const char *hash, const struct plim_io *io,
                                     bool *is_other, struct plim_error *err)
{
    struct plim_log log = plim_common_log(request, io);
    size_t all = request->setting_count;
    struct plim_spec *spec = calloc(1, sizeof(*spec));
    char now[20];
    if (!spec) return plim_no_memory(err);
    request->setting_count = options;
    enum plim_status st = plim_common_spec(request, NULL, spec, err);
    request->setting_count = all;
    if (!st) {
        snprintf(now, sizeof(now), "%016llx", (unsigned long long)spec->hash);
        *is_other = hash && strcmp(hash, now) != 0;
        if (*is_other)
            plim_log(&log, PLIM_LOG_WARNING, "%s was made of another state of %s", path,
                     request->subject);
    }
    free(spec);
    return st;
}

/* --- completing the request ------------------------------------------------------------------- */

static enum plim_status take_up(struct plim_request *request, const struct plim_io *io,
                                struct plim_earlier *earlier, struct plim_error *err)
{
    const char *path = request->subject, *key;
    const struct plim_yaml_node *result;
    size_t at = 0;
    enum plim_status st = find_result(path, earlier->report.root, &result, &key, err);
    if (st) return st;
    const struct plim_yaml_node *spec = part_of(result, "spec", PLIM_YAML_MAPPING);
    const struct plim_yaml_node *choice = part_of(result, key, PLIM_YAML_MAPPING);
    const char *source = text_of(spec, "source"), *program = text_of(result, "program");
    const char *uri = text_of(part_of(result, "device", PLIM_YAML_MAPPING), "uri");
    if (program || !source || !*source)
        return plim_fail(err, PLIM_INVALID,
                         "%s: a report on a program (exec), expected one on a spec", path);
    if (!choice)
        return plim_fail(err, PLIM_INVALID,
                         "%s: nothing fitted, expected a report with a choice", path);
    find_source(path, source, earlier->source, sizeof(earlier->source));
    request->subject = earlier->source;
    request->config = text_of(spec, "config");
    request->unplanned = text_of(spec, "unplanned");
    PLIM_TRY(add_options(request, &at, path, spec, err));
    PLIM_TRY(compare_hash(request, at, path, text_of(spec, "hash"), io, &earlier->is_other, err));
    drop_contradicted(request, &at);
    PLIM_TRY(add_choice(request, &at, path, choice, err));
    if (!request->devices.count && uri) {
        request->devices.items[request->devices.count++] = uri;
        add_limits(request, &earlier->report, part_of(result, "limit", PLIM_YAML_MAPPING));
    }
out:
    return st;
}

/* A file that cannot be read is left to the reader of specs, which reports the error. */
enum plim_status plim_earlier_apply(struct plim_request *request, const struct plim_io *io,
                                    struct plim_earlier *earlier, struct plim_error *err)
{
    static const char prefix[] = "plimsoll.";
    enum plim_status st =
        request->subject ? plim_yaml_read_file(request->subject, &earlier->report, NULL) : PLIM_OK;
    if (st == PLIM_NOMEM) return plim_no_memory(err);
    if (st) return PLIM_OK;
    const struct plim_yaml_node *root = earlier->report.root;
    const char *schema = is_mapping(root) ? text_of(root, "schema") : NULL;
    if (!schema || strncmp(schema, prefix, strlen(prefix)) != 0) return PLIM_OK;
    return take_up(request, io, earlier, err);
}

void plim_earlier_finish(struct plim_earlier *earlier)
{
    if (earlier) plim_yaml_finish(&earlier->report);
}
