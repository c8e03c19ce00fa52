/* Placeholders such as {batch} in a command line, an environment variable or a file. Only known names are replaced;
 * other braces remain, as in JSON or a shell's ${HOME}. */
#ifndef PLIM_AUTOTUNE_EXEC_TEMPLATE_H
#define PLIM_AUTOTUNE_EXEC_TEMPLATE_H

#include "autotune/base/status.h"
#include <stdbool.h>
#include <stddef.h>

struct plim_placeholder {
    const char *name, *value;
};

/* Replaces the placeholders in `text`. The caller frees *out. PLIM_NOMEM is the only error. */
enum plim_status plim_template_expand(const char *text, const struct plim_placeholder *words,
                                      size_t count, char **out) PLIM_MUST_CHECK;

/* True if {name} occurs in `text`. */
bool plim_template_has(const char *text, const char *name);

/* True if `text` starts with `length` characters that may form a name: letters, digits, '_', '-'. */
bool plim_template_is_name(const char *text, size_t length);

#endif
