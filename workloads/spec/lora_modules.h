/* Which modules of a model get adapters, by their full names ("model.layers.0.self_attn.q_proj"), as peft 0.21.2
 * decides it (check_target_module_exists() in tuners/tuners_utils.py, get_pattern_key() in utils/other.py). */
#ifndef PLIM_WORKLOADS_SPEC_LORA_MODULES_H
#define PLIM_WORKLOADS_SPEC_LORA_MODULES_H

#include "spec.h"

enum { PLIM_MODULE_NAME = 64 }; /* the longest name in a list, and the byte behind it */

/* The rank of a module's adapter; 0: it has none. */
int64_t plim_lora_rank(const struct plim_lora *lora, const char *module);

/* The same of a parameter by its full name ("model.layers.0.mlp.experts.down_proj", target_parameters): layers and
 * exclude_modules mean nothing to it (_inject_parameters() in tuners/tuners_utils.py). */
int64_t plim_lora_parameter_rank(const struct plim_lora *lora, const char *parameter);

/* Is a copy of the module trained in full (modules_to_save)? peft looks at the end of its name alone, dot or not. */
bool plim_lora_saves(const struct plim_lora *lora, const char *module);

/* The names of a list one by one: copies the one at *at, which begins with the list's text, and goes on to the next.
 * false: there are no more. Of a regular expression there are none. */
bool plim_modules_next(const char **at, char name[PLIM_MODULE_NAME]);
/* Puts another name behind a list. false: it does not fit. */
bool plim_modules_add(char modules[PLIM_MODULES_TEXT], const char *name);
/* Has a list this very name? */
bool plim_modules_has(const char *modules, const char *name);
/* Is it a regular expression, and no list? */
bool plim_modules_is_regex(const char *modules);
/* The last part of a name */
const char *plim_module_leaf(const char *name);

#endif
