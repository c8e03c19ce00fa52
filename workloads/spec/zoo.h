/* The specs that travel inside the executable: workloads/zoo, one file a model. */
#ifndef PLIM_WORKLOADS_SPEC_ZOO_H
#define PLIM_WORKLOADS_SPEC_ZOO_H

#include "autotune/base/yaml.h"

/* Parses the zoo's spec of that name (plim_zoo_name()). PLIM_SPEC, naming the nearest, if there is
 * none. The caller finishes `yaml`. */
enum plim_status plim_zoo_read(const char *name, struct plim_yaml *yaml,
                               struct plim_error *err) PLIM_MUST_CHECK;

/* Is there a spec of that name? */
bool plim_zoo_has(const char *name);

/* The zoo's name of a model of the Hub ("meta-llama/Llama-3.2-1B"); NULL: it has none. */
const char *plim_zoo_of_hub(const char *id);

#endif
