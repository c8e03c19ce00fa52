/* Facts: an ordered list of named strings, of which keys and the validity of answers are made. */
#ifndef PLIM_AUTOTUNE_STORE_FACTS_H
#define PLIM_AUTOTUNE_STORE_FACTS_H

#include "autotune/base/array.h"
#include "autotune/base/json.h"
#include "autotune/base/sha256.h"
#include "autotune/base/yaml.h"

struct plim_fact {
    char name[32];
    char *value; /* "": not known */
};

/* Owns its values. Empty when zeroed. */
struct plim_facts {
    PLIM_ARRAY(struct plim_fact) list;
    bool failed; /* host memory ran out while it was being filled */
};

/* Append a fact, with a copy of its value; NULL: not known. Lack of memory is recorded in `failed`. */
void plim_facts_add(struct plim_facts *facts, const char *name, const char *value);
void plim_facts_format(struct plim_facts *facts, const char *name, const char *format, ...)
    PLIM_PRINTF(3, 4);
void plim_facts_finish(struct plim_facts *facts); /* NULL or zeroed facts are allowed */

/* Returns the value of a fact; "" if it is missing. */
const char *plim_facts_get(const struct plim_facts *facts, const char *name);

/* Compares two lists. A fact that is not known, or missing, on one side is unknown; a mismatch takes precedence over
 * unknown facts. *culprit is the name of the first fact that decides, "" for a match. */
enum plim_facts_state { PLIM_FACTS_MATCH, PLIM_FACTS_UNKNOWN, PLIM_FACTS_MISMATCH };
enum plim_facts_state plim_facts_compare(const struct plim_facts *kept,
                                         const struct plim_facts *now, const char **culprit);

/* True if both have the same names and values in the same order. */
bool plim_facts_equal(const struct plim_facts *a, const struct plim_facts *b);

/* Hashes names and values (SHA-256), each with its length, so that different facts never give the same input. */
void plim_facts_hash(const struct plim_facts *facts, char out[PLIM_SHA256_TEXT]);

/* Write and read facts as a mapping. Reading fills in zeroed facts; PLIM_SPEC: it is not a mapping of strings. */
void plim_facts_write(const struct plim_facts *facts, struct plim_json *json, json_t *parent,
                      const char *key);
enum plim_status plim_facts_read(const struct plim_yaml *yaml, const struct plim_yaml_node *node,
                                 struct plim_facts *facts, struct plim_error *err) PLIM_MUST_CHECK;

#endif
