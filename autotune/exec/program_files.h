/* The files that make up a program: the scripts that its command names, and the packages of its
 * interpreter. */
#ifndef PLIM_AUTOTUNE_EXEC_PROGRAM_FILES_H
#define PLIM_AUTOTUNE_EXEC_PROGRAM_FILES_H

#include "autotune/base/sha256.h"
#include "autotune/base/status.h"
#include <limits.h>
#include <stdbool.h>

/* The hash of a regular file; false where it is not one, or larger than scripts are (4 MiB). */
bool plim_program_hash_file(const char *path, char out[PLIM_SHA256_TEXT]) PLIM_MUST_CHECK;

/* Does a word name a file that determines what is run ("train.py", "base.yaml")? Data and logs do not. */
bool plim_program_is_script(const char *word);

/* Is the end of a name, from its last dot on, one of `endings`? NULL ends the list. */
bool plim_program_has_ending(const char *name, const char *const *endings);

/* Where the shell would find a command. */
bool plim_program_find(const char *command, char out[PATH_MAX]) PLIM_MUST_CHECK;

/* The PREFIX of a command's path PREFIX/bin/python, in which its packages are; false: it has none. */
bool plim_program_prefix(const char *path, char out[PATH_MAX]) PLIM_MUST_CHECK;

/* The file that a word of a command names; also for words like "--config=FILE". */
const char *plim_program_path(const char *word);

/* Calls `tell` with "torch 2.11.0" for each package that allocates or decides what is launched, from the packages of
 * the command's interpreter (PREFIX/bin/python: PREFIX/lib/python3*), and with "train.py sha256 HEX" for each
 * script of the command. Stops and returns what `tell` returns if that is not PLIM_OK. */
typedef enum plim_status plim_program_tell(void *user, const char *text);
enum plim_status plim_program_made_with(char *const *command, plim_program_tell *tell,
                                        void *user) PLIM_MUST_CHECK;

/* Does such a text name a script that has changed or is missing now? `path` is then its name. */
bool plim_program_changed(const char *text, char path[PATH_MAX]) PLIM_MUST_CHECK;

#endif
