/* The environment of a program that is to be started: ours, with changes. */
#ifndef PLIM_BASE_ENVIRONMENT_H
#define PLIM_BASE_ENVIRONMENT_H

#include "array.h"

struct plim_environment {
    PLIM_ARRAY(char *) entries; /* "NAME=VALUE", each malloc'd; `items` ends with NULL, which is not counted */
};

/* Copies this process's environment into the zeroed `out`; finish it in any case. All functions fail only with
 * PLIM_NOMEM. */
enum plim_status plim_environment_copy(struct plim_environment *out) PLIM_MUST_CHECK;
void plim_environment_finish(struct plim_environment *environment);

/* Takes over `entry`, a malloc'd "NAME=VALUE"; NULL: PLIM_NOMEM. */
enum plim_status plim_environment_set_entry(struct plim_environment *environment, char *entry) PLIM_MUST_CHECK;
enum plim_status plim_environment_set(struct plim_environment *environment, const char *name,
                                      const char *value) PLIM_MUST_CHECK;

/* Puts `value` before the colon-separated list in the variable. */
enum plim_status plim_environment_put_before(struct plim_environment *environment, const char *name,
                                             const char *value) PLIM_MUST_CHECK;
/* The value of a variable in a list that ends with NULL; NULL: it is not set. */
const char *plim_environment_value(char *const *entries, const char *name);
void plim_environment_take_out(struct plim_environment *environment, const char *name);

#endif
