/* Reads and writes complete ranges of a file; pread() and pwrite() may transfer less and be interrupted. */
#ifndef PLIM_BASE_FILE_RANGE_H
#define PLIM_BASE_FILE_RANGE_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

/* Return false and set errno if the range was not transferred completely (0: the file is too short). */
static inline bool plim_file_read(int fd, int64_t at, void *out, size_t size)
{
    for (char *next = (char *)out; size;) {
        ssize_t got = pread(fd, next, size, (off_t)at);
        if (got < 0 && errno == EINTR) continue;
        if (!got) errno = 0;
        if (got <= 0) return false;
        next += got;
        at += got;
        size -= (size_t)got;
    }
    return true;
}

static inline bool plim_file_write(int fd, int64_t at, const void *bytes, size_t size)
{
    for (const char *next = (const char *)bytes; size;) {
        ssize_t done = pwrite(fd, next, size, (off_t)at);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) return false;
        next += done;
        at += done;
        size -= (size_t)done;
    }
    return true;
}

#endif
