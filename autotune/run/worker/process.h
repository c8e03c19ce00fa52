/* Starting and ending worker processes. A worker is the same executable, at the other end of a socket.
 *
 * The parent never calls CUDA, so a broken context, a crash or a hang only affects the worker. The worker leads its own
 * process group (Ctrl-C at the terminal does not reach it) and dies with the thread that started it (PR_SET_PDEATHSIG),
 * which therefore must live as long as the worker. */
#ifndef PLIM_AUTOTUNE_RUN_PROCESS_H
#define PLIM_AUTOTUNE_RUN_PROCESS_H

#include "autotune/base/status.h"
#include <stdbool.h>
#include <sys/types.h>

/* A worker's descriptors of its socket and of the memo, a file in which libraries keep results
 * (plim_device_remember()). Its command line is "--worker PARENT_PID". */
enum { PLIM_WORKER_FD = 3, PLIM_WORKER_MEMO_FD = 4 };

struct plim_process {
    pid_t pid; /* 0: none */
    int fd;    /* the parent's end of the socket; -1: none */
};

#define PLIM_PROCESS_INIT                                                                          \
    {                                                                                              \
        .fd = -1                                                                                   \
    }

/* An environment variable for the worker; with value NULL it is inherited. */
struct plim_variable {
    const char *name, *value;
};

/* Starts `program` as a worker: stdin and stdout are /dev/null, stderr is inherited, as are the socket and the memo
 * (-1: none). PLIM_IO if it cannot be started. */
enum plim_status plim_process_start(const char *program, const struct plim_variable *variables,
                                    size_t count, int memo_fd, struct plim_process *out,
                                    struct plim_error *err) PLIM_MUST_CHECK;

/* Creates the memo, an empty file in memory that successive workers share. Returns a descriptor that the caller closes,
 * or -1 on failure. */
int plim_process_create_memo(void);

/* Waits at most `seconds` for the worker to end. Returns true if it has; then *status is its wait status, or
 * PLIM_EXIT_UNSEEN (base/exit_status.h) if it was reaped elsewhere, and `process` may be started again. */
bool plim_process_wait(struct plim_process *process, double seconds, int *status);

/* Sends SIGKILL to the worker's process group. The caller still has to wait for the worker. */
void plim_process_kill(const struct plim_process *process);

/* Forgets a killed worker that does not end, as a process blocked in a driver may not. */
void plim_process_abandon(struct plim_process *process);

/* The first call in a worker: makes it die with its parent, write no core dump, close all other descriptors, and handle
 * signals by default. Returns false if the parent has already ended. */
bool plim_process_become_worker(pid_t parent);

#endif
