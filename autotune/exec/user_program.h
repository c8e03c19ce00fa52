/* A user's program: its command line, environment variables and files, with placeholders that each trial fills in.
 *
 *     {batch} {accumulation}   of the trial's setting
 *     {world}    the number of GPUs
 *     {NAME}     the value along an axis: {seq}, {precision}, and the user's own axes
 *     {dir}      a folder of the trial, removed after it
 *     {trial}    the number of the trial, from 1 */
#ifndef PLIM_AUTOTUNE_EXEC_USER_PROGRAM_H
#define PLIM_AUTOTUNE_EXEC_USER_PROGRAM_H

#include "autotune/base/array.h"
#include "autotune/search/setting.h"

enum { PLIM_PROGRAM_FILES = 16, PLIM_PROGRAM_VARIABLES = 64, PLIM_PROGRAM_GPUS = 16, PLIM_PROGRAM_ASSUMES = 16 };

/* The caller owns all strings of the next two structs. */
struct plim_program_file {
    const char *template_path; /* the file that is read */
    const char *path;          /* the file written for each trial; may have placeholders in its name */
};

struct plim_program {
    char *const *command; /* ends with NULL */
    size_t variable_count;
    const char *variables[PLIM_PROGRAM_VARIABLES]; /* NAME=VALUE */
    size_t file_count;
    struct plim_program_file files[PLIM_PROGRAM_FILES];
    const struct plim_axes *axes;
    int64_t world; /* number of GPUs */
};

/* Returns its name for reports: the first Python script of the command, otherwise the command; without its folder. */
const char *plim_program_name(const struct plim_program *program);

/* Sets *uses if {name} occurs in the command, the environment or a file. PLIM_IO: a template cannot be read. */
enum plim_status plim_program_uses(const struct plim_program *program, const char *name, bool *uses,
                                   struct plim_error *err) PLIM_MUST_CHECK;

/* The command line and environment of one trial, without placeholders. Owns all strings. */
struct plim_program_instance {
    char **arguments;           /* ends with NULL */
    char **environment;         /* plimsoll's own environment with the program's variables; ends with NULL */
    PLIM_ARRAY(char *) written; /* paths of the written files */
};

/* A change to the environment that overrides the program's variables. */
struct plim_program_variable {
    enum {
        PLIM_VARIABLE_SET,
        PLIM_VARIABLE_PUT_BEFORE, /* prepend to the colon-separated list in the variable */
        PLIM_VARIABLE_TAKEN_OUT
    } change;
    const char *name, *value;
};

/* Fills in a setting and writes the files. `folder` is {dir}; `more` is applied after all other variables. PLIM_IO: a
 * file cannot be read or written. The caller finishes the instance in any case. */
enum plim_status plim_program_fill(const struct plim_program *program,
                                   const struct plim_setting *setting, const char *folder,
                                   int64_t trial, const struct plim_program_variable *more, size_t more_count,
                                   struct plim_program_instance *out,
                                   struct plim_error *err) PLIM_MUST_CHECK;

/* Removes the written files and frees the strings. NULL or a zeroed instance is allowed. */
void plim_program_instance_finish(struct plim_program_instance *instance);

/* Writes the command line quoted for a shell. The caller frees *out. */
enum plim_status plim_program_shell_line(const struct plim_program_instance *instance,
                                         char **out) PLIM_MUST_CHECK;

#endif
