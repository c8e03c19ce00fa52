/* The command line: command, options, exit code. */
#ifndef PLIM_AUTOTUNE_CLI_CLI_H
#define PLIM_AUTOTUNE_CLI_CLI_H

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>

/* The environment of a command. */
struct plim_io {
    const char *version;                    /* "0.1.0", with the commit if known */
    bool is_dumb;                           /* the terminal supports neither escape sequences nor "\r" */
    FILE *out, *err;                        /* for the result; for everything else */
    bool out_is_terminal, err_is_terminal;
    const volatile sig_atomic_t *signalled; /* not 0 once SIGINT, SIGTERM or SIGHUP has arrived */
};

/* Runs the program and returns its exit code; see PLIM_EXIT_MAP in exit_code.h, which --help prints. */
int plim_cli_run(int argc, char **argv, const struct plim_io *io);

#endif
