/* Resolution of names to which values of a Python file refer. */
#ifndef PLIM_REPORTS_CONFIGS_PYTHON_NAMES_H
#define PLIM_REPORTS_CONFIGS_PYTHON_NAMES_H

#include "config_places.h"

/* True if `name`, to which the value at `from` refers, is set at `place`: a variable of the file, or of a function or
 * class around the value; or, for "args.name", where `args` is the parsed command line, the default of an option or of
 * a dataclass field. Sets `depth`, 0 for the file; of several places the deepest applies. */
bool plim_config_python_names(const struct plim_config_place *from, const char *name,
                              const struct plim_config_place *place, int *depth);

#endif
