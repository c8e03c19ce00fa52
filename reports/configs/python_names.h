/* What a name means that a value of a Python file refers to. */
#ifndef PLIM_REPORTS_CONFIGS_PYTHON_NAMES_H
#define PLIM_REPORTS_CONFIGS_PYTHON_NAMES_H

#include "config_places.h"

/* Is `name`, which the value at `from` refers to, what is set at `place`: a variable of the file, or of a function or
 * class around the value; of "args.name", where what the command line was parsed to is called `args`, the default of
 * an option or of a dataclass's field? Sets `depth`, by which the innermost of several counts: 0 is the file. */
bool plim_config_python_names(const struct plim_config_place *from, const char *name,
                              const struct plim_config_place *place, int *depth);

#endif
