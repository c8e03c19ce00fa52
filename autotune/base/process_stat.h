/* Reads the state of a process from /proc/PID/stat (proc_pid_stat(5)). */
#ifndef PLIM_BASE_PROCESS_STAT_H
#define PLIM_BASE_PROCESS_STAT_H

#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Times are in ticks, sysconf(_SC_CLK_TCK) per second. `began` is the start time since the boot of the machine
 * (CLOCK_BOOTTIME): together with the pid it identifies a process. */
struct plim_process_stat {
    char state; /* 'Z', 'X': dead, but perhaps not reaped by its parent yet */
    int parent;
    uint64_t used; /* CPU time without that of its children */
    uint64_t began;
};

/* Returns false if there is no such process, or its state cannot be read. */
static inline bool plim_process_stat(int pid, struct plim_process_stat *out)
{
    enum { STATE = 3, PARENT, USER = 14, SYSTEM, BEGAN = 22 }; /* numbers of fields as in the manual */
    char path[32], text[1024];
    snprintf(path, sizeof(path), "/proc/%d/stat", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
    if (fd >= 0) close(fd);
    if (length < 0) return false;
    text[length] = '\0';
    /* The second field is the name, in parentheses; it may contain any character. */
    const char *field = strrchr(text, ')');
    *out = (struct plim_process_stat){0};
    for (int i = STATE; field && i <= BEGAN; i++) {
        field = strchr(field + 1, ' ');
        if (field && i == STATE) out->state = field[1];
        if (field && i == PARENT) out->parent = atoi(field);
        if (field && (i == USER || i == SYSTEM)) out->used += strtoull(field, NULL, 10);
        if (field && i == BEGAN) out->began = strtoull(field, NULL, 10);
    }
    return field != NULL;
}

/* Returns the start time of a process; 0 if it is dead, even if its parent has not reaped it yet. */
static inline uint64_t plim_process_born(int pid)
{
    struct plim_process_stat stat;
    bool lives = plim_process_stat(pid, &stat) && stat.state != 'Z' && stat.state != 'X';
    return lives ? stat.began : 0;
}

#endif
