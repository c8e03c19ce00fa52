#define _DEFAULT_SOURCE /* flock */
#include "lock.h"
#include "autotune/base/clock.h"
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* --- the folder ------------------------------------------------------------------------------- */

/* Creates the folder if it is missing. Returns a descriptor if only the user may write it and it is no symbolic link;
 * otherwise -1. */
static int open_own(const char *path)
{
    struct stat info;
    if (mkdir(path, 0700) && errno != EEXIST) return -1;
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) return -1;
    if (!fstat(fd, &info) && info.st_uid == geteuid() && !(info.st_mode & (S_IWGRP | S_IWOTH)))
        return fd;
    close(fd);
    errno = EPERM;
    return -1;
}

/* Opens the folder of the locks. XDG_RUNTIME_DIR may be that of a session on another machine, passed on by a scheduler;
 * then another folder is used. */
static int open_folder(char path[PATH_MAX])
{
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    int fd = -1;
    if (runtime && runtime[0] == '/' && strlen(runtime) < PATH_MAX - 16) {
        snprintf(path, PATH_MAX, "%s/plimsoll", runtime);
        fd = open_own(path);
    }
    if (fd < 0 && geteuid() == 0) {
        snprintf(path, PATH_MAX, "/run/plimsoll");
        fd = open_own(path);
    }
    if (fd < 0) {
        snprintf(path, PATH_MAX, "/tmp/plimsoll-%lu", (unsigned long)geteuid());
        fd = open_own(path);
    }
    return fd;
}

/* --- waiting ---------------------------------------------------------------------------------- */

/* Makes a file name such as "GPU-1234.lock", without characters that could lead out of the folder. */
static void name_file(const char *what, char out[160])
{
    snprintf(out, 160, "%.150s.lock", what);
    for (char *c = out; *c; c++)
        if (!isalnum((unsigned char)*c) && *c != '-' && *c != '.') *c = '_';
    if (out[0] == '.') out[0] = '_';
}

/* Polls, instead of blocking in flock(), to notice when to stop. */
static enum plim_status wait_for(int fd, const char *what, double seconds,
                                 const struct plim_stop *stop, const struct plim_log *log,
                                 bool *waited, struct plim_error *err)
{
    const double end = plim_clock_seconds() + seconds;
    while (flock(fd, LOCK_EX | LOCK_NB)) {
        if (errno == EINTR) continue;
        if (errno != EWOULDBLOCK)
            return plim_fail(err, PLIM_IO, "cannot lock %s: %s", what, strerror(errno));
        enum plim_status st = plim_stop_check(stop, err);
        if (st) return st;
        if (plim_clock_seconds() >= end)
            return plim_fail(err, PLIM_TIMEOUT,
                             "%s: another plimsoll still works on it after %g s (--wait)", what,
                             seconds);
        if (!*waited)
            plim_log(log, PLIM_LOG_INFO, "waiting for another plimsoll that works on %s", what);
        *waited = true;
        nanosleep(&(struct timespec){0, 20000000}, NULL);
    }
    return PLIM_OK;
}

enum plim_status plim_store_lock_acquire(struct plim_store_lock *lock, const char *what,
                                         double seconds, const struct plim_stop *stop,
                                         const struct plim_log *log, bool *waited,
                                         struct plim_error *err)
{
    char folder[PATH_MAX], name[160];
    struct stat info;
    *waited = false;
    lock->fd = -1;
    name_file(what, name);
    int place = open_folder(folder);
    if (place < 0)
        return plim_fail(err, PLIM_IO, "no lock: %.200s is not this user's alone", folder);
    int fd = openat(place, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
    int problem = fd < 0 || fstat(fd, &info) ? errno : S_ISREG(info.st_mode) ? 0 : EINVAL;
    close(place);
    enum plim_status st =
        problem ? plim_fail(err, PLIM_IO, "no lock: %.200s/%s: %s", folder, name, strerror(problem))
                : wait_for(fd, what, seconds, stop, log, waited, err);
    if (!st)
        lock->fd = fd;
    else if (fd >= 0)
        close(fd);
    return st;
}

void plim_store_lock_release(struct plim_store_lock *lock)
{
    if (lock->fd < 0) return;
    flock(lock->fd, LOCK_UN); /* forked children may still have it open */
    close(lock->fd);
    lock->fd = -1;
}
