/* The models that are known by name: workloads/zoo, one file a family, compiled in (scripts/embed_zoo.py). */
#ifndef PLIM_WORKLOADS_SPEC_ZOO_H
#define PLIM_WORKLOADS_SPEC_ZOO_H

#include "autotune/base/yaml.h"

struct plim_zoo_model {
    const char *name, *family;
    int64_t parameters;     /* as published; tests/unit/test_zoo.c counts them */
    const char *const *hub; /* OWNER/NAME of the Hub's models of the same sizes; ends with NULL */
    const char *spec;       /* YAML text */
};

/* Sorted by family, then by name. */
extern const struct plim_zoo_model plim_zoo_models[];
extern const char *const plim_zoo_names[];
extern const size_t plim_zoo_count;

/* The model of that name, or of that name in the Hub ("meta-llama/Llama-3.2-1B"); NULL: there is none. */
const struct plim_zoo_model *plim_zoo_find(const char *name);
const struct plim_zoo_model *plim_zoo_of_hub(const char *id);

/* Parses the spec of the model of that name. PLIM_SPEC, naming the nearest, if there is none. The caller finishes
 * `yaml`. */
enum plim_status plim_zoo_read(const char *name, struct plim_yaml *yaml, struct plim_error *err) PLIM_MUST_CHECK;

#endif
