/* A YAML document as a tree that records the position of every value.
 *
 * Reads YAML 1.1 through libyaml; JSON documents are YAML and are read the same way.
 * Aliases are refused (a spec needs none, and they are what a "YAML bomb" is made of);
 * so are tags, directives, duplicate keys, keys that are not scalars, more than one document,
 * nesting deeper than 64 and more than 524288 values. Input that is not a regular file, has more than 4 MiB (a
 * string: 32) or is not UTF-8 text (a NUL byte, a binary) is refused before it is parsed. So every input is
 * processed in bounded time and memory. Columns count characters.
 *
 * Ownership: the tree and all its text belong to the `struct plim_yaml` and go with it.
 */
#ifndef PLIM_BASE_YAML_H
#define PLIM_BASE_YAML_H

#include "status.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum plim_yaml_kind { PLIM_YAML_SCALAR, PLIM_YAML_SEQUENCE, PLIM_YAML_MAPPING };

struct plim_yaml_node {
    enum plim_yaml_kind kind;
    int line, column;              /* 1-based position of the value */
    bool quoted;                   /* a quoted scalar is text, never a number, a bool or null */
    const char *text;              /* scalar: its text */
    size_t count;                  /* sequence: items; mapping: pairs */
    struct plim_yaml_node **items; /* sequence: items; mapping: values */
    struct plim_yaml_node **keys;  /* mapping: scalar keys, in document order */
};

struct plim_yaml {
    char *source;                /* name for messages: the path as given, or "<string>" */
    struct plim_yaml_node *root; /* NULL for an empty document */
    void *arena;                 /* owns everything above */
};

/* Parse. On failure nothing is left to release, and `err` has file, line, column. */
enum plim_status plim_yaml_read_file(const char *path, struct plim_yaml *out,
                                     struct plim_error *err) PLIM_MUST_CHECK;
enum plim_status plim_yaml_read_string(const char *source_name, const char *text, size_t length,
                                       struct plim_yaml *out,
                                       struct plim_error *err) PLIM_MUST_CHECK;
void plim_yaml_finish(struct plim_yaml *yaml); /* NULL and zeroed are fine */

/* The value of a key of a mapping, or NULL. */
const struct plim_yaml_node *plim_yaml_get(const struct plim_yaml_node *mapping, const char *key);

/* Readers of scalars. They fail with PLIM_SPEC, "expected an integer" and the place.
 * `null`, `~` and the empty scalar are null for plim_yaml_is_null and fail elsewhere.
 * Integers: decimal, optional sign, optional `_` between digits, no leading zeros (YAML 1.1 would
 * read those as octal); overflow is an error.
 * Numbers also take fractions and exponents, but not NaN or infinity.
 * Booleans: true false yes no on off (any case). */
bool plim_yaml_is_null(const struct plim_yaml_node *node);
/* Is it a scalar with this text? False for NULL. */
bool plim_yaml_is_text(const struct plim_yaml_node *node, const char *text);
enum plim_status plim_yaml_int(const struct plim_yaml *yaml, const struct plim_yaml_node *node,
                               int64_t *out, struct plim_error *err) PLIM_MUST_CHECK;
enum plim_status plim_yaml_number(const struct plim_yaml *yaml, const struct plim_yaml_node *node,
                                  double *out, struct plim_error *err) PLIM_MUST_CHECK;
enum plim_status plim_yaml_bool(const struct plim_yaml *yaml, const struct plim_yaml_node *node,
                                bool *out, struct plim_error *err) PLIM_MUST_CHECK;
enum plim_status plim_yaml_text(const struct plim_yaml *yaml, const struct plim_yaml_node *node,
                                const char **out, struct plim_error *err) PLIM_MUST_CHECK;

/* plim_fail_at() at the place of `node`. */
enum plim_status plim_yaml_fail(const struct plim_yaml *yaml, const struct plim_yaml_node *node,
                                struct plim_error *err, const char *fmt, ...) PLIM_PRINTF(4, 5);

#endif
