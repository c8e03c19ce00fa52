#include "entry.h"
#include "autotune/base/outfile.h"
#include "autotune/base/yaml_write.h"
#include "reports/report_reader.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SCHEMA "plimsoll.store/"
#define VERSION 1
#define CHECKSUM "checksum: sha256:"
enum { MAX_BYTES = 4 << 20, CHECKSUM_LINE = sizeof(CHECKSUM) - 1 + PLIM_SHA256_TEXT };

void plim_store_name(const struct plim_facts *key, char out[PLIM_STORE_NAME])
{
    char hash[PLIM_SHA256_TEXT];
    plim_facts_hash(key, hash);
    snprintf(out, PLIM_STORE_NAME, "%.*s.yaml", PLIM_STORE_ID, hash);
}

void plim_store_answer_finish(struct plim_store_answer *answer)
{
    if (!answer) return;
    plim_facts_finish(&answer->fits);
    plim_facts_finish(&answer->fast);
    json_decref(answer->report);
    *answer = (struct plim_store_answer){0};
}

void plim_store_entry_finish(struct plim_store_entry *entry)
{
    if (!entry) return;
    plim_facts_finish(&entry->key);
    for (size_t i = 0; i < entry->answers.count; i++)
        plim_store_answer_finish(&entry->answers.items[i]);
    PLIM_ARRAY_FINISH(&entry->answers);
    plim_yaml_finish(&entry->document);
}

/* --- reading the file ------------------------------------------------------------------------- */

static int open_file(const char *path, bool roots_alone, struct stat *info)
{
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0) return -1;
    int problem = fstat(fd, info) ? errno : 0;
    if (!problem && !S_ISREG(info->st_mode)) problem = EINVAL;
    if (!problem && info->st_size > MAX_BYTES) problem = EFBIG;
    if (!problem && roots_alone && (info->st_uid != 0 || info->st_mode & (S_IWGRP | S_IWOTH)))
        problem = EPERM;
    if (!problem) return fd;
    close(fd);
    errno = problem;
    return -1;
}

/* Reads the whole file as a string, which the caller frees. Returns false and sets errno on failure. */
static bool read_once(const char *path, bool roots_alone, char **text, size_t *length)
{
    struct stat info;
    int fd = open_file(path, roots_alone, &info);
    if (fd < 0) return false;
    size_t size = (size_t)info.st_size;
    ssize_t got = 0;
    *length = 0;
    *text = malloc(size + 1);
    while (*text && *length < size &&
           ((got = read(fd, *text + *length, size - *length)) > 0 || (got < 0 && errno == EINTR)))
        if (got > 0) *length += (size_t)got;
    int problem = !*text ? ENOMEM : got < 0 ? errno : 0;
    close(fd);
    if (!problem) (*text)[*length] = '\0';
    if (problem) free(*text);
    errno = problem;
    return !problem;
}

/* Same, but opens the file a second time if an NFS server has just replaced it (ESTALE). */
static bool read_bytes(const char *path, bool roots_alone, char **text, size_t *length)
{
    return read_once(path, roots_alone, text, length) ||
           (errno == ESTALE && read_once(path, roots_alone, text, length));
}

/* --- schema and checksum ---------------------------------------------------------------------- */

static enum plim_status check_schema(const char *path, const char *text, struct plim_error *err)
{
    static const char head[] = "schema: " SCHEMA;
    char *end;
    bool ours = !strncmp(text, head, sizeof(head) - 1);
    long version = ours ? strtol(text + sizeof(head) - 1, &end, 10) : 0;
    if (version == VERSION && *end == '\n') return PLIM_OK;
    if (version > VERSION)
        return plim_fail(err, PLIM_UNSUPPORTED,
                         "%s: a newer plimsoll wrote it (schema " SCHEMA "%ld)", path, version);
    return plim_fail(err, PLIM_SPEC, "%s: damaged: its schema is not its first key", path);
}

static enum plim_status check_sum(const char *path, const char *text, size_t length,
                                  struct plim_error *err)
{
    char hash[PLIM_SHA256_TEXT];
    size_t body = length > CHECKSUM_LINE ? length - CHECKSUM_LINE : 0;
    const char *line = text + body;
    if (!body || strlen(text) != length || line[-1] != '\n' || text[length - 1] != '\n' ||
        strncmp(line, CHECKSUM, sizeof(CHECKSUM) - 1) != 0)
        return plim_fail(err, PLIM_SPEC, "%s: damaged: it does not end with its checksum", path);
    plim_sha256_text(text, body, hash);
    if (strncmp(line + sizeof(CHECKSUM) - 1, hash, PLIM_SHA256_TEXT - 1) != 0)
        return plim_fail(err, PLIM_SPEC, "%s: damaged: its checksum is another", path);
    return PLIM_OK;
}

/* --- reading the contents --------------------------------------------------------------------- */

static const char *text_of(const struct plim_yaml_node *mapping, const char *key)
{
    const struct plim_yaml_node *node = plim_yaml_get(mapping, key);
    return node && node->kind == PLIM_YAML_SCALAR ? node->text : "";
}

