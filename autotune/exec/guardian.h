/* A small process between plimsoll and one program: it starts the program, and ends everything that
 * the program started, whatever becomes of plimsoll.
 *
 * What loses its parent below it becomes its child (it is their subreaper), so that it knows all of
 * them by descent, whatever they do to their session and their environment. It ends them when it is
 * told to, or when plimsoll is gone, which the end of its channel tells, also after a SIGKILL.
 *
 * The other side of it is launch.h.
 */
#ifndef PLIM_AUTOTUNE_EXEC_GUARDIAN_H
#define PLIM_AUTOTUNE_EXEC_GUARDIAN_H

#include <signal.h>
#include <spawn.h>
#include <stddef.h>
#include <sys/types.h>

enum plim_guardian_event {
    PLIM_GUARDIAN_STARTED, /* value: the program's pid */
    PLIM_GUARDIAN_FAILED,  /* value: the errno of starting it; the guardian has ended */
    PLIM_GUARDIAN_ENDED,   /* value: the program's status as of waitpid() */
};

/* From the guardian, over a socket that keeps messages apart. To it, a message of one byte, of any
 * value, says to end everything. */
struct plim_guardian_message {
    int event, value;
};

/* What it needs; filled in before the fork, as little is allowed behind it. */
struct plim_guardian {
    int channel; /* its end of the socket pair */
    int hold;    /* kept open as long as it lives; -1: none */
    int input[2]; /* a pipe whose first end is the program's stdin; the other is kept open */
    int log;     /* the program's output */
    char *const *arguments, *const *environment;
    const posix_spawn_file_actions_t *actions; /* of the program */
    const posix_spawnattr_t *attributes;
    char *const *files; /* removed where plimsoll is gone */
    size_t file_count;
};

/* In a fresh child, with all signals blocked. */
_Noreturn void plim_guardian_run(const struct plim_guardian *guardian);

#endif
