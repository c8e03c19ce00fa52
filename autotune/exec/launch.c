#define _GNU_SOURCE /* POSIX_SPAWN_SETSID, pipe2 */
#include "launch.h"
#include "autotune/base/array.h"
#include "autotune/base/clock.h"
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const double GRACE_SECONDS = 1, KILL_SECONDS = 10;

void plim_launch_prepare(void)
{
    prctl(PR_SET_CHILD_SUBREAPER, 1);
}

/* --- starting --------------------------------------------------------------------------------- */

static int prepare(posix_spawn_file_actions_t *actions, posix_spawnattr_t *attributes, int input,
                   const char *log)
{
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    int failed = posix_spawn_file_actions_adddup2(actions, input, STDIN_FILENO);
    if (!failed)
        failed = posix_spawn_file_actions_addopen(actions, STDOUT_FILENO, log,
                                                  O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0600);
    if (!failed) failed = posix_spawn_file_actions_adddup2(actions, STDOUT_FILENO, STDERR_FILENO);
    if (!failed)
        failed = posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK |
                                                          POSIX_SPAWN_SETSIGDEF);
    if (!failed) failed = posix_spawnattr_setsigmask(attributes, &none);
    if (!failed) failed = posix_spawnattr_setsigdefault(attributes, &all);
    return failed;
}

static int spawn(char *const *arguments, char *const *environment, int input, const char *log,
                 pid_t *pid)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    int failed = posix_spawn_file_actions_init(&actions);
    if (failed) return failed;
    failed = posix_spawnattr_init(&attributes);
    if (!failed) {
        failed = prepare(&actions, &attributes, input, log);
        if (!failed)
            failed = posix_spawnp(pid, arguments[0], &actions, &attributes, arguments, environment);
        posix_spawnattr_destroy(&attributes);
    }
    posix_spawn_file_actions_destroy(&actions);
    return failed;
}

enum plim_status plim_launch_start(char *const *arguments, char *const *environment,
                                   const char *log, const char *mark, struct plim_launch *out,
                                   struct plim_error *err)
{
    int ends[2];
    *out = (struct plim_launch){.input = -1, .mark = mark};
    if (pipe2(ends, O_CLOEXEC))
        return plim_fail(err, PLIM_IO, "no pipe for the program: %s", strerror(errno));
    int failed = spawn(arguments, environment, ends[0], log, &out->pid);
    close(ends[0]);
    out->input = ends[1];
    if (!failed) return PLIM_OK;
    close(ends[1]);
    *out = (struct plim_launch){.input = -1, .ended = true};
    bool missing = failed == ENOENT || failed == EACCES || failed == ENOEXEC;
    return plim_fail(err, missing ? PLIM_INVALID : PLIM_IO, "%s cannot be started: %s",
                     arguments[0], strerror(failed));
}

bool plim_launch_poll(struct plim_launch *launch)
{
    if (launch->ended) return true;
    pid_t done = waitpid(launch->pid, &launch->status, WNOHANG);
    launch->ended = done == launch->pid || (done < 0 && errno != EINTR);
    return launch->ended;
}

/* --- looking into /proc ----------------------------------------------------------------------- */

/* A file of a process; the length, 0 when it cannot be read. Always terminated. */
static size_t read_file_of(pid_t pid, const char *name, char *out, size_t size)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    size_t length = 0;
    for (ssize_t got = 1; fd >= 0 && got > 0 && length<size - 1; length += got> 0 ? (size_t)got : 0)
        got = read(fd, out + length, size - 1 - length);
    if (fd >= 0) close(fd);
    out[length] = '\0';
    return length;
}

/* read(0, ...): the number of the call is the architecture's, descriptor 0 comes second. */
bool plim_launch_waits_for_input(const struct plim_launch *launch)
{
    char text[128];
    unsigned long long descriptor;
    long call;
    if (launch->ended || !read_file_of(launch->pid, "syscall", text, sizeof(text))) return false;
#if defined(__x86_64__)
    enum { READ = 0 };
#else
    enum { READ = 63 };
#endif
    return sscanf(text, "%ld %llx", &call, &descriptor) == 2 && call == READ &&
           descriptor == STDIN_FILENO;
}

static bool has_mark(pid_t pid, const char *mark)
{
    static _Thread_local char text[1 << 17];
    size_t length = read_file_of(pid, "environ", text, sizeof(text));
    for (size_t at = 0; at < length; at += strlen(text + at) + 1)
        if (!strcmp(text + at, mark)) return true;
    return false;
}

/* Signals everything with the mark; returns how many there are that live. */
static int signal_all(const struct plim_launch *launch, int number)
{
    int count = 0;
    DIR *folder = opendir("/proc");
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        if (!isdigit((unsigned char)entry->d_name[0])) continue;
        pid_t pid = (pid_t)atol(entry->d_name);
        if (pid == getpid()) continue;
        if (getsid(pid) != launch->pid && !has_mark(pid, launch->mark)) continue;
        /* A zombie is ours to bury when it lost its parent; the program itself is waited for by
         * plim_launch_poll(). */
        if (pid != launch->pid && waitpid(pid, NULL, WNOHANG) == pid) continue;
        count++;
        if (number) kill(pid, number);
    }
    if (folder) closedir(folder);
    return count;
}

/* True when nothing is left. */
static bool wait_for_all(struct plim_launch *launch, double seconds, int again)
{
    double end = plim_clock_seconds() + seconds;
    for (;;) {
        plim_launch_poll(launch);
        if (!signal_all(launch, again)) return true;
        if (plim_clock_seconds() >= end) return false;
        nanosleep(&(struct timespec){0, 20000000}, NULL);
    }
}

void plim_launch_end(struct plim_launch *launch)
{
    if (launch->pid <= 0) return;
    if (signal_all(launch, SIGTERM) && !wait_for_all(launch, GRACE_SECONDS, 0))
        wait_for_all(launch, KILL_SECONDS, SIGKILL);
    plim_launch_poll(launch);
    if (launch->input >= 0) close(launch->input);
    launch->input = -1;
}
