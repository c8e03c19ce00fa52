/* How one value of a spec is read from YAML, checked, named in messages and written back.
 *
 * The table of keys (key.h) and the tables of families (family.h) describe each value with a
 * `struct plim_value`; nothing else in the importer knows about integers, axes or enumerations.
 */
#ifndef PLIM_WORKLOADS_SPEC_VALUE_H
#define PLIM_WORKLOADS_SPEC_VALUE_H

#include "autotune/base/yaml.h"
#include "spec.h"
#include <stdio.h>

enum plim_value_type {
    PLIM_VALUE_INT,       /* int64_t */
    PLIM_VALUE_NUMBER,    /* double */
    PLIM_VALUE_SHARE,     /* double; "2%" is 0.02 */
    PLIM_VALUE_BOOL,      /* bool */
    PLIM_VALUE_ENUM,      /* an enum, by name */
    PLIM_VALUE_TEXT,      /* char[maximum + 1] */
    PLIM_VALUE_INT_AXIS,  /* struct plim_int_axis: one, a list, "512,1024", "512:4096:512" */
    PLIM_VALUE_ENUM_AXIS, /* struct plim_enum_axis: one, a list, "none,full" */
    PLIM_VALUE_SCHEDULE,  /* struct plim_spec: its schedule; {0: 4, 4: 2} */
    PLIM_VALUE_MODULES,   /* char[PLIM_MODULES_TEXT]; a list, "q_proj+v_proj", "re:.*_proj" */
    PLIM_VALUE_RANKS,     /* struct plim_lora: its ranks; {v_proj: 32} */
    PLIM_VALUE_TYPE_COUNT
};

struct plim_value {
    enum plim_value_type type;
    bool nullable; /* null, ~ or an empty scalar is `null_value` (empty for the lists) */
    int64_t null_value;
    const char *null_word; /* a word that is null, too, and is written for it ("auto"); NULL: none */
    double minimum, maximum;     /* of numbers; TEXT: maximum is the greatest length */
    const char *const *names;    /* ENUM, ENUM_AXIS */
    size_t name_count;
};

/* Where a value is read from: `prefix` and `key` make its name in messages ("train." "clip"). */
struct plim_place {
    const struct plim_yaml *yaml;
    const char *prefix, *key;
    struct plim_error *err;
};

/* Reads `node` into `out`. Fails with PLIM_SPEC and "train.clip is 'x', expected a number ..." at
 * the place of the node; `out` is unchanged then. */
enum plim_status plim_value_read(const struct plim_value *value, const struct plim_place *place,
                                 const struct plim_yaml_node *node, void *out) PLIM_MUST_CHECK;

/* Is the value at `in` null (an empty list)? */
bool plim_value_is_null(const struct plim_value *value, const void *in);

/* "an integer from 1 to 1024, or null": the expected values, for messages and documentation. */
void plim_value_describe(const struct plim_value *value, char *out, size_t size);

/* "train.clip is [..], expected ...": fails at `node` for a value that is not as described. */
enum plim_status plim_value_refuse(const struct plim_place *place,
                                   const struct plim_yaml_node *node, const char *expected);

#endif
