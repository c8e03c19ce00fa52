#define _GNU_SOURCE /* POSIX_SPAWN_SETSID, pipe2 */
#include "launch.h"
#include "autotune/base/clock.h"
#include "guardian.h"
#include "processes.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* A guardian sends SIGKILL after a second; only processes blocked in the kernel take longer to end. */
static const double GUARDIAN_SECONDS = 12, KILL_SECONDS = 10;
enum { QUIET_ROUNDS = 5 };

void plim_launch_prepare(void)
{
    prctl(PR_SET_CHILD_SUBREAPER, 1); /* if a guardian is killed, its children become children of this process */
}

/* --- starting --------------------------------------------------------------------------------- */

static int prepare(posix_spawn_file_actions_t *actions, posix_spawnattr_t *attributes, int input,
                   int log)
{
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    int failed = posix_spawn_file_actions_adddup2(actions, input, STDIN_FILENO);
    if (!failed) failed = posix_spawn_file_actions_adddup2(actions, log, STDOUT_FILENO);
    if (!failed) failed = posix_spawn_file_actions_adddup2(actions, log, STDERR_FILENO);
    if (!failed)
        failed = posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK |
                                                          POSIX_SPAWN_SETSIGDEF);
    if (!failed) failed = posix_spawnattr_setsigmask(attributes, &none);
    if (!failed) failed = posix_spawnattr_setsigdefault(attributes, &all);
    return failed;
}

/* Forks the guardian. Returns 0 or an errno. */
static int fork_guardian(const struct plim_guardian *guardian, pid_t *pid)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    *pid = fork();
    if (!*pid) plim_guardian_run(guardian);
    int failed = *pid < 0 ? errno : 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failed;
}

static int start_guardian(const struct plim_launch_options *options, const int input[2],
                          int channel, pid_t *pid)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    struct plim_guardian guardian = {.channel = channel,
                                     .hold = options->hold,
                                     .input = {input[0], input[1]},
                                     .log = options->log,
                                     .arguments = options->arguments,
                                     .environment = options->environment,
                                     .actions = &actions,
                                     .attributes = &attributes,
                                     .files = options->files,
                                     .file_count = options->file_count};
    int failed = posix_spawn_file_actions_init(&actions);
    if (failed) return failed;
    failed = posix_spawnattr_init(&attributes);
    if (!failed) {
        failed = prepare(&actions, &attributes, input[0], options->log);
        if (!failed) failed = fork_guardian(&guardian, pid);
        posix_spawnattr_destroy(&attributes);
    }
    posix_spawn_file_actions_destroy(&actions);
    return failed;
}

/* Receives a message. Returns false if there is none yet, or if the guardian has ended; launch->ended is set then. */
static bool receive(struct plim_launch *launch, int flags, struct plim_guardian_message *message)
{
    ssize_t got;
    do got = recv(launch->channel, message, sizeof(*message), flags);
    while (got < 0 && errno == EINTR);
    if (got == (ssize_t)sizeof(*message)) return true;
    if (got >= 0 || (errno != EAGAIN && errno != EWOULDBLOCK)) {
        /* The guardian ended before it reported the program's end. */
        if (!launch->ended) launch->status = SIGKILL;
        launch->ended = true;
    }
    return false;
}

/* Ends the processes of a launch whose guardian was killed. A program that the guardian had just forked has no mark
 * before its exec(), so several rounds must find none. */
static void end_without_guardian(const struct plim_launch *launch)
{
    const struct plim_processes all = {.session = launch->pid, .mark = launch->mark};
    double end = plim_clock_seconds() + KILL_SECONDS;
    for (int quiet = 0; quiet < QUIET_ROUNDS && plim_clock_seconds() < end;) {
        if (launch->pid) waitpid(launch->pid, NULL, WNOHANG);
        quiet = plim_processes_signal(&all, SIGKILL) ? 0 : quiet + 1;
        nanosleep(&(struct timespec){0, 20000000}, NULL);
    }
}

