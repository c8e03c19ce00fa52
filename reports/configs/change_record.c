#define _GNU_SOURCE /* asprintf */
#include "change_record.h"
#include "autotune/base/json.h"
#include "autotune/base/outfile.h"
#include "autotune/base/textfile.h"
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MOST_BYTES = 16 << 20 };

bool plim_config_hash_file(const char *path, char out[PLIM_SHA256_TEXT])
{
    char *text = NULL;
    size_t length;
    bool read = !plim_textfile_read(path, MOST_BYTES, &text, &length, NULL);
    if (read) plim_sha256_text(text, length, out);
    free(text);
    return read;
}

static char *with_suffix(const char *file, const char *suffix)
{
    char *out = NULL;
    return asprintf(&out, "%s%s", file, suffix) < 0 ? NULL : out;
}

/* Sets the names of the files beside the one to which `path` leads. */
static enum plim_status name_files(const char *path, struct plim_config_record *record,
                                   struct plim_error *err)
{
    record->file = realpath(path, NULL);
    if (!record->file && errno != ENOMEM)
        return plim_fail(err, PLIM_IO, "%s: %s", path, strerror(errno));
    record->path = record->file ? with_suffix(record->file, ".plimsoll.json") : NULL;
    record->backup = record->file ? with_suffix(record->file, ".plimsoll-backup") : NULL;
    return record->path && record->backup ? PLIM_OK : plim_no_memory(err);
}

/* --- creating and writing --------------------------------------------------------------------- */

static void add_changes(struct plim_json *json, json_t *root, const struct plim_config_file *file)
{
    json_t *changes = plim_json_array(json, root, "changes");
    for (size_t i = 0; i < file->edits.count; i++) {
        const struct plim_config_edit *edit = &file->edits.items[i];
        if (edit->filler) continue;
        json_t *change = plim_json_object(json, changes, NULL);
        plim_json_text(json, change, "path", edit->path);
        plim_json_text(json, change, "added", edit->node ? NULL : edit->key);
        plim_json_int(json, change, "line", edit->line);
        plim_json_text(json, change, "old", edit->old);
        plim_json_text(json, change, "new", edit->new);
    }
}

enum plim_status plim_config_record_make(const struct plim_config_file *file,
                                         const struct plim_config_sizes *sizes, const char *source,
                                         const char *version, struct plim_config_record *out,
                                         struct plim_error *err)
{
    struct plim_json json = {0};
    char stamp[32] = "", host[256] = "";
    time_t now = time(NULL);
    struct tm utc;
    *out = (struct plim_config_record){0};
    enum plim_status st = name_files(file->path, out, err);
    if (st) return st;
    plim_sha256_text(file->document.file, file->document.file_length, out->hashes.before);
    plim_sha256_text(file->document.file, file->document.file_length, out->hashes.from);
    plim_sha256_text(file->after, file->after_length, out->hashes.after);
    if (gmtime_r(&now, &utc)) strftime(stamp, sizeof(stamp), "%Y-%m-%dT%H:%M:%SZ", &utc);
    (void)gethostname(host, sizeof(host) - 1);
    json_t *root = plim_json_object(&json, NULL, NULL);
    plim_json_text(&json, root, "schema", "plimsoll.apply/1");
    plim_json_text(&json, root, "version", version);
    plim_json_text(&json, root, "time", stamp);
    plim_json_text(&json, root, "host", host);
    plim_json_text(&json, root, "source", source);
    plim_json_text(&json, root, "framework", file->framework ? file->framework->name : NULL);
    json_t *set = plim_json_object(&json, root, "sizes");
    plim_json_int(&json, set, "micro_batch", sizes->micro);
    plim_json_int(&json, set, "accumulation", sizes->accumulation);
    plim_json_int(&json, set, "data_parallel", sizes->dp ? sizes->dp : PLIM_JSON_ABSENT);
    plim_json_int(&json, set, "seq", sizes->seq ? sizes->seq : PLIM_JSON_ABSENT);
    add_changes(&json, root, file);
    out->tree = json.root;
    return json.failed ? plim_no_memory(err) : PLIM_OK;
}

enum plim_status plim_config_record_join(struct plim_config_record *record,
                                         const struct plim_config_record *part,
                                         struct plim_error *err)
{
    struct plim_config_part *to = &record->parts[record->count];
    if (record->count == PLIM_CONFIG_FILES) return plim_fail(err, PLIM_SPEC, "too many files");
    to->file = strdup(part->file);
    if (!to->file) return plim_no_memory(err);
    to->hashes = part->hashes;
    record->count++;
    return PLIM_OK;
}

static void write_hashes(struct plim_json *json, json_t *object,
                         const struct plim_config_hashes *hashes)
{
    plim_json_text(json, object, "before", hashes->before);
    plim_json_text(json, object, "from", hashes->from);
    plim_json_text(json, object, "after", hashes->after);
}

