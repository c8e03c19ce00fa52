/* The guardian: a small process between plimsoll and one program. It starts the program, and ends it with all its
 * descendants, whatever happens to plimsoll.
 *
 * The guardian is a subreaper: descendants that lose their parent become its children, so it finds all of them by
 * descent, even if they change their session or environment. It ends them when told to, or when plimsoll has ended,
 * even by SIGKILL, which closes the channel between them.
 *
 * launch.h is the other end of the channel. */
#ifndef PLIM_AUTOTUNE_EXEC_GUARDIAN_H
#define PLIM_AUTOTUNE_EXEC_GUARDIAN_H

#include <signal.h>
#include <spawn.h>
#include <stddef.h>
#include <sys/types.h>

enum plim_guardian_event {
    PLIM_GUARDIAN_STARTED, /* value: the program's pid */
    PLIM_GUARDIAN_FAILED,  /* value: errno; the program could not be started, and the guardian has ended */
    PLIM_GUARDIAN_ENDED,   /* value: the program's wait status */
};

/* A message from the guardian, over a socket that preserves message boundaries. In the other direction, a message of
 * one byte of any value tells the guardian to end all processes. */
struct plim_guardian_message {
    int event, value;
};

/* The guardian's arguments, prepared before fork(): a child of a process with threads may not allocate. */
struct plim_guardian {
    int channel; /* its end of the socket pair */
    int hold;    /* a descriptor that is kept open while the guardian lives; -1: none */
    int input[2]; /* a pipe: the read end is the program's stdin, the write end is kept open */
    int log;     /* the program's output */
    char *const *arguments, *const *environment;
    const posix_spawn_file_actions_t *actions; /* for starting the program */
    const posix_spawnattr_t *attributes;
    char *const *files; /* removed if plimsoll has ended */
    size_t file_count;
};

/* Runs the guardian. To be called in a forked child with all signals blocked. */
_Noreturn void plim_guardian_run(const struct plim_guardian *guardian);

#endif
