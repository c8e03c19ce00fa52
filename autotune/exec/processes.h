/* Finding and signalling processes by means of /proc.
 *
 * All functions may be called in a forked child of a process with several threads: they allocate no memory and take no
 * locks. */
#ifndef PLIM_AUTOTUNE_EXEC_PROCESSES_H
#define PLIM_AUTOTUNE_EXEC_PROCESSES_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Reads a file of /proc/PID as a string; at most size - 1 bytes. Returns its length, 0 if it cannot be read. */
size_t plim_processes_file(pid_t pid, const char *name, char *out, size_t size);

/* A set of processes, without the caller. */
struct plim_processes {
    pid_t ancestor;   /* all descendants of this process; 0: the processes in `session` or with `mark` */
    pid_t session;
    const char *mark; /* "NAME=VALUE": a variable in their environment */
};

/* Sends signal `number` to all (0: none), and reaps those that are dead children of the caller, except the leader of
 * `session`. Returns how many were not reaped. */
int plim_processes_signal(const struct plim_processes *which, int number);

/* Calls `visit` with each process, including dead ones that were not reaped. */
void plim_processes_each(const struct plim_processes *which, void (*visit)(void *user, pid_t pid), void *user);

/* Prepares a child that may outlive its parent: its own session, all signals blocked, another name (at most 15 bytes),
 * standard streams on /dev/null, and no other open files than those in `keep`. */
void plim_processes_detach(const char *name, const int *keep, size_t count);

#endif
