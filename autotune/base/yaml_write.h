/* A tree of jansson's as a YAML document that plim_yaml_read_text() reads back to the same values. */
#ifndef PLIM_BASE_YAML_WRITE_H
#define PLIM_BASE_YAML_WRITE_H

#include "json.h"

/* Keys in their order, texts always quoted or as a block of lines, numbers as plim_json_write() has
 * them. The same tree gives the same bytes. `text` is malloc'd; PLIM_NOMEM is the only failure. */
enum plim_status plim_yaml_write(const struct plim_json *json, char **text,
                                 struct plim_error *err) PLIM_MUST_CHECK;

#endif
