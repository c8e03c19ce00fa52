/* A user's own program to be tried: its command line, environment and files with
 * placeholders in them.
 *
 *     {batch} {accumulation}   of the setting that is tried
 *     {world}    the number of GPUs
 *     {NAME}     the value along an axis: {seq}, {precision}, and the user's own axes
 *     {dir}      a folder for this trial alone, removed with it
 *     {trial}    its number, from 1
 */
#ifndef PLIM_AUTOTUNE_EXEC_USER_PROGRAM_H
#define PLIM_AUTOTUNE_EXEC_USER_PROGRAM_H

#include "autotune/base/array.h"
#include "autotune/search/setting.h"

enum { PLIM_PROGRAM_FILES = 16, PLIM_PROGRAM_VARIABLES = 64, PLIM_PROGRAM_GPUS = 16, PLIM_PROGRAM_ASSUMES = 16 };

/* Texts belong to the caller. */
struct plim_program_file {
    const char *template_path; /* read */
    const char *path;          /* written for each trial, placeholders in it too */
};

struct plim_program {
    char *const *command; /* ends with NULL */
    size_t variable_count;
    const char *variables[PLIM_PROGRAM_VARIABLES]; /* NAME=VALUE */
    size_t file_count;
    struct plim_program_file files[PLIM_PROGRAM_FILES];
    const struct plim_axes *axes; /* what its settings vary */
    int64_t world;
};

/* Its name in reports: the script of a Python command, else the command itself; without its folder. */
const char *plim_program_name(const struct plim_program *program);

/* Is {name} anywhere in the command, the environment or a file? PLIM_IO: a template cannot be
 * read. */
enum plim_status plim_program_uses(const struct plim_program *program, const char *name, bool *uses,
                                   struct plim_error *err) PLIM_MUST_CHECK;

/* One trial's command line and environment, with everything filled in. */
struct plim_program_instance {
    char **arguments;           /* ends with NULL */
    char **environment;         /* ours and the program's; ends with NULL */
    PLIM_ARRAY(char *) written; /* paths of the files */
};

/* A change to the environment of every trial, whatever the program's own variables are. */
struct plim_program_variable {
    enum {
        PLIM_VARIABLE_SET,
        PLIM_VARIABLE_PUT_BEFORE, /* put before the colon-separated list in the variable */
        PLIM_VARIABLE_TAKEN_OUT
    } change;
    const char *name, *value;
};

/* Fills in a setting, and writes the files. `folder` is {dir}; `more` overrides all other variables. PLIM_IO: a file
 * cannot be read or written. Finish the instance in any case. */
enum plim_status plim_program_fill(const struct plim_program *program,
                                   const struct plim_setting *setting, const char *folder,
                                   int64_t trial, const struct plim_program_variable *more, size_t more_count,
                                   struct plim_program_instance *out,
                                   struct plim_error *err) PLIM_MUST_CHECK;

/* Removes the files that were written. NULL and zeroed are fine. */
void plim_program_instance_finish(struct plim_program_instance *instance);

/* The command line as a shell would take it. `out` is malloc'd. */
enum plim_status plim_program_shell_line(const struct plim_program_instance *instance,
                                         char **out) PLIM_MUST_CHECK;

#endif
