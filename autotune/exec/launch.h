/* A running user's program: in a session of its own, without a terminal, its output in a log.
 *
 * A guardian (guardian.h) runs between plimsoll and the program, so that everything it starts is ended with
 * it, even when plimsoll is killed. If the guardian itself is killed, plimsoll finds the program's
 * processes by their session and by a mark in the environment.
 */
#ifndef PLIM_AUTOTUNE_EXEC_LAUNCH_H
#define PLIM_AUTOTUNE_EXEC_LAUNCH_H

#include "autotune/base/status.h"
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* What to start. All of it outlives the launch. */
struct plim_launch_options {
    char *const *arguments, *const *environment; /* end with NULL */
    const char *mark; /* "NAME=VALUE" in the environment that no other program has */
    int log;          /* both streams of output go to this descriptor */
    int hold;         /* a descriptor that is kept open until everything has ended; -1: none */
    char *const *files; /* removed when plimsoll is gone */
    size_t file_count;
};

struct plim_launch {
    pid_t pid, guardian; /* 0: none */
    int channel;         /* to the guardian; -1: none */
    const char *mark;
    bool ended;
    int status; /* from waitpid(), once ended */
};

/* To be called once in a process, before the first start. */
void plim_launch_prepare(void);

/* PLIM_INVALID: there is no such program; PLIM_IO: it cannot be started. */
enum plim_status plim_launch_start(const struct plim_launch_options *options,
                                   struct plim_launch *out,
                                   struct plim_error *err) PLIM_MUST_CHECK;

/* Has the program itself (not all that it started) ended? */
bool plim_launch_poll(struct plim_launch *launch);

/* Is the program waiting for input that will never come? */
bool plim_launch_waits_for_input(const struct plim_launch *launch);

/* Ends the program and everything that it started: first by request, then by SIGKILL. */
void plim_launch_end(struct plim_launch *launch);

#endif