enum plim_status plim_config_record_write(struct plim_config_record *record, bool pending,
                                          struct plim_error *err)
{
    struct plim_json json = {.root = record->tree};
    char *text = NULL;
    record->pending = pending;
    plim_json_text(&json, record->tree, "state", pending ? "pending" : "done");
    plim_json_text(&json, record->tree, "temporary", pending ? record->temporary : "");
    write_hashes(&json, record->tree, &record->hashes);
    json_t *files = plim_json_array(&json, record->tree, "files");
    for (size_t i = 0; i < record->count; i++) {
        json_t *file = plim_json_object(&json, files, NULL);
        plim_json_text(&json, file, "file", record->parts[i].file);
        write_hashes(&json, file, &record->parts[i].hashes);
    }
    enum plim_status st = plim_json_write(&json, &text, err);
    if (!st) st = plim_outfile_save(record->path, text, err);
    record->written |= !st;
    free(text);
    return st;
}

/* --- reading ---------------------------------------------------------------------------------- */

static bool read_hash(const json_t *object, const char *key, char out[PLIM_SHA256_TEXT])
{
    const char *text = json_string_value(json_object_get(object, key));
    if (!text || strlen(text) != PLIM_SHA256_TEXT - 1) return false;
    memcpy(out, text, PLIM_SHA256_TEXT);
    return true;
}

static bool read_hashes(const json_t *object, struct plim_config_hashes *out)
{
    return read_hash(object, "before", out->before) && read_hash(object, "from", out->from) &&
           read_hash(object, "after", out->after);
}

static bool read_tree(struct plim_config_record *record)
{
    const json_t *tree = record->tree, *files = json_object_get(tree, "files");
    const char *schema = json_string_value(json_object_get(tree, "schema"));
    const char *state = json_string_value(json_object_get(tree, "state"));
    const char *temporary = json_string_value(json_object_get(tree, "temporary"));
    if (!schema || strcmp(schema, "plimsoll.apply/1") || !state) return false;
    record->pending = !strcmp(state, "pending");
    if (temporary && !strchr(temporary, '/') && !strncmp(temporary, ".plimsoll-", 10))
        snprintf(record->temporary, sizeof(record->temporary), "%s", temporary);
    if (!read_hashes(tree, &record->hashes)) return false;
    for (size_t i = 0; i < json_array_size(files) && i < PLIM_CONFIG_FILES; i++) {
        const json_t *file = json_array_get(files, i);
        struct plim_config_part *part = &record->parts[i];
        const char *name = json_string_value(json_object_get(file, "file"));
        if (!name || !read_hashes(file, &part->hashes) || !(part->file = strdup(name)))
            return false;
        record->count = i + 1;
    }
    return record->count > 0;
}

enum plim_status plim_config_record_read(const char *path, struct plim_config_record *out,
                                         bool *found, struct plim_error *err)
{
    char *text = NULL;
    size_t length = 0;
    *out = (struct plim_config_record){0};
    *found = false;
    enum plim_status st = name_files(path, out, err);
    if (!st && access(out->path, F_OK) == 0)
        st = plim_textfile_read(out->path, MOST_BYTES, &text, &length, err);
    if (!st && text) {
        out->tree = json_loadb(text, length, 0, NULL);
        *found = out->tree && read_tree(out);
        if (!*found)
            st = plim_fail_at(err, PLIM_SPEC, out->path, 0, 0,
                              "this is not a record of plimsoll; the file's earlier text is in "
                              "%.200s.plimsoll-backup",
                              path);
    }
    free(text);
    if (st || !*found) plim_config_record_finish(out);
    return st;
}

void plim_config_record_count(const struct plim_config_record *record, size_t *before,
                              size_t *after)
{
    char hash[PLIM_SHA256_TEXT];
    for (size_t i = 0; i < record->count; i++) {
        if (!plim_config_hash_file(record->parts[i].file, hash)) continue;
        *before += !strcmp(hash, record->parts[i].hashes.from);
        *after += !strcmp(hash, record->parts[i].hashes.after);
    }
}

enum plim_status plim_config_record_check_backup(const struct plim_config_record *record,
                                                 const char *text, size_t length,
                                                 struct plim_error *err)
{
    char here[PLIM_SHA256_TEXT], there[PLIM_SHA256_TEXT];
    if (access(record->backup, F_OK) || !plim_config_hash_file(record->backup, there))
        return PLIM_OK;
    if (!strcmp(plim_sha256_text(text, length, here), there)) return PLIM_OK;
    return plim_fail(err, PLIM_IO,
                     "%s: this backup is of another text than the file has now; move it away, or "
                     "revert the file first",
                     record->backup);
}

void plim_config_record_finish(struct plim_config_record *record)
{
    if (!record) return;
    for (size_t i = 0; i < PLIM_CONFIG_FILES; i++) free(record->parts[i].file);
    json_decref(record->tree);
    free(record->file);
    free(record->path);
    free(record->backup);
    *record = (struct plim_config_record){0};
}
