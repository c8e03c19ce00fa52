/* The environment of a program to start: a copy of this process's environment, with changes. */
#ifndef PLIM_BASE_ENVIRONMENT_H
#define PLIM_BASE_ENVIRONMENT_H

#include "array.h"

struct plim_environment {
    PLIM_ARRAY(char *) entries; /* "NAME=VALUE", owned; `items` ends with a NULL that is not counted */
};

/* Copies this process's environment into the zeroed `out`, which the caller finishes in any case. PLIM_NOMEM is the
 * only error of all functions. */
enum plim_status plim_environment_copy(struct plim_environment *out) PLIM_MUST_CHECK;
void plim_environment_finish(struct plim_environment *environment);

/* Sets a variable and takes ownership of `entry`, a malloc'd "NAME=VALUE". Returns PLIM_NOMEM if it is NULL. */
enum plim_status plim_environment_set_entry(struct plim_environment *environment, char *entry) PLIM_MUST_CHECK;
enum plim_status plim_environment_set(struct plim_environment *environment, const char *name,
                                      const char *value) PLIM_MUST_CHECK;

/* Prepends `value` to the colon-separated list in the variable. */
enum plim_status plim_environment_prepend(struct plim_environment *environment, const char *name,
                                          const char *value) PLIM_MUST_CHECK;
/* Returns the value of a variable in a list that ends with NULL; NULL if it is not set. */
const char *plim_environment_value(char *const *entries, const char *name);
void plim_environment_unset(struct plim_environment *environment, const char *name);

#endif
