/* Looking into /proc, for what starts programs and ends them.
 *
 * Everything here may be called in a child of a process with several threads: no memory is allocated
 * and no lock taken.
 */
#ifndef PLIM_AUTOTUNE_EXEC_PROCESSES_H
#define PLIM_AUTOTUNE_EXEC_PROCESSES_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* A file of /proc/PID; the length, 0 when it cannot be read. Always terminated. */
size_t plim_processes_file(pid_t pid, const char *name, char *out, size_t size);

/* Which processes are meant. */
struct plim_processes {
    pid_t ancestor;   /* all that descend from it; 0: those of the session and with the mark */
    pid_t session;
    const char *mark; /* "NAME=VALUE" in their environment */
};

/* Signals them all, and reaps those that are dead children of the caller, but not `session`'s
 * leader. Returns how many there are that live. */
int plim_processes_signal(const struct plim_processes *which, int number);

/* Calls `visit` with each, dead ones that nobody has asked for among them. */
void plim_processes_each(const struct plim_processes *which, void (*visit)(void *user, pid_t pid), void *user);

/* For a child that is to outlive its parent: a session of its own, all signals blocked, another
 * name (at most 15 bytes), standard streams on /dev/null, and no open file but those of `keep`. */
void plim_processes_detach(const char *name, const int *keep, size_t count);

#endif
