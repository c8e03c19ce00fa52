/* Writes a jansson tree as a YAML document, from which plim_yaml_read_string() reads the same values. */
#ifndef PLIM_BASE_YAML_WRITE_H
#define PLIM_BASE_YAML_WRITE_H

#include "json.h"

/* Writes the document to *text, which the caller frees. Keys keep their order, texts are quoted or block scalars,
 * numbers are formatted as by plim_json_write(). The same tree gives the same bytes. PLIM_NOMEM is the only error. */
enum plim_status plim_yaml_write(const struct plim_json *json, char **text,
                                 struct plim_error *err) PLIM_MUST_CHECK;

#endif
