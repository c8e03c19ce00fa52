/* Writes a jansson tree as a YAML document that plim_yaml_read_string() reads back to the same values. */
#ifndef PLIM_BASE_YAML_WRITE_H
#define PLIM_BASE_YAML_WRITE_H

#include "json.h"

/* Keys stay in order, texts are quoted or block scalars, numbers are formatted as in plim_json_write().
 * The same tree gives the same bytes. `text` is malloc'd; PLIM_NOMEM is the only failure. */
enum plim_status plim_yaml_write(const struct plim_json *json, char **text,
                                 struct plim_error *err) PLIM_MUST_CHECK;

#endif
