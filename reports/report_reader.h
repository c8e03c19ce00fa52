/* Reads a report that plimsoll wrote as JSON or YAML: the inverse of tree.h. */
#ifndef PLIM_REPORTS_REPORT_READER_H
#define PLIM_REPORTS_REPORT_READER_H

#include "autotune/base/yaml.h"
#include "result.h"

/* Is this document a report of plimsoll (by its key "schema")? */
bool plim_report_is(const struct plim_yaml_node *root);

/* Fills the zeroed report, which owns all its texts except `version`, which belongs to `yaml`. Absent
 * keys stay not known; keys of newer versions are ignored. PLIM_INVALID, with the place: it is no
 * report, or not of this schema. Finish the report on failure, too. */
enum plim_status plim_report_read(const struct plim_yaml *yaml, struct plim_report *report,
                                  struct plim_error *err) PLIM_MUST_CHECK;

/* The same for one result of schema plimsoll.result/1 or plimsoll.explain/1 within a document. `result` is
 * zeroed; finish it in any case. */
enum plim_status plim_report_read_result(const struct plim_yaml *yaml,
                                         const struct plim_yaml_node *node,
                                         struct plim_result *result,
                                         struct plim_error *err) PLIM_MUST_CHECK;

#endif
