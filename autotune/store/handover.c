#include "handover.h"
#include "autotune/base/json.h"
#include "autotune/base/text.h"
#include "autotune/base/text_stream.h"
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const plim_handover_formats[PLIM_HANDOVER_FORMATS] = {
    [PLIM_HANDOVER_SH] = "sh",     [PLIM_HANDOVER_FISH] = "fish",
    [PLIM_HANDOVER_JSON] = "json", [PLIM_HANDOVER_DOTENV] = "dotenv",
    [PLIM_HANDOVER_ARGS] = "args", [PLIM_HANDOVER_TASK_PROLOG] = "task-prolog"};

/* --- values ----------------------------------------------------------------------------------- */

enum { NAMED = 8, VALUES = NAMED + PLIM_RESULT_VALUES };

struct value {
    const char *key;      /* "micro_batch" */
    const char *variable; /* "PLIMSOLL_MICRO_BATCH"; NULL: only under another name */
    bool is_number;
    char text[64]; /* "": not known */
};

struct values {
    size_t count;
    struct value list[VALUES];
};

static void add_text(struct values *v, const char *key, const char *variable, const char *text)
{
    struct value *value = &v->list[v->count++];
    *value = (struct value){.key = key, .variable = variable};
    snprintf(value->text, sizeof(value->text), "%s", text);
}

static void add_number(struct values *v, const char *key, const char *variable, int64_t number)
{
    add_text(v, key, variable, "");
    struct value *value = &v->list[v->count - 1];
    value->is_number = true;
    if (number) snprintf(value->text, sizeof(value->text), "%" PRId64, number);
}

static void collect(const struct plim_handover *h, struct values *v)
{
    const struct plim_result_choice *c = h->choice;
    const struct plim_result_setting *s = &c->setting;
    *v = (struct values){0};
    add_number(v, "micro_batch", "PLIMSOLL_MICRO_BATCH", s->micro_batch);
    add_number(v, "accumulation", "PLIMSOLL_ACCUMULATION", s->accumulation);
    add_number(v, "global_batch", "PLIMSOLL_GLOBAL_BATCH", s->micro_batch ? c->effective_batch : 0);
    add_number(v, "seq", "PLIMSOLL_SEQ", s->seq);
    add_text(v, "precision", "PLIMSOLL_PRECISION", plim_result_value(s, "precision"));
    add_text(v, "checkpointing", "PLIMSOLL_CHECKPOINTING", plim_result_value(s, "checkpointing"));
    add_text(v, "source", "PLIMSOLL_SOURCE", h->measured ? "measured" : "simulated");
    add_text(v, "stale", "PLIMSOLL_STALE", h->stale ? "1" : "0");
    v->list[v->count - 1].is_number = true;
    for (size_t i = 0; i < s->value_count; i++) {
        bool known = false;
        for (size_t k = 0; k < v->count; k++) known |= !strcmp(v->list[k].key, s->values[i].name);
        if (!known) add_text(v, s->values[i].name, NULL, s->values[i].text);
    }
}

static const struct value *find(const struct values *v, const char *key, size_t length)
{
    for (size_t i = 0; i < v->count; i++)
        if (strlen(v->list[i].key) == length && !strncmp(v->list[i].key, key, length))
            return &v->list[i];
    return NULL;
}

/* --- names ------------------------------------------------------------------------------------ */

static bool is_variable(const char *name)
{
    if (!isalpha((unsigned char)*name) && *name != '_') return false;
    for (; *name; name++)
        if (!isalnum((unsigned char)*name) && *name != '_') return false;
    return true;
}

/* True for an option of another program: "per_device_train_batch_size", "trainer.max-steps". */
static bool is_argument(const char *name)
{
    for (const char *c = name; *c; c++)
        if (!isalnum((unsigned char)*c) && !strchr("_-./", *c)) return false;
    return *name != '\0';
}

static enum plim_status unknown_value(const char *name, const struct values *v,
                                      struct plim_error *err)
{
    const char *keys[VALUES];
    char list[256];
    for (size_t i = 0; i < v->count; i++) keys[i] = v->list[i].key;
    plim_join_names(keys, v->count, list, sizeof(list));
    return plim_fail(err, PLIM_INVALID, "--name %s: there is no such value, expected %s", name,
                     list);
}

enum plim_status plim_handover_check(const struct plim_handover *h, struct plim_error *err)
{
    struct values v;
    if (h->choice) collect(h, &v);
    for (size_t i = 0; i < h->name_count; i++) {
        const char *text = h->names[i], *name = text + strcspn(text, "=");
        bool is_args = h->format == PLIM_HANDOVER_ARGS;
        if (!*name || !(is_args ? is_argument(name + 1) : is_variable(name + 1)))
            return plim_fail(err, PLIM_INVALID,
                             "--name is '%s', expected micro_batch=MICRO_BATCH_SIZE", text);
        if (h->choice && !find(&v, text, (size_t)(name - text)))
            return unknown_value(text, &v, err);
    }
    return PLIM_OK;
}

/* --- quoting ---------------------------------------------------------------------------------- */

static bool is_plain(const char *text)
{
    for (const char *c = text; *c; c++)
        if (!isalnum((unsigned char)*c) && !strchr("_-./:@%+,", *c)) return false;
    return *text != '\0';
}

