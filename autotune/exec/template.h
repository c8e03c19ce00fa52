/* Placeholders: {batch} in a command line, an environment variable or a file. Only given names are
 * replaced; all other braces are left alone, as in JSON or a shell's ${HOME}.
 */
#ifndef PLIM_AUTOTUNE_EXEC_TEMPLATE_H
#define PLIM_AUTOTUNE_EXEC_TEMPLATE_H

#include "autotune/base/status.h"
#include <stdbool.h>
#include <stddef.h>

struct plim_placeholder {
    const char *name, *value;
};

/* `out` is malloc'd; the caller frees it. PLIM_NOMEM is the only failure. */
enum plim_status plim_template_expand(const char *text, const struct plim_placeholder *words,
                                      size_t count, char **out) PLIM_MUST_CHECK;

bool plim_template_has(const char *text, const char *name);

/* Is this a name for a placeholder: letters, digits, '_', '-'? */
bool plim_template_is_name(const char *text, size_t length);

#endif
