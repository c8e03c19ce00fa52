/* A running program of the user: in its own session, without a terminal, its output in a log.
 *
 * A guardian (guardian.h) runs between plimsoll and the program, so that all processes of the program are ended with
 * it, even if plimsoll is killed. If the guardian itself is killed, plimsoll finds the processes by their session and
 * by a variable in their environment. */
#ifndef PLIM_AUTOTUNE_EXEC_LAUNCH_H
#define PLIM_AUTOTUNE_EXEC_LAUNCH_H

#include "autotune/base/status.h"
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* The program to start. All pointers must outlive the launch. */
struct plim_launch_options {
    char *const *arguments, *const *environment; /* end with NULL */
    const char *mark; /* "NAME=VALUE": an environment variable that only this program has */
    int log;          /* the descriptor to which stdout and stderr go */
    int hold;         /* a descriptor that the guardian keeps open until all processes have ended; -1: none */
    char *const *files; /* removed if plimsoll has ended */
    size_t file_count;
};

struct plim_launch {
    pid_t pid, guardian; /* 0: none */
    int channel;         /* to the guardian; -1: none */
    const char *mark;
    bool ended;
    int status; /* the wait status, once ended */
};

/* Makes the calling process a subreaper, for programs whose guardian is killed. Call it once, before the first
 * start. */
void plim_launch_prepare(void);

/* Starts a program. PLIM_INVALID: there is no such program; PLIM_IO: it cannot be started. */
enum plim_status plim_launch_start(const struct plim_launch_options *options,
                                   struct plim_launch *out,
                                   struct plim_error *err) PLIM_MUST_CHECK;

/* True once the program itself has ended; its descendants may still run. */
bool plim_launch_poll(struct plim_launch *launch);

/* True if the program is blocked reading stdin, on which nothing ever arrives. */
bool plim_launch_waits_for_input(const struct plim_launch *launch);

/* Ends the program and all its descendants, first by SIGTERM, then by SIGKILL, and waits for that. */
void plim_launch_end(struct plim_launch *launch);

#endif
