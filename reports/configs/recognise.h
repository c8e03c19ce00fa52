/* Recognises the framework of a set of places: the first row of the table whose marks are present. */
#ifndef PLIM_REPORTS_CONFIGS_RECOGNISE_H
#define PLIM_REPORTS_CONFIGS_RECOGNISE_H

#include "config_places.h"
#include "framework.h"

/* `name`: given by the user; NULL: recognised by the marks. *out is NULL if no row's marks are present. PLIM_INVALID if
 * no framework has that name. */
enum plim_status plim_config_recognise(const struct plim_config_places *places, const char *name,
                                       const struct plim_config_framework **out,
                                       struct plim_error *err) PLIM_MUST_CHECK;

#endif
