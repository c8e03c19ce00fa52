/* Writes an answer as the arguments, the environment or the config of a training framework. The texts are in
 * frameworks.yaml ("emits" and "terms"), which describes their language.
 */
#ifndef PLIM_REPORTS_CONFIGS_EMISSION_H
#define PLIM_REPORTS_CONFIGS_EMISSION_H

#include "framework.h"
#include "reports/result.h"
#include <stdio.h>

/* The answer that is emitted. A setting of NULL: only sizes. */
struct plim_config_answer {
    struct plim_config_sizes sizes; /* dp: the data-parallel GPUs; 0: not known */
    int64_t world, gpus_per_node;   /* all GPUs, and those of a node; 0: not known */
    const struct plim_result_setting *setting;
    const struct plim_result_spec *spec; /* NULL: not known */
    char about[256]; /* the source of the answer, for a comment: one line; "": not known */
};

/* One form of one framework. */
struct plim_config_form {
    const struct plim_config_framework *framework;
    const char *name; /* "cli" */
    const char *text; /* the table's, with {placeholders} */
};

/* Finds a form by "hf" (its usual form) or "hf.cli". PLIM_INVALID names the nearest frameworks, or its forms. */
enum plim_status plim_config_form_find(const char *name, struct plim_config_form *out,
                                       struct plim_error *err) PLIM_MUST_CHECK;

/* The text, malloc'd, with a newline at its end. `unsaid` (malloc'd; "" when there are none) names
 * settings of the answer that the text does not express: "optimizer adamw-fused, attention sdpa".
 * PLIM_INVALID: a size that the text needs is not known, or the framework cannot accumulate. */
enum plim_status plim_config_emit(const struct plim_config_form *form,
                                  const struct plim_config_answer *answer, char **text,
                                  char **unsaid, struct plim_error *err) PLIM_MUST_CHECK;

/* A line for every framework that has forms: its name, its title and its forms. */
enum plim_status plim_config_forms_list(FILE *out, struct plim_error *err) PLIM_MUST_CHECK;

#endif
