#define _GNU_SOURCE /* memfd_create */
#include "process.h"
#include "autotune/base/clock.h"
#include "autotune/base/environment.h"
#include "autotune/base/exit_status.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const int worker_signals[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGQUIT};
enum { WORKER_SIGNALS = sizeof(worker_signals) / sizeof(worker_signals[0]) };

/* --- starting --------------------------------------------------------------------------------- */

static int prepare(posix_spawn_file_actions_t *actions, posix_spawnattr_t *attributes, int fd,
                   int memo_fd)
{
    sigset_t none, reset;
    sigemptyset(&none);
    sigemptyset(&reset);
    for (int i = 0; i < WORKER_SIGNALS; i++) sigaddset(&reset, worker_signals[i]);
    int failed = posix_spawn_file_actions_addopen(actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    if (!failed)
        failed = posix_spawn_file_actions_addopen(actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    if (!failed) failed = posix_spawn_file_actions_adddup2(actions, fd, PLIM_WORKER_FD);
    if (!failed && memo_fd >= 0)
        failed = posix_spawn_file_actions_adddup2(actions, memo_fd, PLIM_WORKER_MEMO_FD);
    if (!failed)
        failed = posix_spawnattr_setflags(
            attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    if (!failed) failed = posix_spawnattr_setpgroup(attributes, 0);
    if (!failed) failed = posix_spawnattr_setsigmask(attributes, &none);
    if (!failed) failed = posix_spawnattr_setsigdefault(attributes, &reset);
    return failed;
}

/* Calls posix_spawn(). Returns 0 or an errno. */
static int spawn(const char *program, char **environment, int fd, int memo_fd, pid_t *pid)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    char parent[24], name[] = "plimsoll", verb[] = "--worker";
    char *argv[] = {name, verb, parent, NULL};
    snprintf(parent, sizeof(parent), "%ld", (long)getpid());
    int failed = posix_spawn_file_actions_init(&actions);
    if (failed) return failed;
    failed = posix_spawnattr_init(&attributes);
    if (!failed) {
        failed = prepare(&actions, &attributes, fd, memo_fd);
        if (!failed) failed = posix_spawn(pid, program, &actions, &attributes, argv, environment);
        posix_spawnattr_destroy(&attributes);
    }
    posix_spawn_file_actions_destroy(&actions);
    return failed;
}

enum plim_status plim_process_start(const char *program, const struct plim_variable *variables,
                                    size_t count, int memo_fd, struct plim_process *out,
                                    struct plim_error *err)
{
    enum plim_status st = PLIM_OK;
    struct plim_environment environment = {0};
    int ends[2] = {-1, -1}, failed;
    *out = (struct plim_process)PLIM_PROCESS_INIT;
    PLIM_TRY(plim_environment_copy(&environment));
    for (size_t i = 0; i < count; i++)
        if (variables[i].value) PLIM_TRY(plim_environment_set(&environment, variables[i].name, variables[i].value));
    failed = socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) ? errno : 0;
    if (!failed) failed = spawn(program, environment.entries.items, ends[1], memo_fd, &out->pid);
    if (failed) {
        out->pid = 0;
        st = plim_fail(err, PLIM_IO, "a worker process cannot be started: %s", strerror(failed));
        goto out;
    }
    out->fd = ends[0];
    ends[0] = -1;
out:
    for (int i = 0; i < 2; i++)
        if (ends[i] >= 0) close(ends[i]);
    plim_environment_finish(&environment);
    return st == PLIM_NOMEM ? plim_no_memory(err) : st;
}

/* The descriptor is moved above those of a worker, which dup2() sets one after the other and might overwrite it. */
int plim_process_create_memo(void)
{
    enum { FIRST = 10 };
    int fd = memfd_create("plimsoll-memo", MFD_CLOEXEC);
    int moved = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, FIRST);
    if (fd >= 0) close(fd);
    return moved;
}

/* --- ending ----------------------------------------------------------------------------------- */

void plim_process_abandon(struct plim_process *process)
{
    if (process->fd >= 0) close(process->fd);
    *process = (struct plim_process)PLIM_PROCESS_INIT;
}

bool plim_process_wait(struct plim_process *process, double seconds, int *status)
{
    double end = plim_clock_seconds() + seconds;
    *status = 0;
    for (long nap = 100000; process->pid > 0; nap = nap < 10000000 ? nap * 2 : nap) {
        pid_t done = waitpid(process->pid, status, WNOHANG);
        if (done < 0 && errno != EINTR) *status = PLIM_EXIT_UNSEEN;
        if (done == process->pid || (done < 0 && errno != EINTR)) break;
        if (plim_clock_seconds() >= end) return false;
        nanosleep(&(struct timespec){0, nap}, NULL);
    }
    plim_process_abandon(process);
    return true;
}

void plim_process_kill(const struct plim_process *process)
{
    if (process->pid > 0 && kill(-process->pid, SIGKILL)) kill(process->pid, SIGKILL);
}

/* --- in the worker ---------------------------------------------------------------------------- */

static void close_inherited(void)
{
    DIR *folder = opendir("/proc/self/fd");
    if (!folder) return;
    for (struct dirent *entry; (entry = readdir(folder));) {
        int fd = atoi(entry->d_name);
        if (fd > PLIM_WORKER_MEMO_FD && fd != dirfd(folder)) close(fd);
    }
    closedir(folder);
}

bool plim_process_become_worker(pid_t parent)
{
    for (int i = 0; i < WORKER_SIGNALS; i++) signal(worker_signals[i], SIG_DFL);
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    close_inherited();
    return !prctl(PR_SET_PDEATHSIG, SIGKILL) && getppid() == parent;
}
