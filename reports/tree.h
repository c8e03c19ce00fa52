/* A report as a tree: the one description of the schemas that the JSON and YAML writers share. */
#ifndef PLIM_REPORTS_TREE_H
#define PLIM_REPORTS_TREE_H

#include "autotune/base/json.h"
#include "result.h"

/* Fills the empty document `json`. If host memory runs out, json->failed is set and plim_json_write()
 * fails. */
void plim_report_tree(const struct plim_report *report, struct plim_json *json);

#endif