static enum plim_status read_answer(const struct plim_yaml *yaml, const struct plim_yaml_node *node,
                                    struct plim_store_answer *answer, struct plim_error *err)
{
    if (node->kind != PLIM_YAML_MAPPING || !(answer->part = plim_yaml_get(node, "report")))
        return plim_yaml_fail(yaml, node, err, "expected an answer with its report");
    snprintf(answer->made, sizeof(answer->made), "%s", text_of(node, "made"));
    snprintf(answer->host, sizeof(answer->host), "%s", text_of(node, "host"));
    answer->interrupted = !strcmp(text_of(node, "interrupted"), "true");
    answer->document = yaml;
    enum plim_status st = plim_facts_read(yaml, plim_yaml_get(node, "fits"), &answer->fits, err);
    return st ? st : plim_facts_read(yaml, plim_yaml_get(node, "fast"), &answer->fast, err);
}

static enum plim_status read_tree(struct plim_store_entry *entry, struct plim_error *err)
{
    const struct plim_yaml *yaml = &entry->document;
    const struct plim_yaml_node *root = yaml->root;
    const struct plim_yaml_node *answers =
        root && root->kind == PLIM_YAML_MAPPING ? plim_yaml_get(root, "answers") : NULL;
    if (!answers || answers->kind != PLIM_YAML_SEQUENCE || !answers->count)
        return plim_fail(err, PLIM_SPEC, "%s: expected a list of answers", yaml->source);
    enum plim_status st = plim_facts_read(yaml, plim_yaml_get(root, "key"), &entry->key, err);
    for (size_t i = 0; i < answers->count && !st; i++) {
        struct plim_store_answer answer = {0};
        st = read_answer(yaml, answers->items[i], &answer, err);
        if (!st && PLIM_ARRAY_PUSH(&entry->answers, answer) != PLIM_OK) st = plim_no_memory(err);
        if (st) plim_store_answer_finish(&answer);
    }
    return st;
}

static enum plim_status check_name(const char *path, const struct plim_store_entry *entry,
                                   struct plim_error *err)
{
    char name[PLIM_STORE_NAME];
    const char *slash = strrchr(path, '/');
    plim_store_name(&entry->key, name);
    if (!strcmp(slash ? slash + 1 : path, name)) return PLIM_OK;
    return plim_fail(err, PLIM_SPEC, "%s: it holds another key than its name says (%s)", path,
                     name);
}

enum plim_status plim_store_entry_parse(const char *path, const char *text, size_t length,
                                        struct plim_store_entry *entry, struct plim_error *err)
{
    enum plim_status st = check_schema(path, text, err);
    if (!st) st = check_sum(path, text, length, err);
    if (!st) st = plim_yaml_read_string(path, text, length, &entry->document, err);
    if (!st) st = read_tree(entry, err);
    return st ? st : check_name(path, entry, err);
}

enum plim_status plim_store_entry_read(const char *path, bool roots_alone, bool *found,
                                       struct plim_store_entry *entry, struct plim_error *err)
{
    char *text = NULL;
    size_t length;
    *found = read_bytes(path, roots_alone, &text, &length);
    if (!*found && (errno == ENOENT || errno == ENOTDIR)) return PLIM_OK;
    if (!*found)
        return errno == ENOMEM ? plim_no_memory(err)
                               : plim_fail(err, PLIM_IO, "%s: cannot be read: %s", path,
                                           errno == EPERM   ? "others than root may write it"
                                           : errno == ELOOP ? "it is a link"
                                                            : strerror(errno));
    enum plim_status st = plim_store_entry_parse(path, text, length, entry, err);
    free(text);
    return st;
}

enum plim_status plim_store_answer_result(const struct plim_store_answer *answer,
                                          struct plim_result *result, struct plim_error *err)
{
    return plim_report_read_result(answer->document, answer->part, result, err);
}

/* --- merging ---------------------------------------------------------------------------------- */

/* True if the facts of two answers do not differ where both are known. */
static bool holds_for_the_same(const struct plim_store_answer *a, const struct plim_store_answer *b)
{
    const char *culprit;
    return plim_facts_compare(&a->fits, &b->fits, &culprit) != PLIM_FACTS_MISMATCH &&
           plim_facts_compare(&a->fast, &b->fast, &culprit) != PLIM_FACTS_MISMATCH;
}

static bool is_better(const struct plim_store_answer *a, const struct plim_store_answer *b,
                      bool just_made)
{
    if (a->interrupted != b->interrupted) return !a->interrupted;
    return just_made || strcmp(a->made, b->made) >= 0;
}

static void remove_answer(struct plim_store_entry *entry, size_t index)
{
    struct plim_store_answer *at = &entry->answers.items[index];
    plim_store_answer_finish(at);
    memmove(at, at + 1, (--entry->answers.count - index) * sizeof(*at));
}

