/* Reading /proc, to start and end programs.
 *
 * Everything here may be called in a child of a process with several threads: no memory is allocated
 * and no lock taken.
 */
#ifndef PLIM_AUTOTUNE_EXEC_PROCESSES_H
#define PLIM_AUTOTUNE_EXEC_PROCESSES_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Reads a file of /proc/PID; returns its length, 0 when it cannot be read. Always terminated. */
size_t plim_processes_file(pid_t pid, const char *name, char *out, size_t size);

/* A set of processes. */
struct plim_processes {
    pid_t ancestor;   /* all its descendants; 0: those in the session or with the mark */
    pid_t session;
    const char *mark; /* "NAME=VALUE" in their environment */
};

/* Signals them all, and reaps those that are dead children of the caller, except `session`'s
 * leader. Returns how many are alive. */
int plim_processes_signal(const struct plim_processes *which, int number);

/* Calls `visit` with each, including dead ones that were not reaped. */
void plim_processes_each(const struct plim_processes *which, void (*visit)(void *user, pid_t pid), void *user);

/* Prepares a child that is to outlive its parent: a session of its own, all signals blocked, another
 * name (at most 15 bytes), standard streams on /dev/null, and no open file except those in `keep`. */
void plim_processes_detach(const char *name, const int *keep, size_t count);

#endif
