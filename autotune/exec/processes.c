#define _GNU_SOURCE /* syscall, getsid */
#include "processes.h"
#include "autotune/base/process_stat.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ENVIRONMENT_BYTES = 1 << 17, DEEPEST = 4096 };

/* --- reading ---------------------------------------------------------------------------------- */

size_t plim_processes_file(pid_t pid, const char *name, char *out, size_t size)
{
    char path[64];
    size_t length = 0;
    snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    for (ssize_t got = 1; fd >= 0 && got > 0 && length < size - 1;) {
        got = read(fd, out + length, size - 1 - length);
        if (got > 0) length += (size_t)got;
    }
    if (fd >= 0) close(fd);
    out[length] = '\0';
    return length;
}

/* An entry of getdents64(), used since readdir() allocates memory. */
struct entry {
    unsigned long long inode;
    long long offset;
    unsigned short length;
    unsigned char kind;
    char name[];
};

/* Calls `visit` with each name in a folder that is a number, except the descriptor of the folder itself. */
static void for_each_number(const char *folder, void (*visit)(void *user, int number), void *user)
{
    _Alignas(struct entry) char buffer[4096];
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return;
    for (long got; (got = syscall(SYS_getdents64, fd, buffer, sizeof(buffer))) > 0;) {
        for (long at = 0; at < got;) {
            const struct entry *entry = (const struct entry *)(buffer + at);
            bool is_number = entry->name[0] >= '0' && entry->name[0] <= '9';
            int number = is_number ? atoi(entry->name) : -1;
            if (number >= 0 && number != fd) visit(user, number);
            at += entry->length;
        }
    }
    close(fd);
}

/* --- members of a set ------------------------------------------------------------------------- */

/* Returns 0 if there is no such process. */
static pid_t parent_of(pid_t pid)
{
    struct plim_process_stat stat;
    return plim_process_stat(pid, &stat) ? stat.parent : 0;
}

static bool descends(pid_t pid, pid_t ancestor)
{
    for (int i = 0; pid > 1 && i < DEEPEST; i++)
        if ((pid = parent_of(pid)) == ancestor) return true;
    return false;
}

static bool has_mark(pid_t pid, const char *mark)
{
    static _Thread_local char text[ENVIRONMENT_BYTES];
    size_t length = plim_processes_file(pid, "environ", text, sizeof(text));
    for (size_t at = 0; at < length; at += strlen(text + at) + 1)
        if (!strcmp(text + at, mark)) return true;
    return false;
}

static bool is_meant(const struct plim_processes *which, pid_t pid)
{
    if (pid == getpid()) return false;
    if (which->ancestor) return descends(pid, which->ancestor);
    bool in_session = which->session > 0 && getsid(pid) == which->session;
    return in_session || has_mark(pid, which->mark);
}

/* --- iteration --------------------------------------------------------------------------------- */

struct visit {
    const struct plim_processes *which;
    void (*visit)(void *user, pid_t pid);
    void *user;
};

static void visit_meant(void *user, int pid)
{
    const struct visit *visit = user;
    if (is_meant(visit->which, pid)) visit->visit(visit->user, pid);
}

void plim_processes_each(const struct plim_processes *which, void (*visit)(void *user, pid_t pid), void *user)
{
    for_each_number("/proc", visit_meant, &(struct visit){which, visit, user});
}

/* --- signals ---------------------------------------------------------------------------------- */

struct round {
    const struct plim_processes *which;
    int number, count;
};

/* Signals through a process descriptor, since the kernel may meanwhile reuse the pid for another process. */
static void signal_one(const struct round *round, pid_t pid)
{
    int fd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (fd < 0 && errno == ENOSYS) kill(pid, round->number);
    if (fd < 0) return;
    if (is_meant(round->which, pid)) syscall(SYS_pidfd_send_signal, fd, round->number, NULL, 0);
    close(fd);
}

static void visit_process(void *user, pid_t pid)
{
    struct round *round = user;
    bool is_leader = pid == round->which->session;
    if (!is_leader && waitpid(pid, NULL, WNOHANG) == pid) return;
    round->count++;
    if (round->number) signal_one(round, pid);
}

int plim_processes_signal(const struct plim_processes *which, int number)
{
    struct round round = {.which = which, .number = number};
    plim_processes_each(which, visit_process, &round);
    return round.count;
}

/* --- detached children ------------------------------------------------------------------------ */

struct kept {
    const int *files;
    size_t count;
};

static void visit_file(void *user, int file)
{
    const struct kept *kept = user;
    for (size_t i = 0; i < kept->count; i++)
        if (kept->files[i] == file) return;
    if (file > STDERR_FILENO) close(file);
}

void plim_processes_detach(const char *name, const int *keep, size_t count)
{
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    signal(SIGCHLD, SIG_DFL); /* if it were ignored, the exit status of children would be lost */
    setsid();
    prctl(PR_SET_NAME, name);
    for_each_number("/proc/self/fd", visit_file, &(struct kept){keep, count});
    int none = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int i = STDIN_FILENO; i <= STDERR_FILENO && none >= 0; i++) dup2(none, i);
    if (none > STDERR_FILENO) close(none);
}