enum plim_status plim_store_entry_merge(struct plim_store_entry *entry,
                                        struct plim_store_answer *answer, bool just_made)
{
    for (size_t i = entry->answers.count; i-- > 0;) {
        if (!holds_for_the_same(&entry->answers.items[i], answer)) continue;
        if (!is_better(answer, &entry->answers.items[i], just_made)) {
            plim_store_answer_finish(answer);
            return PLIM_OK;
        }
        remove_answer(entry, i);
    }
    if (entry->answers.count >= PLIM_STORE_ANSWERS) remove_answer(entry, 0);
    enum plim_status st = PLIM_ARRAY_PUSH(&entry->answers, *answer);
    if (st)
        plim_store_answer_finish(answer);
    else
        *answer = (struct plim_store_answer){0};
    /* Keeps the order by time, whatever the order of merging. */
    for (size_t i = entry->answers.count; !st && i-- > 1;) {
        struct plim_store_answer *at = &entry->answers.items[i], later = *at;
        if (strcmp(at[-1].made, later.made) <= 0) break;
        *at = at[-1];
        at[-1] = later;
    }
    return st;
}

/* --- writing ---------------------------------------------------------------------------------- */

/* Converts a scalar to the type with which it was written. */
static json_t *scalar_of(const struct plim_yaml *yaml, const struct plim_yaml_node *node)
{
    int64_t integer;
    double number;
    bool boolean;
    if (plim_yaml_is_null(node)) return json_null();
    if (node->quoted) return json_string(node->text);
    if (!plim_yaml_int(yaml, node, &integer, NULL)) return json_integer(integer);
    if (!plim_yaml_number(yaml, node, &number, NULL)) return json_real(number);
    if (!plim_yaml_bool(yaml, node, &boolean, NULL)) return json_boolean(boolean);
    return json_string(node->text);
}

/* Converts a document to JSON. Returns NULL if host memory ran out. */
static json_t *tree_of(const struct plim_yaml *yaml, const struct plim_yaml_node *node)
{
    if (node->kind == PLIM_YAML_SCALAR) return scalar_of(yaml, node);
    bool is_mapping = node->kind == PLIM_YAML_MAPPING;
    json_t *tree = is_mapping ? json_object() : json_array();
    bool ok = tree != NULL;
    for (size_t i = 0; ok && i < node->count; i++) {
        json_t *value = tree_of(yaml, node->items[i]);
        ok = value && !(is_mapping ? json_object_set_new(tree, node->keys[i]->text, value)
                                   : json_array_append_new(tree, value));
    }
    if (ok) return tree;
    json_decref(tree);
    return NULL;
}

static void write_answer(const struct plim_store_answer *answer, struct plim_json *json,
                         json_t *list)
{
    json_t *node = plim_json_object(json, list, NULL);
    plim_json_text(json, node, "made", answer->made);
    plim_json_text(json, node, "host", answer->host);
    if (answer->interrupted) plim_json_bool(json, node, "interrupted", true);
    plim_facts_write(&answer->fits, json, node, "fits");
    plim_facts_write(&answer->fast, json, node, "fast");
    json_t *report =
        answer->report ? json_incref(answer->report) : tree_of(answer->document, answer->part);
    if (!node || !report || json_object_set_new(node, "report", report)) json->failed = true;
}

static enum plim_status write_text(const struct plim_store_entry *entry, char **text,
                                   struct plim_error *err)
{
    char schema[32];
    struct plim_json json = {0};
    json_t *root = plim_json_object(&json, NULL, NULL);
    snprintf(schema, sizeof(schema), SCHEMA "%d", VERSION);
    plim_facts_write(&entry->key, &json, root, "key");
    json_t *list = plim_json_array(&json, root, "answers");
    for (size_t i = 0; i < entry->answers.count; i++)
        write_answer(&entry->answers.items[i], &json, list);
    char *body = NULL, hash[PLIM_SHA256_TEXT];
    enum plim_status st = plim_yaml_write(&json, &body, err);
    plim_json_finish(&json);
    if (st) return st;
    /* The schema has a fixed form, so that the first bytes of a file identify it. */
    size_t size = strlen("schema: \n") + strlen(schema) + strlen(body) + CHECKSUM_LINE + 1;
    *text = malloc(size);
    if (*text) {
        int used = snprintf(*text, size, "schema: %s\n%s", schema, body);
        plim_sha256_text(*text, (size_t)used, hash);
        snprintf(*text + used, size - (size_t)used, CHECKSUM "%s\n", hash);
    } else {
        st = plim_no_memory(err);
    }
    free(body);
    return st;
}

enum plim_status plim_store_entry_write(const struct plim_store_entry *entry, const char *path,
                                        struct plim_error *err)
{
    char *text = NULL;
    enum plim_status st = write_text(entry, &text, err);
    if (!st && strlen(text) > MAX_BYTES)
        st = plim_fail(err, PLIM_IO, "%s: the answer is larger than %d MiB", path, MAX_BYTES >> 20);
    if (!st) st = plim_outfile_save(path, text, err);
    free(text);
    return st;
}
