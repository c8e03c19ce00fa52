/* A user's program, running: in a session of its own, without a terminal, its output in a log.
 *
 * Whatever it starts is found again by a mark in its environment, also what has left the session
 * (daemons), so that nothing is left when it is ended. The caller has to be its subreaper
 * (plim_launch_prepare) for that to include what lost its parent.
 */
#ifndef PLIM_AUTOTUNE_EXEC_LAUNCH_H
#define PLIM_AUTOTUNE_EXEC_LAUNCH_H

#include "autotune/base/status.h"
#include <stdbool.h>
#include <sys/types.h>

struct plim_launch {
    pid_t pid;        /* 0: none */
    int input;        /* our end of its standard input, into which nothing is ever written */
    const char *mark; /* "NAME=VALUE" of its environment that no other program has */
    bool ended;
    int status; /* that of waitpid(), once ended */
};

/* Once a process, before the first start. */
void plim_launch_prepare(void);

/* Both streams of output go to the file `log`, which is made or emptied. PLIM_INVALID: there is no
 * such program; PLIM_IO: it cannot be started. `mark` outlives the launch. */
enum plim_status plim_launch_start(char *const *arguments, char *const *environment,
                                   const char *log, const char *mark, struct plim_launch *out,
                                   struct plim_error *err) PLIM_MUST_CHECK;

/* Has the program itself (not all that it started) ended? */
bool plim_launch_poll(struct plim_launch *launch);

/* Is the program waiting for input that will never come? */
bool plim_launch_waits_for_input(const struct plim_launch *launch);

/* Ends it and everything that it started: first asked to, then killed. */
void plim_launch_end(struct plim_launch *launch);

#endif
