/* Names of the programs that a launch script runs, and of the imports and calls of a Python program. They identify the
 * trainer that reads the arguments if those have the names of Trainer's. */
#ifndef PLIM_REPORTS_CONFIGS_PROGRAM_NAMES_H
#define PLIM_REPORTS_CONFIGS_PROGRAM_NAMES_H

#include "config_document.h"

struct plim_config_program {
    size_t begin, length; /* of its name in the document's text; length 0: none */
};

/* Finds the first program of this name. In a launch script "sft.py" is a complete file name, "dpo" a part of one
 * ("run_dpo.py"), "trl sft" words of a command; in a Python program "unsloth" is an import, "f(" a call. */
struct plim_config_program plim_config_program_named(const struct plim_config_document *document,
                                                     const char *name);

#endif
