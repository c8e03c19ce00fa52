/* The device files of NVIDIA's driver, /dev/nvidiactl, /dev/nvidia0 and so on, for programs that look for them before
 * they try to use a GPU, as JAX does. They appear with the properties of /dev/null; only the driver itself would open
 * them. */
#define _GNU_SOURCE /* RTLD_NEXT */
#include "dlsym.h"
#include "devices/virtual/machine/self.h"
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

static const char *replace(const char *path)
{
    static const char begin[] = "/dev/nvidia";
    int count, gpu, used = 0;
    if (!path || strncmp(path, begin, sizeof(begin) - 1) != 0) return path;
    const char *which = path + sizeof(begin) - 1;
    if (plim_self_count(&count)) return path;
    bool is_gpu =
        sscanf(which, "%d%n", &gpu, &used) == 1 && !which[used] && gpu >= 0 && gpu < count;
    return is_gpu || !strcmp(which, "ctl") || !strcmp(which, "-uvm") ? "/dev/null" : path;
}

/* Structures are passed through, so their layout need not be known. */
#define FILE_FUNCTION(name, parameters, arguments)                                                 \
    ANSWER int name parameters;                                                                    \
    ANSWER int name parameters                                                                     \
    {                                                                                              \
        typedef int real parameters;                                                               \
        static real *function;                                                                     \
        if (!function) {                                                                           \
            plim_dlsym_prepare();                                                                 \
            void *found = plim_dlsym_real(RTLD_NEXT, #name);                                      \
            memcpy(&function, &found, sizeof(function));                                           \
        }                                                                                          \
        if (function) return function arguments;                                                   \
        errno = ENOSYS; /* the C library is too new or too old to have it */               \
        return -1;                                                                                 \
    }
FILE_FUNCTION(access, (const char *path, int mode), (replace(path), mode))
FILE_FUNCTION(stat, (const char *path, void *out), (replace(path), out))
FILE_FUNCTION(stat64, (const char *path, void *out), (replace(path), out))
FILE_FUNCTION(__xstat, (int version, const char *path, void *out), (version, replace(path), out))
FILE_FUNCTION(__xstat64, (int version, const char *path, void *out), (version, replace(path), out))
