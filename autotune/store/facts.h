/* An ordered list of named texts: the question of an answer, and what it holds for. */
#ifndef PLIM_AUTOTUNE_STORE_FACTS_H
#define PLIM_AUTOTUNE_STORE_FACTS_H

#include "autotune/base/array.h"
#include "autotune/base/json.h"
#include "autotune/base/sha256.h"
#include "autotune/base/yaml.h"

struct plim_fact {
    char name[32];
    char *value; /* owned by the list; "": not known */
};

/* Zeroed is empty. */
struct plim_facts {
    PLIM_ARRAY(struct plim_fact) list;
    bool failed; /* host memory ran out while it was filled */
};

/* Appends a fact; `value` NULL: not known. A failure is recorded in `failed`. */
void plim_facts_add(struct plim_facts *facts, const char *name, const char *value);
void plim_facts_format(struct plim_facts *facts, const char *name, const char *format, ...)
    PLIM_PRINTF(3, 4);
void plim_facts_finish(struct plim_facts *facts); /* NULL and zeroed are fine */

/* "" if there is none with that name. */
const char *plim_facts_get(const struct plim_facts *facts, const char *name);

/* Compares two lists. A fact that is not known on one side, or that only one side has, is unknown; a
 * mismatch takes precedence over unknown facts. `culprit` is the first name that
 * decides, "" for a match. */
enum plim_facts_state { PLIM_FACTS_MATCH, PLIM_FACTS_UNKNOWN, PLIM_FACTS_MISMATCH };
enum plim_facts_state plim_facts_compare(const struct plim_facts *kept,
                                         const struct plim_facts *now, const char **culprit);

/* Do both have the same names with the same values in the same order? */
bool plim_facts_equal(const struct plim_facts *a, const struct plim_facts *b);

/* A hash over names and values with their lengths, so that different facts never give the same input. */
void plim_facts_hash(const struct plim_facts *facts, char out[PLIM_SHA256_TEXT]);

/* Writes and reads facts as a mapping. Reading fills the zeroed facts; PLIM_SPEC if it is not a mapping of texts. */
void plim_facts_write(const struct plim_facts *facts, struct plim_json *json, json_t *parent,
                      const char *key);
enum plim_status plim_facts_read(const struct plim_yaml *yaml, const struct plim_yaml_node *node,
                                 struct plim_facts *facts, struct plim_error *err) PLIM_MUST_CHECK;

#endif
