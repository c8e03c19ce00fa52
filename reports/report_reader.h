/* A report that plimsoll wrote as JSON or YAML, read back: the inverse of tree.h. */
#ifndef PLIM_REPORTS_REPORT_READER_H
#define PLIM_REPORTS_REPORT_READER_H

#include "autotune/base/yaml.h"
#include "result.h"

/* Is this document a report of plimsoll's (its key "schema" says so)? */
bool plim_report_is(const struct plim_yaml_node *root);

/* Fills the zeroed report, which then stands on its own; its `version` belongs to `yaml`. What is
 * absent stays not known; keys of newer versions are passed over. PLIM_INVALID, with the place, for
 * what is no report, or not one of this schema. On failure the report is to be finished too. */
enum plim_status plim_report_read(const struct plim_yaml *yaml, struct plim_report *report,
                                  struct plim_error *err) PLIM_MUST_CHECK;

/* The same for one result of schema plimsoll.result/1 or plimsoll.explain/1 within a document, into a
 * zeroed one, which is to be finished in any case. */
enum plim_status plim_report_read_result(const struct plim_yaml *yaml,
                                         const struct plim_yaml_node *node,
                                         struct plim_result *result,
                                         struct plim_error *err) PLIM_MUST_CHECK;

#endif
