/* The verbs. A new one is a file in this folder, a line here and a line in commands[] of cli.c. */
#ifndef PLIM_AUTOTUNE_CLI_COMMAND_H
#define PLIM_AUTOTUNE_CLI_COMMAND_H

#include "cli.h"
#include "options.h"

struct plim_command {
    const char *name, *argument, *summary; /* argument: "SPEC", "FILE" or NULL */
    const char *about;                     /* a few lines for its --help */
    enum plim_verb verb;
    /* The result goes to io->out. PLIM_NOFIT, and what ends a search early, come after a
     * report was written and need no message; for anything else `err` has one. */
    enum plim_status (*run)(const struct plim_request *request, const struct plim_io *io,
                            struct plim_error *err);
};

extern const struct plim_command plim_command_tune, plim_command_plan, plim_command_explain,
    plim_command_devices, plim_command_exec, plim_command_import;

#endif
