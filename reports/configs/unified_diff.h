/* The change of a file as a unified diff. */
#ifndef PLIM_REPORTS_CONFIGS_UNIFIED_DIFF_H
#define PLIM_REPORTS_CONFIGS_UNIFIED_DIFF_H

#include <stddef.h>
#include <stdio.h>

/* Writes three lines of context around every change, as `patch` expects; nothing if the texts are equal. Lines are
 * compared in order, because only few of them differ. */
void plim_config_diff(const char *path, const char *before, size_t before_length, const char *after,
                      size_t after_length, FILE *out);

#endif
