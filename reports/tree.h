/* A report as a tree: the one description of the schemas that the JSON and YAML writers share. */
#ifndef PLIM_REPORTS_TREE_H
#define PLIM_REPORTS_TREE_H

#include "autotune/base/json.h"
#include "result.h"

/* Fills the empty document `json`. Host memory running out is told by plim_json_write(), and
 * here by json->failed. */
void plim_report_tree(const struct plim_report *report, struct plim_json *json);

#endif
