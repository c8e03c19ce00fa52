/* Access to jobs.yaml, whose head describes every field; only for the reader of jobs (job.c). */
#ifndef PLIM_REPORTS_CONFIGS_JOB_TABLE_H
#define PLIM_REPORTS_CONFIGS_JOB_TABLE_H

#include "autotune/base/yaml.h"
#include "config_places.h"
#include "framework.h"
#include "program_names.h"

/* Finds the row of a framework; of several rows the one whose marks or names the config has; NULL if there is none.
 * PLIM_INTERNAL if the table is damaged. */
enum plim_status plim_config_job_row(const struct plim_config_framework *framework,
                                     const struct plim_config_document *document,
                                     const struct plim_config_places *places, const struct plim_yaml_node **row,
                                     struct plim_error *err) PLIM_MUST_CHECK;

/* Returns the rules that {use: NAME} stands for, or NULL if `rule` is not such a reference. */
const struct plim_yaml_node *plim_config_job_list(const struct plim_yaml_node *rule);

/* Return the number of texts in a field, which is a text or a list of texts, and each of them. A missing field has
 * none. */
size_t plim_config_job_texts(const struct plim_yaml_node *node);
const char *plim_config_job_text(const struct plim_yaml_node *node, size_t index);

/* Returns the first program with one of the names (a text or a list of them). */
struct plim_config_program plim_config_job_program(const struct plim_yaml_node *names,
                                                   const struct plim_config_document *document);

/* Fails with PLIM_INTERNAL at a node. */
enum plim_status plim_config_job_damaged(const struct plim_yaml_node *node, const char *what,
                                         struct plim_error *err);

#endif
