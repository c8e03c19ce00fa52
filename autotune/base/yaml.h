/* A YAML document as a tree that records the position of every value.
 *
 * Reads YAML 1.1 with libyaml; JSON documents are YAML and are read in the same way. Aliases are refused (a spec needs
 * none, and "YAML bombs" are made of them); so are tags, directives, duplicate keys, keys that are not scalars, several
 * documents, nesting deeper than 64 and more than 524288 values. Input that is not a regular file, has more than 4 MiB
 * (a string: 32 MiB) or is not UTF-8 text is refused before it is parsed. So every input is processed in bounded time
 * and memory. Columns count characters.
 *
 * The `struct plim_yaml` owns the tree and all its text. */
#ifndef PLIM_BASE_YAML_H
#define PLIM_BASE_YAML_H

#include "status.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum plim_yaml_kind { PLIM_YAML_SCALAR, PLIM_YAML_SEQUENCE, PLIM_YAML_MAPPING };

struct plim_yaml_node {
    enum plim_yaml_kind kind;
    int line, column;              /* position of the value, from 1 */
    bool quoted;                   /* a quoted scalar is text, never a number, a boolean or null */
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

/* Parse a document. On failure nothing is left to free, and `err` has file, line and column. */
enum plim_status plim_yaml_read_file(const char *path, struct plim_yaml *out,
                                     struct plim_error *err) PLIM_MUST_CHECK;
enum plim_status plim_yaml_read_string(const char *source_name, const char *text, size_t length,
                                       struct plim_yaml *out,
                                       struct plim_error *err) PLIM_MUST_CHECK;
void plim_yaml_finish(struct plim_yaml *yaml); /* NULL or a zeroed one is allowed */

/* Returns the value of a key of a mapping, or NULL. */
const struct plim_yaml_node *plim_yaml_get(const struct plim_yaml_node *mapping, const char *key);

/* Readers of scalars. They fail with PLIM_SPEC, "expected an integer" and the place. `null`, `~` and the empty scalar
 * are null for plim_yaml_is_null() and fail in the other functions. Integers: decimal, optional sign, optional `_`
 * between digits, no leading zeros (YAML 1.1 would read those as octal); overflow is an error. Numbers: also with
 * fractions and exponents, but not NaN or infinity. Booleans: true, false, yes, no, on, off (any case). */
bool plim_yaml_is_null(const struct plim_yaml_node *node);
/* True if it is a scalar with this text; false for NULL. */
bool plim_yaml_is_text(const struct plim_yaml_node *node, const char *text);
enum plim_status plim_yaml_int(const struct plim_yaml *yaml, const struct plim_yaml_node *node,
                               int64_t *out, struct plim_error *err) PLIM_MUST_CHECK;
enum plim_status plim_yaml_number(const struct plim_yaml *yaml, const struct plim_yaml_node *node,
                                  double *out, struct plim_error *err) PLIM_MUST_CHECK;
enum plim_status plim_yaml_bool(const struct plim_yaml *yaml, const struct plim_yaml_node *node,
                                bool *out, struct plim_error *err) PLIM_MUST_CHECK;
enum plim_status plim_yaml_text(const struct plim_yaml *yaml, const struct plim_yaml_node *node,
                                const char **out, struct plim_error *err) PLIM_MUST_CHECK;

/* As plim_fail_at(), with the place of `node`. */
enum plim_status plim_yaml_fail(const struct plim_yaml *yaml, const struct plim_yaml_node *node,
                                struct plim_error *err, const char *fmt, ...) PLIM_PRINTF(4, 5);

#endif
