/* A worker process: this executable again, at the other end of a socket.
 *
 * The parent never calls CUDA, so that a broken context, a crash or a hang only affects another process.
 * That process is the leader of its own group (Ctrl-C at the terminal does not reach it) and dies
 * with the thread that started it (PR_SET_PDEATHSIG), which therefore has to live as long as the
 * worker is wanted.
 */
#ifndef PLIM_AUTOTUNE_RUN_PROCESS_H
#define PLIM_AUTOTUNE_RUN_PROCESS_H

#include "autotune/base/status.h"
#include <stdbool.h>
#include <sys/types.h>

/* The descriptors of a worker's socket, and of the file with results of libraries
 * (plim_device_remember()); its command line is "--worker PARENT_PID". */
enum { PLIM_WORKER_FD = 3, PLIM_WORKER_MEMO_FD = 4 };

struct plim_process {
    pid_t pid; /* 0: none */
    int fd;    /* our end; -1: none */
};

#define PLIM_PROCESS_INIT                                                                          \
    {                                                                                              \
        .fd = -1                                                                                   \
    }

/* An environment variable for the worker; value NULL: as in this process. */
struct plim_variable {
    const char *name, *value;
};

/* Starts `program` as a worker: stdin and stdout are /dev/null, stderr is ours; besides these it only
 * inherits the socket and the memo (-1: none). PLIM_IO when it cannot be started. */
enum plim_status plim_process_start(const char *program, const struct plim_variable *variables,
                                    size_t count, int memo_fd, struct plim_process *out,
                                    struct plim_error *err) PLIM_MUST_CHECK;

/* Creates an empty file in memory for workers that follow one another; -1: not possible. The
 * caller closes it. */
int plim_process_make_memo(void);

/* Waits at most `seconds` for the worker to end. True when it has; then `status` is that of
 * waitpid(), or PLIM_EXIT_UNSEEN (base/exit_status.h) if it was reaped elsewhere, and `process` may be
 * started again. */
bool plim_process_wait(struct plim_process *process, double seconds, int *status);

/* Sends SIGKILL to the worker and everything that it started; wait for it afterwards. */
void plim_process_kill(const struct plim_process *process);

/* Gives up a killed worker that does not end (one that waits for a driver may never). */
void plim_process_abandon(struct plim_process *process);

/* The first call in the worker: makes it die with the parent, leave no core, inherit no descriptor, and
 * handle signals by default. False when the parent is gone already. */
bool plim_process_become_worker(pid_t parent);

#endif
