/* The options, in one table from which the parser, the help of all commands and suggestions are made. */
#ifndef PLIM_AUTOTUNE_CLI_OPTIONS_H
#define PLIM_AUTOTUNE_CLI_OPTIONS_H

#include "request.h"
#include <stdio.h>

/* The commands, in the order of help: enum suffix, name. */
#define PLIM_COMMAND_MAP(X)                                                                        \
    X(TUNE, tune)                                                                                  \
    X(PLAN, plan)                                                                                  \
    X(EXPLAIN, explain)                                                                            \
    X(EXEC, exec)                                                                                  \
    X(RECORD, record)                                                                              \
    X(ENV, env)                                                                                    \
    X(STORE, store)                                                                                \
    X(REPORT, report)                                                                              \
    X(APPLY, apply)                                                                                \
    X(REVERT, revert)                                                                              \
    X(EMIT, emit)                                                                                  \
    X(DEVICES, devices)                                                                            \
    X(MODELS, models)                                                                              \
    X(IMPORT, import)                                                                              \
    X(COMPLETION, completion)                                                                      \
    X(HELP, help)

enum plim_command_id {
#define PLIM_COMMAND_ENUM(id, name) PLIM_COMMAND_##id,
    PLIM_COMMAND_MAP(PLIM_COMMAND_ENUM)
#undef PLIM_COMMAND_ENUM
        PLIM_COMMAND_COUNT
};

/* Parses the arguments of a command, without the program and the command, into `request`; its `subject` is the argument
 * that is not an option. Options are `--option value` or `--option=value`; "--" ends them, and for exec and record the
 * rest is the user's command. env also takes the options of plan, or, if there is a "--", those of exec. PLIM_INVALID:
 * an argument is invalid; the message says what was expected. */
enum plim_status plim_options_parse(int argc, char **argv, enum plim_command_id command,
                                    struct plim_request *request,
                                    struct plim_error *err) PLIM_MUST_CHECK;

/* Prints the options of a command, one or two lines each, within 80 columns. */
void plim_options_help(enum plim_command_id command, FILE *out);

/* Prints `text` from column 22 on, within 80 columns; `column` is the current one. */
void plim_help_print_wrapped(FILE *out, int column, const char *text);

/* Returns the options of a command in the order of its help: the one after `before` (NULL: the first); NULL after the
 * last. */
struct plim_option;
const struct plim_option *plim_options_next(enum plim_command_id command,
                                            const struct plim_option *before);

/* Writes the help text of an option: the values that it takes, then its description. */
void plim_options_describe(const struct plim_option *option, char *out, size_t size);

#endif
