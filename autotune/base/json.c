#include "json.h"
#include "array.h"

#include "utf8.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Adds `value` and takes ownership of it; NULL is a value that could not be created. */
static json_t *add(struct plim_json *json, json_t *parent, const char *key, json_t *value)
{
    int failed = value == NULL;
    if (!failed && parent)
        failed = json_is_array(parent) ? json_array_append_new(parent, value)
                                       : json_object_set_new(parent, key, value);
    else if (!failed && !json->root)
        json->root = value;
    else if (!failed) {
        json_decref(value); /* its parent could not be created */
        failed = 1;
    }
    if (!failed) return value;
    json->failed = true;
    return NULL;
}

json_t *plim_json_object(struct plim_json *json, json_t *parent, const char *key)
{
    return add(json, parent, key, json_object());
}

json_t *plim_json_array(struct plim_json *json, json_t *parent, const char *key)
{
    return add(json, parent, key, json_array());
}

void plim_json_int(struct plim_json *json, json_t *parent, const char *key, int64_t value)
{
    if (value != PLIM_JSON_ABSENT) add(json, parent, key, json_integer(value));
}

void plim_json_number(struct plim_json *json, json_t *parent, const char *key, double value)
{
    if (isfinite(value)) add(json, parent, key, json_real(value));
}

/* Converts bytes that are not UTF-8, as in names of files and in arguments, to \xNN. */
static json_t *escaped(const char *text)
{
    size_t length = strlen(text), used = 0;
    const unsigned char *at = (const unsigned char *)text, *end = at + length;
    char *copy = length < SIZE_MAX / 4 ? malloc(4 * length + 1) : NULL;
    if (!copy) return NULL;
    while (at < end) {
        uint32_t code;
        size_t bytes = plim_utf8_decode(at, (size_t)(end - at), &code);
        if (bytes) memcpy(copy + used, at, bytes);
        used += bytes ? bytes : (size_t)sprintf(copy + used, "\\x%02x", *at);
        at += bytes ? bytes : 1;
    }
    json_t *value = json_stringn(copy, used);
    free(copy);
    return value;
}

void plim_json_text(struct plim_json *json, json_t *parent, const char *key, const char *text)
{
    if (text) add(json, parent, key, escaped(text));
}

void plim_json_bool(struct plim_json *json, json_t *parent, const char *key, bool value)
{
    add(json, parent, key, json_boolean(value));
}

void plim_json_null(struct plim_json *json, json_t *parent, const char *key)
{
    add(json, parent, key, json_null());
}

struct dump {
    PLIM_ARRAY(char) text;
    bool failed; /* stays set, since jansson continues after a failed write of a key */
};

static int append(const char *bytes, size_t size, void *user)
{
    struct dump *dump = user;
    if (dump->failed || PLIM_ARRAY_RESERVE(&dump->text, dump->text.count + size) != PLIM_OK) {
        dump->failed = true;
        return -1;
    }
    memcpy(dump->text.items + dump->text.count, bytes, size);
    dump->text.count += size;
    return 0;
}

enum plim_status plim_json_write(const struct plim_json *json, char **text, struct plim_error *err)
{
    struct dump dump = {0};
    *text = NULL;
    if (json->failed || !json->root)
        return plim_fail(err, PLIM_NOMEM, "no memory for the JSON document");
    /* A fixed precision, since the default differs between versions of jansson. */
    bool failed = json_dump_callback(json->root, append, &dump,
                                     JSON_INDENT(2) | JSON_REAL_PRECISION(12)) != 0;
    if (failed || dump.failed || append("\n", sizeof("\n"), &dump)) {
        PLIM_ARRAY_FINISH(&dump.text);
        return plim_fail(err, PLIM_NOMEM, "no memory for the JSON text");
    }
    *text = dump.text.items;
    return PLIM_OK;
}

void plim_json_finish(struct plim_json *json)
{
    if (!json) return;
    json_decref(json->root);
    *json = (struct plim_json){0};
}
