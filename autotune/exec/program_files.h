/* The files that make up a program: the scripts that its command names, and the Python packages of its interpreter. */
#ifndef PLIM_AUTOTUNE_EXEC_PROGRAM_FILES_H
#define PLIM_AUTOTUNE_EXEC_PROGRAM_FILES_H

#include "autotune/base/sha256.h"
#include "autotune/base/status.h"
#include <limits.h>
#include <stdbool.h>

/* Hashes a file (SHA-256). Returns false if it cannot be read, is not a regular file, or is larger than 4 MiB. */
bool plim_program_hash_file(const char *path, char out[PLIM_SHA256_TEXT]) PLIM_MUST_CHECK;

/* True if a word names a script or configuration file ("train.py", "base.yaml") by its ending; false for data and
 * logs. */
bool plim_program_is_script(const char *word);

/* True if the ending of a name, from its last dot on, is in `endings`, a list that ends with NULL. */
bool plim_program_has_ending(const char *name, const char *const *endings);

/* Finds the file of a command as the shell does: its own path, or on PATH. */
bool plim_program_find(const char *command, char out[PATH_MAX]) PLIM_MUST_CHECK;

/* Stores the PREFIX of a path PREFIX/bin/python, under which the packages are; false if the path has no two slashes. */
bool plim_program_prefix(const char *path, char out[PATH_MAX]) PLIM_MUST_CHECK;

/* Returns the file that a word of a command names: FILE of "--config=FILE", otherwise the word. */
const char *plim_program_path(const char *word);

/* Calls `tell` with a line such as "torch 2.11.0" for each installed package that allocates or chooses kernels, from
 * the packages of the command's interpreter (PREFIX/bin/python: PREFIX/lib/python3*), and with "train.py sha256 HEX"
 * for each script of the command. Stops if `tell` returns anything but PLIM_OK, and returns that. */
typedef enum plim_status plim_program_visit(void *user, const char *text);
enum plim_status plim_program_made_with(char *const *command, plim_program_visit *tell,
                                        void *user) PLIM_MUST_CHECK;

/* True if such a line names a script that has changed since or is missing; its name is stored in `path`. */
bool plim_program_changed(const char *text, char path[PATH_MAX]) PLIM_MUST_CHECK;

#endif
