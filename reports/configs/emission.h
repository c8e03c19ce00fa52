/* An answer as the arguments, the environment or the config of a training framework: the texts are
 * rows of frameworks.yaml ("emits" and "terms"), where their language is described.
 */
#ifndef PLIM_REPORTS_CONFIGS_EMISSION_H
#define PLIM_REPORTS_CONFIGS_EMISSION_H

#include "framework.h"
#include "reports/result.h"
#include <stdio.h>

/* What is emitted. A setting of NULL: sizes alone. */
struct plim_config_answer {
    struct plim_config_sizes sizes; /* dp: the data-parallel GPUs; 0: not known */
    int64_t world, gpus_per_node;   /* all GPUs, and those of a node; 0: not known */
    const struct plim_result_setting *setting;
    const struct plim_result_spec *spec; /* NULL: not known */
    char about[256]; /* where it comes from, for a comment: one line; "": not said */
};

/* One form of one framework. */
struct plim_config_form {
    const struct plim_config_framework *framework;
    const char *name; /* "cli" */
    const char *text; /* the table's, with {placeholders} */
};

/* "hf", its usual form, or "hf.cli". PLIM_INVALID with the nearest names, or the forms it has. */
enum plim_status plim_config_form_find(const char *name, struct plim_config_form *out,
                                       struct plim_error *err) PLIM_MUST_CHECK;

/* The text, malloc'd, with a newline at its end. `unsaid` (malloc'd; "" when there is nothing) names
 * what the answer holds for and the text does not carry: "optimizer adamw-fused, attention sdpa".
 * PLIM_INVALID: a size that it needs is not known, or the framework cannot accumulate. */
enum plim_status plim_config_emit(const struct plim_config_form *form,
                                  const struct plim_config_answer *answer, char **text,
                                  char **unsaid, struct plim_error *err) PLIM_MUST_CHECK;

/* A line for every framework that has forms: its name, its title and its forms. */
enum plim_status plim_config_forms_list(FILE *out, struct plim_error *err) PLIM_MUST_CHECK;

#endif
