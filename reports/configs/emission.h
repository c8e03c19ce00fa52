/* Writes an answer as the arguments, environment or config of a training framework. The templates are in
 * frameworks.yaml ("emits" and "terms"), which describes their syntax. */
#ifndef PLIM_REPORTS_CONFIGS_EMISSION_H
#define PLIM_REPORTS_CONFIGS_EMISSION_H

#include "framework.h"
#include "reports/result.h"
#include <stdio.h>

/* The answer to be written. `setting` NULL: only sizes. */
struct plim_config_answer {
    struct plim_config_sizes sizes; /* dp: data-parallel GPUs; 0: unknown */
    int64_t world, gpus_per_node;   /* all GPUs, and those of a node; 0: unknown */
    const struct plim_result_setting *setting;
    const struct plim_result_spec *spec; /* NULL: unknown */
    char about[256]; /* source of the answer, for a comment of one line; "": unknown */
};

/* A form in which the answer can be written for a framework. */
struct plim_config_form {
    const struct plim_config_framework *framework;
    const char *name; /* "cli" */
    const char *text; /* template from the table, with {placeholders} */
};

/* Finds a form by "hf" (its usual form) or "hf.cli". PLIM_INVALID; the message names the nearest frameworks, or the
 * forms. */
enum plim_status plim_config_form_find(const char *name, struct plim_config_form *out,
                                       struct plim_error *err) PLIM_MUST_CHECK;

/* Stores the text, which ends with a newline, and in `unsaid` the settings of the answer that it does not express, such
 * as "optimizer adamw-fused, attention sdpa" ("" if there are none). Both are allocated with malloc and owned by the
 * caller. PLIM_INVALID if a size that the text needs is unknown, or the framework cannot accumulate. */
enum plim_status plim_config_emit(const struct plim_config_form *form,
                                  const struct plim_config_answer *answer, char **text,
                                  char **unsaid, struct plim_error *err) PLIM_MUST_CHECK;

/* Writes a line for every framework with forms: its name, title and forms. */
enum plim_status plim_config_forms_list(FILE *out, struct plim_error *err) PLIM_MUST_CHECK;

#endif
