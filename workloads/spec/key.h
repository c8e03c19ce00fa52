/* The keys of a plimsoll spec outside `model:`, as one table.
 *
 * The same row serves the YAML reader, plim_spec_set() (the command line), the writer, the page of
 * documentation and the suggestion for an unknown key.
 */
#ifndef PLIM_WORKLOADS_SPEC_KEY_H
#define PLIM_WORKLOADS_SPEC_KEY_H

#include "value.h"

struct plim_spec_key {
    const char *path;        /* "train.lora.r" */
    struct plim_value value;
    size_t offset;           /* in struct plim_spec */
    bool not_written;        /* a written spec has another key instead */
    const char *unit, *fallback, *example, *help; /* fallback: the default as YAML, or NULL */
};

extern const struct plim_spec_key plim_spec_keys[PLIM_SPEC_KEYS]; /* a section's stand together */

size_t plim_spec_key_count(void);
const struct plim_spec_key *plim_spec_key_at(size_t index);
const struct plim_spec_key *plim_spec_key_find(const char *path); /* NULL: no such key */

/* Keys that stand for others: train.dropout for every dropout of the model, train.lora for its section as a text. */
struct plim_spec_shorthand {
    const char *path, *expected, *fallback, *example, *help;
};

enum { PLIM_SPEC_DROPOUT, PLIM_SPEC_LORA, PLIM_SPEC_QUANTIZATION, PLIM_SPEC_EVALUATION, PLIM_SPEC_SHORTHANDS };
extern const struct plim_spec_shorthand plim_spec_shorthands[PLIM_SPEC_SHORTHANDS];

/* Did the user give the key a value (spec->given) that is not null? */
bool plim_spec_key_given(const struct plim_spec *spec, const char *path);
void plim_spec_key_unset(struct plim_spec *spec, const char *path);

/* Puts every key's default into `spec`. */
enum plim_status plim_spec_key_defaults(struct plim_spec *spec,
                                        struct plim_error *err) PLIM_MUST_CHECK;

/* Reads the pairs of `map`, whose keys continue `prefix` ("", "data.", "train.lora."), into `spec`.
 * An unknown key is refused with the nearest known one; "model" is left to the caller. */
enum plim_status plim_spec_section_read(const struct plim_yaml *yaml,
                                        const struct plim_yaml_node *map, const char *prefix,
                                        struct plim_spec *spec,
                                        struct plim_error *err) PLIM_MUST_CHECK;

/* Reads one key, or a section, at its full path: place->key, with an empty prefix. */
enum plim_status plim_spec_path_read(const struct plim_place *place,
                                     const struct plim_yaml_node *node,
                                     struct plim_spec *spec) PLIM_MUST_CHECK;

#endif
