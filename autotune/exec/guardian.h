/* A small process between plimsoll and one program: it starts the program, and ends everything that
 * the program started, whatever happens to plimsoll.
 *
 * Descendants that lose their parent become its children (it is their subreaper), so that it finds all of
 * them by descent, whatever they do to their session and their environment. It ends them when it is
 * told to, or when plimsoll is gone, which closes its channel, even after a SIGKILL.
 *
 * launch.h is the other end of the channel.
 */
#ifndef PLIM_AUTOTUNE_EXEC_GUARDIAN_H
#define PLIM_AUTOTUNE_EXEC_GUARDIAN_H

#include <signal.h>
#include <spawn.h>
#include <stddef.h>
#include <sys/types.h>

enum plim_guardian_event {
    PLIM_GUARDIAN_STARTED, /* value: the program's pid */
    PLIM_GUARDIAN_FAILED,  /* value: errno; the program could not be started, and the guardian has ended */
    PLIM_GUARDIAN_ENDED,   /* value: the program's status from waitpid() */
};

/* A message from the guardian, over a socket that preserves message boundaries. A message of one byte, of any
 * value, tells the guardian to end everything. */
struct plim_guardian_message {
    int event, value;
};

/* The guardian's arguments; filled in before the fork, because little is allowed after it. */
struct plim_guardian {
    int channel; /* its end of the socket pair */
    int hold;    /* kept open as long as it lives; -1: none */
    int input[2]; /* a pipe: the first end is the program's stdin; the other is kept open */
    int log;     /* the program's output */
    char *const *arguments, *const *environment;
    const posix_spawn_file_actions_t *actions; /* for starting the program */
    const posix_spawnattr_t *attributes;
    char *const *files; /* removed when plimsoll is gone */
    size_t file_count;
};

/* Call it in a fresh child, with all signals blocked. */
_Noreturn void plim_guardian_run(const struct plim_guardian *guardian);

#endif
