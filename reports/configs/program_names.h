/* Names of the programs that a launch script runs, and of the imports and calls of a Python program. They tell
 * which trainer reads the arguments, where those have the names of Trainer's.
 */
#ifndef PLIM_REPORTS_CONFIGS_PROGRAM_NAMES_H
#define PLIM_REPORTS_CONFIGS_PROGRAM_NAMES_H

#include "config_document.h"

struct plim_config_program {
    size_t begin, length; /* of its name in the document's text; 0: there is none */
};

/* The first program of this name. In a launch script "sft.py" is a file's whole name, "dpo" a part of one
 * ("run_dpo.py"), "trl sft" words of a command; in a Python program "unsloth" is an import, "f(" a
 * call. */
struct plim_config_program plim_config_program_named(const struct plim_config_document *document,
                                                     const char *name);

#endif
