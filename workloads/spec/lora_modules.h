/* Which modules of a model get adapters, by their full names ("model.layers.0.self_attn.q_proj"), as in peft 0.21.2
 * (check_target_module_exists() in tuners/tuners_utils.py, get_pattern_key() in utils/other.py). */
#ifndef PLIM_WORKLOADS_SPEC_LORA_MODULES_H
#define PLIM_WORKLOADS_SPEC_LORA_MODULES_H

#include "spec.h"

enum { PLIM_MODULE_NAME = 64 }; /* the longest name in a list, with its terminator */

/* The rank of a module's adapter; 0: it has none. */
int64_t plim_lora_rank(const struct plim_lora *lora, const char *module);

/* The same for a parameter by its full name ("model.layers.0.mlp.experts.down_proj", target_parameters), for which
 * layers and exclude_modules are ignored (_inject_parameters() in tuners/tuners_utils.py). */
int64_t plim_lora_parameter_rank(const struct plim_lora *lora, const char *parameter);

/* Is a copy of the module trained in full (modules_to_save)? peft compares only the end of its name, dot or not. */
bool plim_lora_saves(const struct plim_lora *lora, const char *module);

/* Iterates over the names of a list: copies the name at *at, which starts as the list's text, and advances to the next.
 * false: no more names. A regular expression has none. */
bool plim_modules_next(const char **at, char name[PLIM_MODULE_NAME]);
/* Appends a name to a list. false: it does not fit. */
bool plim_modules_add(char modules[PLIM_MODULES_TEXT], const char *name);
/* Does a list contain exactly this name? */
bool plim_modules_has(const char *modules, const char *name);
/* Is it a regular expression instead of a list? */
bool plim_modules_is_regex(const char *modules);
/* The last part of a name */
const char *plim_module_leaf(const char *name);

#endif
