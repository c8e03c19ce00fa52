/* Builds a JSON document with jansson.
 *
 *     struct plim_json json = {0};
 *     json_t *root = plim_json_object(&json, NULL, NULL);
 *     plim_json_text(&json, root, "schema", "plimsoll.result/1");
 *     json_t *peak = plim_json_object(&json, root, "peak");
 *     plim_json_int(&json, peak, "allocated_bytes", bytes);
 *     PLIM_TRY(plim_json_write(&json, &text, err));
 *
 * Unknown values are omitted: a NULL text, a number that is NaN or infinite, and the integer PLIM_JSON_ABSENT add
 * nothing. Keys keep the order in which they were added. Bytes of a text that are not UTF-8 are written as "\xNN".
 *
 * Lack of host memory is recorded, and reported once by plim_json_write(). Until then every call is safe; `parent` may
 * be the NULL that a failed call returned. */
#ifndef PLIM_BASE_JSON_H
#define PLIM_BASE_JSON_H

#include "status.h"
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#define PLIM_JSON_ABSENT INT64_MIN

/* Empty and ready when zeroed. */
struct plim_json {
    json_t *root; /* owns the whole document */
    bool failed;
};

/* Add a value to `parent`: under `key` if it is an object, at the end if it is an array (`key` is then NULL). Returned
 * objects and arrays are owned by the document. If `parent` is NULL and there is no root yet, the new one is the
 * root. */
json_t *plim_json_object(struct plim_json *json, json_t *parent, const char *key);
json_t *plim_json_array(struct plim_json *json, json_t *parent, const char *key);
void plim_json_int(struct plim_json *json, json_t *parent, const char *key, int64_t value);
void plim_json_number(struct plim_json *json, json_t *parent, const char *key, double value);
void plim_json_text(struct plim_json *json, json_t *parent, const char *key, const char *text);
void plim_json_bool(struct plim_json *json, json_t *parent, const char *key, bool value);
void plim_json_null(struct plim_json *json, json_t *parent, const char *key);

/* Writes the document as text, which the caller frees: two spaces of indentation, a newline at the end, 12 significant
 * digits. The same document always gives the same bytes. */
enum plim_status plim_json_write(const struct plim_json *json, char **text,
                                 struct plim_error *err) PLIM_MUST_CHECK;

void plim_json_finish(struct plim_json *json); /* NULL or a zeroed one is allowed */

#endif
