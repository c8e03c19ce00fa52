#define _GNU_SOURCE /* signalfd's flags */
#include "guardian.h"
#include "autotune/base/clock.h"
#include "processes.h"
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const double GRACE_SECONDS = 1;
enum { SOON_NANOSECONDS = 5000000, LATER_NANOSECONDS = 200000000, SOON_ROUNDS = 400 };

struct guard {
    const struct plim_guardian *of;
    pid_t program;
};

static void send_event(const struct guard *g, enum plim_guardian_event event, int value)
{
    const struct plim_guardian_message message = {(int)event, value};
    (void)!send(g->of->channel, &message, sizeof(message), MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* Reaps children that have ended. Returns false if there are none left. */
static bool reap_all(const struct guard *g)
{
    for (;;) {
        int status;
        pid_t pid = waitpid(-1, &status, WNOHANG);
        if (pid == 0) return true;
        if (pid < 0) return false;
        if (pid == g->program) send_event(g, PLIM_GUARDIAN_ENDED, status);
    }
}

/* Waits for the message to end. Returns false if plimsoll has ended instead. */
static bool wait_for_end(const struct guard *g)
{
    sigset_t child;
    char word;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    int ended = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
    for (;;) {
        struct signalfd_siginfo info;
        struct pollfd files[] = {{.fd = g->of->channel, .events = POLLIN},
                                 {.fd = ended, .events = POLLIN}};
        if (poll(files, 2, -1) < 0 && errno != EINTR) return false;
        while (ended >= 0 && read(ended, &info, sizeof(info)) > 0) continue;
        reap_all(g);
        if (files[0].revents) return recv(g->of->channel, &word, 1, MSG_DONTWAIT) > 0;
    }
}

/* Sends SIGTERM to all processes, then SIGKILL until none is left: a remaining one might still use a GPU. */
static void end_all(const struct guard *g)
{
    const struct plim_processes all = {.ancestor = getpid(), .session = g->program};
    double asked = plim_clock_seconds();
    plim_processes_signal(&all, SIGTERM);
    for (int round = 0; reap_all(g); round++) {
        bool kills = plim_clock_seconds() - asked >= GRACE_SECONDS;
        if (kills) plim_processes_signal(&all, SIGKILL);
        long pause = !kills || round < SOON_ROUNDS ? SOON_NANOSECONDS : LATER_NANOSECONDS;
        nanosleep(&(struct timespec){0, pause}, NULL);
    }
}

_Noreturn void plim_guardian_run(const struct plim_guardian *guardian)
{
    struct guard g = {.of = guardian};
    const int keep[] = {guardian->channel, guardian->hold, guardian->input[0], guardian->input[1],
                        guardian->log};
    plim_processes_detach("trial-guardian", keep, sizeof(keep) / sizeof(keep[0]));
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    int failed = posix_spawnp(&g.program, guardian->arguments[0], guardian->actions,
                              guardian->attributes, guardian->arguments, guardian->environment);
    send_event(&g, failed ? PLIM_GUARDIAN_FAILED : PLIM_GUARDIAN_STARTED, failed ? failed : g.program);
    if (failed) _exit(0);
    close(guardian->log);
    close(guardian->input[0]);
    bool is_requested = wait_for_end(&g);
    end_all(&g);
    for (size_t i = 0; i < guardian->file_count && !is_requested; i++) unlink(guardian->files[i]);
    _exit(0);
}
