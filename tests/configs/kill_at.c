/* Preloaded into a program, ends it by SIGKILL just before the call number PLIM_KILL_AT (from 1) that changes a file or
 * makes it last: what a crash would leave at that moment. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static void count(void)
{
    static long left = -1;
    if (left < 0) left = getenv("PLIM_KILL_AT") ? atol(getenv("PLIM_KILL_AT")) : 0;
    if (left > 0 && !--left) kill(getpid(), SIGKILL);
}

#define REPLACE(name, type, parameters, arguments)                                                 \
    type name parameters;                                                                          \
    type name parameters                                                                           \
    {                                                                                              \
        type(*real) parameters;                                                                    \
        *(void **)&real = dlsym(RTLD_NEXT, #name);                                                 \
        count();                                                                                   \
        return real arguments;                                                                     \
    }

REPLACE(renameat, int, (int from, const char *old, int to, const char *new), (from, old, to, new))
REPLACE(unlinkat, int, (int folder, const char *path, int flags), (folder, path, flags))
REPLACE(unlink, int, (const char *path), (path))
REPLACE(fsync, int, (int fd), (fd))
REPLACE(fchmod, int, (int fd, mode_t mode), (fd, mode))
REPLACE(fclose, int, (FILE *file), (file))