/* Quotes for a POSIX shell: 'it'\''s'. */
static void write_sh(FILE *file, const char *text)
{
    if (is_plain(text)) {
        fputs(text, file);
        return;
    }
    fputc('\'', file);
    for (; *text; text++)
        if (*text == '\'')
            fputs("'\\''", file);
        else
            fputc(*text, file);
    fputc('\'', file);
}

/* Quotes for fish, in which only \ and ' are special between single quotes. */
static void write_fish(FILE *file, const char *text)
{
    fputc('\'', file);
    for (; *text; text++) {
        if (*text == '\'' || *text == '\\') fputc('\\', file);
        fputc(*text, file);
    }
    fputc('\'', file);
}

/* Quotes for .env files. Their readers agree on double quotes with backslashes; docker only accepts values that need
 * none. */
static void write_dotenv(FILE *file, const char *text)
{
    if (is_plain(text)) {
        fputs(text, file);
        return;
    }
    fputc('"', file);
    for (; *text; text++) {
        if (*text == '\n') {
            fputs("\\n", file);
            continue;
        }
        if (strchr("\"\\$`", *text)) fputc('\\', file);
        fputc(*text, file);
    }
    fputc('"', file);
}

/* --- lines ------------------------------------------------------------------------------------ */

/* The output: options on one line, or a line for each variable. */
struct lines {
    FILE *file;
    bool begun;
};

static void write_line(void *user, enum plim_handover_format format, const char *name,
                       const struct value *value)
{
    struct lines *lines = user;
    FILE *file = lines->file;
    if (format == PLIM_HANDOVER_ARGS) {
        fprintf(file, "%s--%s ", lines->begun ? " " : "", name);
        write_sh(file, value->text);
        lines->begun = true;
        return;
    }
    bool exports = format == PLIM_HANDOVER_SH || format == PLIM_HANDOVER_TASK_PROLOG;
    if (format == PLIM_HANDOVER_FISH)
        fprintf(file, "set -gx %s ", name);
    else
        fprintf(file, "%s%s=", exports ? "export " : "", name);
    if (format == PLIM_HANDOVER_SH)
        write_sh(file, value->text);
    else if (format == PLIM_HANDOVER_FISH)
        write_fish(file, value->text);
    else if (format == PLIM_HANDOVER_DOTENV)
        write_dotenv(file, value->text);
    else
        fputs(value->text, file);
    fputc('\n', file);
}

/* False for unknown values, and for values with several lines in Slurm's protocol, which has no quoting. */
static bool may_be_written(enum plim_handover_format format, const struct value *value)
{
    return value->text[0] && (format != PLIM_HANDOVER_TASK_PROLOG || !strchr(value->text, '\n'));
}

static void write_json_value(struct plim_json *json, json_t *root, const char *name,
                             const struct value *value)
{
    if (value->is_number)
        plim_json_int(json, root, name, strtoll(value->text, NULL, 10));
    else
        plim_json_text(json, root, name, value->text);
}

/* --- output ----------------------------------------------------------------------------------- */

/* Makes the name of an option from a key: dashes instead of underscores. */
static void argument_name(const char *key, char out[64])
{
    snprintf(out, 64, "%s", key);
    for (char *c = out; *c; c++)
        if (*c == '_') *c = '-';
}

/* Writes one value; write_each() calls it for every name that is written, in order. */
typedef void write_one(void *user, enum plim_handover_format format, const char *name,
                       const struct value *value);

static void write_each(const struct plim_handover *h, const struct values *v, write_one *write,
                       void *user)
{
    bool is_args = h->format == PLIM_HANDOVER_ARGS;
    char name[64];
    for (size_t i = 0; i < v->count && !(is_args && h->name_count); i++) {
        const struct value *value = &v->list[i];
        if (!value->variable || !may_be_written(h->format, value)) continue;
        if (is_args && (!strcmp(value->key, "source") || !strcmp(value->key, "stale"))) continue;
        argument_name(value->key, name);
        write(user, h->format, is_args ? name : value->variable, value);
    }
    for (size_t i = 0; i < h->name_count; i++) {
        size_t length = strcspn(h->names[i], "=");
        const struct value *value = find(v, h->names[i], length);
        if (may_be_written(h->format, value))
            write(user, h->format, h->names[i] + length + 1, value);
    }
}

struct object {
    struct plim_json json;
    json_t *root;
};

static void write_member(void *user, enum plim_handover_format format, const char *name,
                         const struct value *value)
{
    struct object *object = user;
    (void)format;
    write_json_value(&object->json, object->root, name, value);
}

static enum plim_status write_json(const struct plim_handover *h, const struct values *v,
                                   char **text, struct plim_error *err)
{
    struct object object = {0};
    object.root = plim_json_object(&object.json, NULL, NULL);
    write_each(h, v, write_member, &object);
    enum plim_status st = plim_json_write(&object.json, text, err);
    plim_json_finish(&object.json);
    return st;
}

enum plim_status plim_handover_write(const struct plim_handover *h, char **text,
                                     struct plim_error *err)
{
    struct values v;
    struct plim_text_stream stream;
    *text = NULL;
    enum plim_status st = plim_handover_check(h, err);
    if (st) return st;
    collect(h, &v);
    if (h->format == PLIM_HANDOVER_JSON) return write_json(h, &v, text, err);
    struct lines lines = {.file = plim_text_stream_open(&stream)};
    if (lines.file) write_each(h, &v, write_line, &lines);
    if (lines.begun) fputc('\n', lines.file);
    if (plim_text_stream_close(&stream, text) != PLIM_OK) return plim_no_memory(err);
    return PLIM_OK;
}