static void finish(struct plim_launch *launch)
{
    while (waitpid(launch->guardian, NULL, 0) < 0 && errno == EINTR) continue;
    close(launch->channel);
    *launch = (struct plim_launch){.channel = -1, .ended = true};
}

static enum plim_status await_start(struct plim_launch *launch, const char *program,
                                    struct plim_error *err)
{
    struct plim_guardian_message message = {PLIM_GUARDIAN_FAILED, ECHILD};
    bool is_received = receive(launch, 0, &message);
    if (is_received && message.event == PLIM_GUARDIAN_STARTED) {
        launch->pid = message.value;
        return PLIM_OK;
    }
    if (!is_received) end_without_guardian(launch);
    int failed = message.value;
    bool missing = failed == ENOENT || failed == EACCES || failed == ENOEXEC;
    finish(launch);
    return plim_fail(err, missing ? PLIM_INVALID : PLIM_IO, "%s cannot be started: %s", program,
                     strerror(failed));
}

enum plim_status plim_launch_start(const struct plim_launch_options *options,
                                   struct plim_launch *out, struct plim_error *err)
{
    int input[2], ends[2];
    *out = (struct plim_launch){.channel = -1, .mark = options->mark};
    if (pipe2(input, O_CLOEXEC))
        return plim_fail(err, PLIM_IO, "no pipe for the program: %s", strerror(errno));
    int failed = socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) ? errno : 0;
    if (!failed) {
        failed = start_guardian(options, input, ends[1], &out->guardian);
        close(ends[1]);
        if (failed) close(ends[0]);
        else out->channel = ends[0];
    }
    close(input[0]);
    close(input[1]);
    if (!failed) return await_start(out, options->arguments[0], err);
    *out = (struct plim_launch){.channel = -1, .ended = true};
    return plim_fail(err, PLIM_IO, "%s cannot be started: %s", options->arguments[0],
                     strerror(failed));
}

/* --- while it runs ---------------------------------------------------------------------------- */

bool plim_launch_poll(struct plim_launch *launch)
{
    struct plim_guardian_message message;
    while (launch->channel >= 0 && !launch->ended && receive(launch, MSG_DONTWAIT, &message)) {
        if (message.event != PLIM_GUARDIAN_ENDED) continue;
        launch->status = message.value;
        launch->ended = true;
    }
    return launch->ended;
}

/* /proc/PID/syscall has the number of the current system call, which depends on the architecture, and its arguments. */
bool plim_launch_waits_for_input(const struct plim_launch *launch)
{
    char text[128];
    unsigned long long descriptor;
    long call;
    if (launch->ended || !plim_processes_file(launch->pid, "syscall", text, sizeof(text)))
        return false;
#if defined(__x86_64__)
    enum { READ = 0 };
#else
    enum { READ = 63 };
#endif
    return sscanf(text, "%ld %llx", &call, &descriptor) == 2 && call == READ &&
           descriptor == STDIN_FILENO;
}

/* --- ending ----------------------------------------------------------------------------------- */

/* Waits until the guardian ends. Returns false if it was killed, so that the caller has to end the processes. */
static bool wait_for_guardian(const struct plim_launch *launch)
{
    double end = plim_clock_seconds() + GUARDIAN_SECONDS;
    int status;
    for (;;) {
        struct pollfd channel = {.fd = launch->channel}; /* hangs up as the guardian ends */
        pid_t done = waitpid(launch->guardian, &status, WNOHANG);
        if (done == launch->guardian) return !WIFSIGNALED(status);
        if (done < 0 && errno != EINTR) return false;
        if (plim_clock_seconds() >= end) return true;
        if (poll(&channel, 1, 20) > 0) nanosleep(&(struct timespec){0, 1000000}, NULL);
    }
}

void plim_launch_end(struct plim_launch *launch)
{
    if (launch->guardian <= 0) return;
    (void)!send(launch->channel, "", 1, MSG_NOSIGNAL);
    if (!wait_for_guardian(launch)) end_without_guardian(launch);
    plim_launch_poll(launch);
    close(launch->channel);
    launch->channel = -1;
    launch->guardian = 0;
}
